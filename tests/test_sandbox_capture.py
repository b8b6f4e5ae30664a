"""The output of a command is bounded, in order, and says what it lost."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from tools_sandbox.capture import HeadTail


def fed(chunks: list[bytes], head_bytes: int, tail_bytes: int) -> HeadTail:
    kept = HeadTail(head_bytes, tail_bytes)
    for chunk in chunks:
        kept.feed(chunk)
    return kept


@given(
    st.lists(st.text("abc\n", max_size=40), max_size=20),
    st.integers(1, 30),
    st.integers(1, 30),
)
def test_the_head_and_the_tail_are_the_same_however_the_stream_is_cut(
    pieces: list[str], head_bytes: int, tail_bytes: int
) -> None:
    stream = "".join(pieces)
    kept = fed([piece.encode() for piece in pieces], head_bytes, tail_bytes)
    assert kept.total_bytes == len(stream)
    dropped = len(stream) - head_bytes - tail_bytes
    if dropped <= 0:
        assert kept.dropped_bytes == 0
        assert kept.text() == stream
        return
    assert kept.dropped_bytes == dropped
    head, tail = stream[:head_bytes], stream[-tail_bytes:]
    gap = "" if head.endswith("\n") else "\n"
    assert kept.text() == f"{head}{gap}[... {dropped} bytes dropped ...]\n{tail}"


def test_a_character_cut_between_two_reads_stays_whole() -> None:
    assert fed([b"\xe2", b"\x82\xac"], 2, 8).text() == "€"


def test_invalid_utf8_is_replaced_and_not_refused() -> None:
    assert fed([b"a\xffb"], 8, 8).text() == "a�b"


def test_memory_stays_flat_in_a_flood() -> None:
    chunk = b"y\n" * 32 * 1024
    tracemalloc.start()
    kept = HeadTail(32 * 1024, 32 * 1024)
    for _ in range(2000):
        kept.feed(chunk)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kept.total_bytes == 2000 * len(chunk)
    assert peak < 512 * 1024
