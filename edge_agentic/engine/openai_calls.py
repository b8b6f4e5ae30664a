"""Puts streamed tool calls together from their fragments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from edge_agentic.core.jsonio import JsonObject, dump_line, is_json
from edge_agentic.core.messages import ToolCall
from edge_agentic.engine.openai_values import as_object, as_text, join_text


@dataclass
class _PartialCall:
    """A call while its fragments come in."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class StreamedCalls:
    """The calls of one answer, in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, fragment: Mapping[str, Any]) -> bool:
        """Merge one fragment; return whether it carries a name or arguments.

        `arguments` may be a piece of text, a whole object, empty or null.
        """
        function = fragment.get("function")
        fields: Mapping[str, Any] = function if isinstance(function, dict) else {}
        name, call_id, index = fields.get("name"), fragment.get("id"), fragment.get("index")
        call = self._by_index.get(index) if type(index) is int else None
        # Most fragments only go on with a call whose index they name.
        if call is None or name or call_id:
            name, call_id = as_text(name), as_text(call_id)
            call = self._call(index if type(index) is int else None, call_id, name)
            call.id, call.name = call.id or call_id, call.name or name
        arguments = fields.get("arguments")
        if isinstance(arguments, dict):
            arguments = dump_line(arguments) if is_json(arguments) else "NaN"
        if not isinstance(arguments, str) or not arguments:
            return bool(name and isinstance(name, str))
        call.arguments.append(arguments)
        return True

    def parse(
        self, *, is_cut: bool, id_prefix: str, hide: Callable[[str], str] = str
    ) -> tuple[tuple[ToolCall, ...], bool]:
        """The calls, and whether some attempt was none. No fragments raise.

        Nothing at all for arguments is a call without any. A call without a name, or whose
        arguments are no JSON object, is left out; the last one of an answer that was cut is
        `truncated` instead, without arguments.

        Args:
            is_cut: the answer ended at its token limit or broke off.
            id_prefix: start of the ids of calls that have none of their own, or another's.
            hide: takes out what must not be written down.
        """
        parsed: list[ToolCall] = []
        taken: set[str] = set()
        for number, partial in enumerate(self._calls):
            name, text = hide(join_text([partial.name])), hide(join_text(partial.arguments))
            arguments = as_object(text) if text.strip() else {}
            if arguments is not None and not is_json(arguments):
                arguments = None
            is_truncated = arguments is None and is_cut and partial is self._calls[-1]
            if not name or (arguments is None and not is_truncated):
                continue
            call_id = hide(join_text([partial.id]))
            if not call_id or call_id in taken:
                call_id = f"{id_prefix}_{number}"
            taken.add(call_id)
            parsed.append(ToolCall(call_id, name, arguments or {}, is_truncated))
        return tuple(parsed), len(parsed) < len(self._calls)

    def verbatim(self) -> list[JsonObject]:
        """The calls as they came: name, and arguments as text."""
        return [
            {"name": join_text([call.name]), "arguments": join_text(call.arguments)}
            for call in self._calls
        ]

    def _call(self, index: int | None, call_id: str, name: str) -> _PartialCall:
        """The call that a fragment belongs to.

        A new id or another name under an index already used starts a new call: some servers
        give every call index 0. So does a name without an index, unless the id is the same.
        """
        if index is not None:
            call = self._by_index.get(index)
        else:
            call = self._calls[-1] if self._calls else None
        if call is not None:
            is_new = (
                (call_id and call.id and call_id != call.id)
                or (name and call.name and name != call.name)
                or (index is None and name and call.name and not (call_id and call_id == call.id))
            )
            if not is_new:
                return call
        call = _PartialCall()
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call
