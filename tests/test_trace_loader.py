"""Loading a trace: what is accepted, what a request carries, and what each mistake is told."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.trace.conversation import recorded_message, request_messages
from edge_agentic.trace.loader import load_trace
from tests.trace_samples import call, calls, nested, results, says, user, write

TOOLS = [{"type": "function", "function": {"name": "bash"}}]


def test_the_official_file_loads_unchanged_and_fast(official_trace: Path) -> None:
    begin = time.process_time()
    conversations = load_trace(official_trace).conversations
    assert time.process_time() - begin < 2
    rows = [row for conversation in conversations for row in conversation.rows]
    assert rows == [json.loads(line) for line in official_trace.read_text("utf-8").splitlines()]
    turns = [turn for conversation in conversations for turn in conversation.turns]
    assert (len(conversations), len(turns)) == (20, 1007)
    assert sum(len(turn.recorded_results) for turn in turns) == 992
    assert sum(turn.delay_s or 0 for turn in turns) == pytest.approx(636, abs=1)


def test_the_messages_of_a_request_are_shared_and_not_copied(official_trace: Path) -> None:
    conversation = max(load_trace(official_trace).conversations, key=lambda c: len(c.turns))
    first, last = conversation.turns[0], conversation.turns[-1]
    early, late = request_messages(conversation, first), request_messages(conversation, last)
    assert all(a is b for a, b in zip(early[1:], late[1:], strict=False))


def test_a_request_carries_the_system_prompt_and_all_rows_before(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl",
        user(1, system="be brief", tools=TOOLS, intent_codes=["I001"]),
        calls(2, "a", "b", reasoning_content="look"),
        results(3, "b", "a", delay_seconds=0.5),
        says(4, "half way"),
        user(5, "go on"),
        says(6),
    )
    (conversation,) = load_trace(path).conversations
    assert conversation.tools == tuple(TOOLS)
    assert request_messages(conversation, conversation.turns[0]) == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "do it"},
    ]
    assert request_messages(conversation, conversation.turns[2]) == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "do it"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "look",
            "tool_calls": [call("a", "ls"), call("b", "ls")],
        },
        {"role": "tool", "tool_call_id": "b", "content": "rb"},
        {"role": "tool", "tool_call_id": "a", "content": "ra"},
        {"role": "assistant", "content": "half way"},
        {"role": "user", "content": "go on"},
    ]
    assert recorded_message(conversation, conversation.turns[2]) == {
        "role": "assistant",
        "content": "done",
    }


def test_a_turn_knows_its_row_its_calls_and_what_came_of_them(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl",
        user(1, max_new_tokens=64),
        calls(2, "a"),
        results(3, "a", delay_seconds=0.5, max_new_tokens=32),
        calls(4, "a"),
        results(5, "a"),
        says(6),
    )
    (conversation,) = load_trace(path).conversations
    seen = [
        (turn.index, turn.row, len(turn.expected_calls), turn.delay_s, turn.max_output_tokens)
        for turn in conversation.turns
    ]
    assert seen == [(1, 2, 1, 0.5, 64), (2, 4, 1, None, 32), (3, 6, 0, None, 64)]
    assert conversation.turns[0].recorded_results == ({"tool_call_id": "a", "content": "ra"},)
    assert conversation.turns[2].recorded_results == ()


def test_unknown_fields_stay_in_the_rows(tmp_path: Path) -> None:
    row = user(1, intent_codes=["I001"], note={"a": 1})
    (conversation,) = load_trace(write(tmp_path / "t.jsonl", row, says(2))).conversations
    assert conversation.rows[0] == row


def test_a_row_may_nest_sixty_four_levels_itself_included(tmp_path: Path) -> None:
    row = user(1, note=nested(63))
    (conversation,) = load_trace(write(tmp_path / "t.jsonl", row, says(2))).conversations
    assert conversation.rows[0] == row


def test_a_leading_metadata_row_is_kept_apart(tmp_path: Path) -> None:
    metadata = {"_type": "dataset_metadata", "made": "2026"}
    trace = load_trace(write(tmp_path / "t.jsonl", metadata, user(1), says(2)))
    assert trace.metadata == metadata
    assert [c.id for c in trace.conversations] == ["c"]


def test_a_trace_may_end_with_calls_that_nothing_answers(tmp_path: Path) -> None:
    (conversation,) = load_trace(write(tmp_path / "t.jsonl", user(1), calls(2, "a"))).conversations
    assert conversation.turns[0].recorded_results == ()


def other(row: dict[str, Any], id: str = "d") -> dict[str, Any]:
    return {**row, "conversation_id": id}


WRONG_ORDER = {
    "tool without a call": (
        [user(1), says(2), results(3, "a"), says(4)],
        "3: conversation 'c': tool row without a preceding call; "
        "each 'tool' row follows an assistant row with 'tool_calls'",
    ),
    "tool after tool": (
        [user(1), calls(2, "a"), results(3, "a"), results(4, "a"), says(5)],
        "4: conversation 'c': tool row without a preceding call",
    ),
    "user after calls": (
        [user(1), calls(2, "a"), user(3), says(4)],
        "3: conversation 'c': user row after unanswered calls",
    ),
    "user after tool": (
        [user(1), calls(2, "a"), results(3, "a"), user(4), says(5)],
        "4: conversation 'c': user row right after a tool row",
    ),
    "user after user": ([user(1), user(2), says(3)], "2: conversation 'c': user row right after"),
    "assistant first": ([says(1)], "1: conversation 'c': starts with an assistant row"),
    "tool first": ([results(1, "a")], "1: conversation 'c': tool row without a preceding call"),
    "assistant twice": ([user(1), says(2), says(3)], "3: conversation 'c': two assistant rows"),
    "ends with tool": (
        [user(1), calls(2, "a"), results(3, "a")],
        "3: conversation 'c': ends with a tool row",
    ),
    "ends with user": ([user(1)], "1: conversation 'c': ends with a user row"),
    "gap": ([user(1), says(3)], "2: conversation 'c': turn 3 where 2 is due"),
    "starts at 0": ([user(0), says(1)], "1: conversation 'c': 'turn' must be at least 1"),
    "twice the same turn": ([user(1), says(1)], "2: conversation 'c': turn 1 where 2 is due"),
    "interleaved": (
        [user(1), other(user(1)), other(says(2)), says(2)],
        "4: conversation 'c': its rows are not consecutive",
    ),
    "missing result": (
        [user(1), calls(2, "a", "b"), results(3, "a"), says(4)],
        "3: conversation 'c': call 'b' has no result",
    ),
    "strange result": (
        [user(1), calls(2, "a"), results(3, "a", "z"), says(4)],
        "3: conversation 'c': result 'z' has no call before it",
    ),
    "another system prompt": (
        [user(1, system="a"), says(2), user(3, system="b"), says(4)],
        "3: conversation 'c': 'system' differs from the first row's",
    ),
    "metadata later on": (
        [user(1), says(2), {"_type": "dataset_metadata"}],
        "3: 'conversation_id' is missing",
    ),
}


@pytest.mark.parametrize("case", WRONG_ORDER)
def test_a_row_out_of_order_is_named_with_its_remedy(case: str, tmp_path: Path) -> None:
    rows, message = WRONG_ORDER[case]
    path = write(tmp_path / "t.jsonl", *rows)
    with pytest.raises(BadInputError) as error:
        load_trace(path)
    assert str(error.value).startswith(f"{path}:{message}")
    assert "\n" not in str(error.value)


BAD_CALL = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": 7}}
WRONG_SHAPE = {
    "no turn": (
        {"conversation_id": "c", "role": "user", "content": "x"},
        "conversation 'c': 'turn' is missing",
    ),
    "no role": ({"conversation_id": "c", "turn": 1}, "conversation 'c': 'role' is missing"),
    "role unknown": ({**user(1), "role": "system"}, '\'role\' must be "user" or "assistant"'),
    "role a list": ({**user(1), "role": ["user"]}, '\'role\' must be "user" or "assistant"'),
    "id a number": ({**user(1), "conversation_id": 5}, "'conversation_id' must be string"),
    "id empty": ({**user(1), "conversation_id": ""}, "'conversation_id' must match"),
    "id with an escape": ({**user(1), "conversation_id": "\x1b[2J"}, "'conversation_id' must mat"),
    "turn a string": ({**user(1), "turn": "1"}, "'turn' must be integer, not string"),
    "turn true": ({**user(1), "turn": True}, "'turn' must be integer, not boolean"),
    "content null": (user(1, content=None), "'content' must be string or array, not null"),
    "content empty": (user(1, content=""), "'content' must not be empty"),
    "says nothing": (
        says(1, content=""),
        "needs a non-empty 'content' or a non-empty 'tool_calls'",
    ),
    "no calls": (calls(1, content="hi"), "'tool_calls' must not be empty"),
    "bad arguments": (
        calls(1, tool_calls=[BAD_CALL]),
        "'tool_calls[0].function.arguments' must be string or object, not number",
    ),
    "call without id": (
        calls(1, tool_calls=[{"type": "function", "function": BAD_CALL["function"]}]),
        "'tool_calls[0].id' is missing",
    ),
    "no results": (results(1), "'tool_results' must not be empty"),
    "result a string": (results(1, tool_results=["x"]), "'tool_results[0]' must be object"),
    "negative delay": (results(1, "a", delay_seconds=-1), "'delay_seconds' must be at least 0"),
    "endless delay": (results(1, "a", delay_seconds=1e9), "'delay_seconds' must be at most 86400"),
    "delay NaN": (
        results(1, "a", delay_seconds=float("nan")),
        "not usable JSON (NaN is no JSON number)",
    ),
    "half a character": (user(1, content="\ud800"), "holds half of a surrogate pair"),
    "half a character in a name": (user(1, **{"\ud800": 1}), "holds half of a surrogate pair"),
    "nested without end": (
        user(1, note=nested(64)),
        "the object is nested more than 64 levels deep",
    ),
    "limit absurd": (user(1, max_new_tokens=1e300), "'max_new_tokens' must be at most 1048576"),
    "tools on a tool row": (results(1, "a", tools=[]), "'tools' can't stand here; remove it"),
    "tools a string": (user(1, tools="bash"), "'tools' must be array or null, not string"),
    "limit zero": (user(1, max_new_tokens=0), "'max_new_tokens' must be at least 1"),
    "a list": ([1], "expected a JSON object, found list"),
}


@pytest.mark.parametrize("case", WRONG_SHAPE)
def test_a_row_of_a_wrong_shape_is_named_with_its_field(case: str, tmp_path: Path) -> None:
    row, message = WRONG_SHAPE[case]
    path = write(tmp_path / "t.jsonl", other(user(1)), other(says(2)), row)
    with pytest.raises(BadInputError) as error:
        load_trace(path)
    assert str(error.value).startswith(f"{path}:3: ")
    assert message in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "holds no conversation"),
        (b'{"_type": "dataset_metadata"}\n', "holds no conversation"),
        (b'{"_type": "dataset_metadata", "made": NaN}\n', "1: not usable JSON .NaN is no"),
        (b'{"conversation_id": "c", "tu', "1: not valid JSON"),
        (b'\n\n{"a": "\xff"}\n', "3: not UTF-8"),
        (b"[" * 200_000, "1: not usable JSON"),
    ],
)
def test_a_file_that_holds_no_rows_is_told_so(text: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(text)
    with pytest.raises(BadInputError, match=message):
        load_trace(path)
