"""A stream is stamped as it arrives, whatever pieces the network makes of it."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agentic.core.clock import NS_PER_S
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest, Completion
from edge_agentic.engine.openai import OpenAIEngine, ServedModel
from edge_agentic.engine.openai_body import body_bytes, body_marks, open_body, read_head
from edge_agentic.engine.openai_events import read_events
from tests.socket_server import (
    DONE,
    STREAM_END,
    STREAM_HEAD,
    Act,
    SocketServer,
    Step,
    chunked,
    delta,
    event,
    response,
    stream,
)

PAUSE_S = 0.05
TEXT = "Zürich, 東京, 🚢"


def ask(script: list[Step], *, deadline_s: float | None = 10.0) -> Completion:
    with SocketServer(script) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m"))
        completion = engine.generate(
            ChatRequest("r", "c", [{"role": "user", "content": "hi"}], (), 8, deadline_s)
        )
        engine.close()
    return completion


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


WHOLE = stream([b": ping\n\n", *(delta({"content": letter}) for letter in TEXT), delta({}, "stop")])


@settings(deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=12))
def test_the_pieces_in_which_a_response_arrives_make_no_difference(cuts: list[int]) -> None:
    received, reads, body = bytearray(), [], None
    for number, piece in enumerate(pieces(WHOLE, cuts)):
        received += piece
        reads.append((len(received), number))
        head = read_head(received, 0)
        if head and body is None:
            body = open_body(head)
        whole = body is not None and body.is_whole(received)
    assert whole
    assert body is not None
    marks = body_marks(reads, body.pieces)
    events = read_events(body_bytes(received, body.pieces), marks)
    expected = [delta({"content": letter}) for letter in TEXT] + [delta({}, "stop")]
    assert [event.data for event in events] == [e[len("data: ") : -2] for e in expected]
    arrivals = [event.arrival_ns for event in events]
    assert arrivals == sorted(arrivals)


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_http_chunks_may_split_a_character_or_an_event(sizes: list[int]) -> None:
    body = b"".join(f'data: {{"t":"{letter}"}}\r\n\r\n'.encode() for letter in TEXT)
    framed, position = b"", 0
    while position < len(body):
        for size in sizes:
            if piece := body[position : position + size]:
                framed += chunked(piece)
                position += size
    received = bytearray(STREAM_HEAD + framed + STREAM_END)
    head = read_head(received, 0)
    assert head is not None
    parts = open_body(head)
    assert parts.is_whole(received)
    events = read_events(body_bytes(received, parts.pieces), [(len(body), 5)])
    assert [e.data.decode() for e in events] == [f'{{"t":"{letter}"}}' for letter in TEXT]


def test_each_delta_has_the_time_of_the_read_that_completed_it() -> None:
    first, second = delta({"content": "a"}), delta({"content": "b"})
    script: list[Step] = [
        *(STREAM_HEAD, PAUSE_S, chunked(first)),
        # Half an event is no arrival.
        *(PAUSE_S, chunked(second[:20]), PAUSE_S, chunked(second[20:])),
        *map(chunked, [delta({}, "stop"), DONE]),
        STREAM_END,
    ]
    completion = ask(script)
    at_s = [arrival / NS_PER_S for arrival in completion.times.arrivals_ns]
    assert len(at_s) == 2
    assert at_s[0] >= PAUSE_S
    assert at_s[1] >= 3 * PAUSE_S


@pytest.mark.parametrize(
    "empty",
    [{"role": "assistant"}, {"role": "assistant", "content": ""}, {"content": None}, {}],
)
def test_a_role_only_delta_is_not_a_first_token(empty: dict[str, object]) -> None:
    script: list[Step] = [
        *(STREAM_HEAD, chunked(delta(empty)), PAUSE_S),
        *map(chunked, [delta({"content": "a"}), delta({}, "stop"), DONE]),
        STREAM_END,
    ]
    times = ask(script).times
    assert len(times.arrivals_ns) == 1
    assert times.arrivals_ns[0] >= PAUSE_S * NS_PER_S


@pytest.mark.parametrize(
    "carrying",
    [
        {"content": "a"},
        {"reasoning_content": "a"},
        {"reasoning": "a"},
        {"tool_calls": [{"index": 0, "id": "1", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": {"a": 1}}}]},
    ],
)
def test_text_reasoning_names_and_arguments_are_tokens(carrying: dict[str, object]) -> None:
    completion = ask([stream([delta(carrying), delta({}, "stop")])])
    assert len(completion.times.arrivals_ns) == 1


USAGE = {"prompt_tokens": 90, "completion_tokens": 3}
TIMINGS = {"prompt_n": 12, "cache_n": 78, "predicted_n": 3, "prompt_ms": 1.5, "other": "x"}


def answer(*more: bytes, letters: str = "abc") -> list[Step]:
    return [stream([*(delta({"content": c}) for c in letters), delta({}, "stop"), *more])]


def test_counts_come_from_usage_and_are_none_without_it() -> None:
    without = ask(answer()).tokens
    assert (without.prompt, without.cached, without.computed, without.output) == (None,) * 4
    assert without.ideal is None
    tokens = ask(answer(event({"choices": [], "usage": USAGE}), event({"usage": {}}))).tokens
    assert (tokens.prompt, tokens.output, tokens.cached, tokens.computed) == (90, 3, None, None)


def test_cached_tokens_come_from_usage_or_from_timings() -> None:
    usage = {**USAGE, "prompt_tokens_details": {"cached_tokens": 80}}
    tokens = ask(answer(event({"choices": [], "usage": usage}))).tokens
    assert (tokens.cached, tokens.computed) == (80, 10)
    completion = ask(answer(event({"choices": [], "timings": TIMINGS})))
    tokens = completion.tokens
    assert (tokens.prompt, tokens.cached, tokens.computed, tokens.output) == (90, 78, 12, 3)
    assert completion.server == {
        "prompt_n": 12,
        "cache_n": 78,
        "predicted_n": 3,
        "prompt_ms": 1.5,
    }


@pytest.mark.parametrize("bad", [None, "90", -1, 1.5, True, {}, [1]])
def test_counts_that_are_no_counts_are_none(bad: object) -> None:
    usage = {"prompt_tokens": bad, "completion_tokens": bad, "prompt_tokens_details": bad}
    tokens = ask(answer(event({"choices": [], "usage": usage}))).tokens
    assert (tokens.prompt, tokens.output, tokens.cached) == (None, None, None)


@pytest.mark.parametrize(
    ("deltas", "output", "first"),
    [(3, 3, 1), (3, 4, 1), (3, 17, None), (3, 2, None), (1, 1, 1)],
    ids=["one token each", "and an end token", "several in one", "more deltas than tokens", "one"],
)
def test_the_tokens_of_the_first_delta_are_known_only_where_deltas_are_tokens(
    deltas: int, output: int, first: int | None
) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": output}
    completion = ask(answer(event({"choices": [], "usage": usage}), letters="a" * deltas))
    assert completion.times.first_delta_tokens == first


def test_a_server_that_counts_along_tells_the_tokens_of_the_first_delta() -> None:
    script: list[Step] = [
        stream(
            [
                delta({"content": "abc"}, usage={"prompt_tokens": 5, "completion_tokens": 4}),
                delta({"content": "def"}, usage={"prompt_tokens": 5, "completion_tokens": 9}),
                delta({}, "stop"),
            ]
        )
    ]
    completion = ask(script)
    assert (completion.times.first_delta_tokens, completion.tokens.output) == (4, 9)


def test_a_server_that_does_not_stream_gives_one_delta() -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": '{"a": 1}'}}
    body = event(
        {
            "choices": [{"index": 0, "message": {"tool_calls": [call]}, "finish_reason": "stop"}],
            "usage": USAGE,
        }
    )
    completion = ask([response(body[len("data: ") :])])
    assert completion.outcome is Outcome.OK
    assert [call.name for call in completion.tool_calls] == ["f"]
    assert len(completion.times.arrivals_ns) == 1


def test_a_body_may_last_until_the_connection_closes() -> None:
    head = b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    completion = ask([head, delta({"content": "a"}), delta({}, "stop"), DONE, Act.CLOSE])
    assert (completion.outcome, completion.content) == (Outcome.OK, "a")


def test_interim_responses_are_passed_over() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    script: list[Step] = [interim, PAUSE_S, *answer()]
    assert ask(script).content == "abc"


def test_turns_share_one_connection() -> None:
    with SocketServer(answer(), answer(), answer()) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m"))
        for _ in range(3):
            engine.generate(ChatRequest("r", "c", [{"role": "user", "content": "h"}], (), 8, 5.0))
        engine.close()
    assert (len(server.requests), server.connections) == (3, 1)


def test_ideal_tokens_are_what_the_conversation_added() -> None:
    def asks(prompt: int) -> list[Step]:
        usage = {"prompt_tokens": prompt, "completion_tokens": 3}
        return answer(event({"choices": [], "usage": usage}))

    one = [{"role": "user", "content": "one"}]
    two = [*one, {"role": "assistant", "content": "x"}, {"role": "user", "content": "two"}]
    with SocketServer(asks(40), asks(100), asks(40)) as server:
        engine = OpenAIEngine(ServedModel(server.endpoint, "m"))
        ideals = [
            engine.generate(ChatRequest("r", conversation, messages, (), 8, 5.0)).tokens.ideal
            for conversation, messages in (("a", one), ("a", two), ("b", one))
        ]
        engine.close()
    assert ideals == [40, 60, 40]


def test_a_number_that_no_float_holds_is_unknown() -> None:
    huge = 10**400
    done = ask(
        answer(
            event(
                {
                    "choices": [],
                    "usage": {"prompt_tokens": huge, "completion_tokens": 10**30},
                    "timings": {"prompt_ms": huge, "predicted_ms": 5, "prompt_n": huge},
                }
            )
        )
    )
    assert (done.outcome, done.tokens.prompt, done.tokens.output) == (Outcome.OK, None, None)
    assert done.server == {"predicted_ms": 5}


def test_an_event_of_a_million_lines_is_joined_in_no_time() -> None:
    lines = 1_000_000
    started_s = time.process_time()
    (whole,) = read_events(b"data: x\n" * lines + b"\n", [(lines * 8 + 1, 1)])
    assert len(whole.data) == 2 * lines - 1
    assert time.process_time() - started_s < 10
