"""Keeps the head and the tail of a stream of bytes in constant memory."""


class HeadTail:
    """Holds the first and the last bytes of what it is fed, and counts all of them."""

    def __init__(self, head_bytes: int, tail_bytes: int) -> None:
        self.total_bytes = 0
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total_bytes += len(data)
        room = self._head_bytes - len(self._head)
        self._head += data[:room]
        rest = data[room:] if room < len(data) else b""
        self._tail += rest[-self._tail_bytes :]
        # Trimming at twice the size keeps the cost of a small write constant.
        if len(self._tail) > 2 * self._tail_bytes:
            del self._tail[: -self._tail_bytes]

    @property
    def dropped_bytes(self) -> int:
        """How many bytes of the middle are gone."""
        return max(0, self.total_bytes - self._head_bytes - self._tail_bytes)

    def text(self) -> str:
        """What was kept, with one marker line where bytes are missing; invalid UTF-8 replaced."""
        tail = bytes(self._tail[-self._tail_bytes :])
        head = bytes(self._head)
        if not self.dropped_bytes:
            return (head + tail).decode("utf-8", "replace")
        gap = "" if head.endswith(b"\n") else "\n"
        marker = f"{gap}[... {self.dropped_bytes} bytes dropped ...]\n"
        return head.decode("utf-8", "replace") + marker + tail.decode("utf-8", "replace")
