"""Where a call begins in an answer, however the answer is cut into pieces."""

from __future__ import annotations

import pytest

from edge_agentic.chat.call_watch import CallWatch
from edge_agentic.chat.tool_format import ToolFormat

GENERIC, HERMES, XML = ToolFormat.GENERIC, ToolFormat.HERMES, ToolFormat.QWEN3_XML
LLAMA, MISTRAL = ToolFormat.LLAMA3_JSON, ToolFormat.MISTRAL


def begin(tool_format: ToolFormat, pieces: list[bytes], prompt: str = "") -> tuple[bytes, int]:
    """The start of the first call and how many bytes had been fed; the start is b"" for none."""
    watch, fed = CallWatch(tool_format, prompt), 0
    for piece in pieces:
        fed += len(piece)
        start = watch.feed(piece)
        if start is not None:
            return start, fed
    return b"", fed


CASES = [
    (HERMES, "Let me see.<tool_call>", "<tool_call>"),
    (HERMES, "<tool_call>", "<tool_call>"),
    (HERMES, "<tool_cal <<tool_call>", "<tool_call>"),
    (HERMES, "a <b> [1] {c}", None),
    (HERMES, "<think>\n<tool_call> may do</think>\n\n<tool_call>", "<tool_call>"),
    (HERMES, "<think>\n<tool_call> may do", None),
    (HERMES, '<think>x</think>\n{"', '{"'),
    (HERMES, 'So:<think>x</think>\n{"', None),
    (HERMES, 'draft</think>\n {"', '{"'),
    (HERMES, '{ "', '{"'),
    (HERMES, '\n\n [\n  {\n "', '[{"'),
    (HERMES, "caf\u00e9 \U0001f600<tool_call>", "<tool_call>"),
    (HERMES, "<|tool_call|><tool_calls>", None),
    (XML, "Well.\n\n<function=", "<function="),
    (XML, "<tool_call>", "<tool_call>"),
    (XML, '{"', None),
    (LLAMA, "<|python_tag|>", "<|python_tag|>"),
    (LLAMA, '{"', '{"'),
    (LLAMA, '[1] {"', None),
    (LLAMA, 'Sure: {"', None),
    (LLAMA, '{}{"', None),
    (LLAMA, '{x: "', None),
    (LLAMA, '[[{"', None),
    (MISTRAL, "[THINK][TOOL_CALLS][/THINK][TOOL_CALLS]", "[TOOL_CALLS]"),
    (MISTRAL, "[TOOL_CALL][TOOL_CALLS]", "[TOOL_CALLS]"),
    (
        ToolFormat.COMMAND_R,
        "<|START_THINKING|><|START_ACTION|><|END_THINKING|><|START_ACTION|>",
        "<|START_ACTION|>",
    ),
    (
        ToolFormat.GEMMA4,
        "<|channel>thought<|tool_call><channel|><|tool_call>",
        "<|tool_call>",
    ),
    (GENERIC, '{"', '{"'),
    (GENERIC, "<tool_call>", None),
]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1000])
@pytest.mark.parametrize(("tool_format", "text", "start"), CASES)
def test_a_call_begins_where_its_mark_ends(
    tool_format: ToolFormat, text: str, start: str | None, size: int
) -> None:
    raw = text.encode()
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert begin(tool_format, pieces) == ((start or "").encode(), len(raw))


def test_what_a_piece_has_behind_the_mark_is_part_of_the_start() -> None:
    assert begin(HERMES, [b"a<tool", b'_call>\n{"na', b"me"]) == (b'<tool_call>\n{"na', 17)
    assert begin(LLAMA, [b" { ", b'"na']) == (b'{"na', 6)


def test_reasoning_that_the_prompt_opens_holds_no_call() -> None:
    pieces = [b"<tool_call>", b" no</think>", b"<tool_call>"]
    assert begin(HERMES, pieces, "<|im_start|>assistant\n<think>\n") == (b"<tool_call>", 33)
    assert begin(HERMES, pieces, "<think>\n\n</think>\n\n") == (b"<tool_call>", 11)
    assert begin(HERMES, pieces, "What is <think>, please?") == (b"<tool_call>", 11)


def test_a_long_answer_is_not_kept() -> None:
    watch = CallWatch(HERMES)
    assert all(watch.feed(piece) is None for piece in [b" ", b"a<tool", b"\n"] * 2000)
    assert watch.feed(b"<tool_call>") == b"<tool_call>"
