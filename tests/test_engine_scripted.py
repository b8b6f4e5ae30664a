"""The engine that is no model: prepared answers on an exact schedule."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest, Completion, FinishReason
from edge_agentic.engine.scripted import (
    ScriptedAnswer,
    ScriptedDelays,
    ScriptedEngine,
    read_answers,
)
from tests.trace_samples import call

MS = 1_000_000


class Time:
    """A clock that only `sleep` moves."""

    def __init__(self) -> None:
        self.now_ns = 5_000

    def clock(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1000 * MS)


def answer(
    reply: ScriptedAnswer, *, delays: ScriptedDelays | None = None, **limits: float
) -> Completion:
    time = Time()
    engine = ScriptedEngine(
        {"r": reply}.get, source="test", delays=delays, clock=time.clock, sleep=time.sleep
    )
    request = ChatRequest(
        "r", "c", [], [], int(limits.get("tokens", 100)), limits.get("deadline_s")
    )
    return engine.generate(request)


def test_a_token_is_four_characters_on_the_schedule() -> None:
    done = answer(ScriptedAnswer(text="abcdefghi"), delays=ScriptedDelays(20, 5))
    assert done.times.arrivals_ns == (20 * MS, 25 * MS, 30 * MS)
    assert (done.tokens.output, done.text) == (3, "abcdefghi")
    assert done.finish_reason is FinishReason.STOP


def test_calls_are_given_as_calls() -> None:
    done = answer(ScriptedAnswer([call("a", "ls")]))
    assert [c.name for c in done.tool_calls] == ["bash"]
    assert done.finish_reason is FinishReason.TOOL_CALLS


def test_a_limit_cuts_the_answer_and_its_calls() -> None:
    done = answer(ScriptedAnswer([call("a", "ls")], "I will look. "), tokens=3)
    assert (done.tokens.output, done.text) == (3, "I will look.")
    assert (done.tool_calls, done.finish_reason) == ((), FinishReason.LENGTH)


def test_a_deadline_keeps_what_came_before_it() -> None:
    done = answer(ScriptedAnswer(text="x" * 40), delays=ScriptedDelays(10, 10), deadline_s=0.035)
    assert (done.outcome, done.tokens.output) == (Outcome.TIMEOUT, 3)


def test_an_empty_answer_has_no_first_token() -> None:
    done = answer(ScriptedAnswer())
    assert (done.outcome, done.tokens.output, done.times.arrivals_ns) == (Outcome.OK, 0, ())


def test_a_request_without_an_answer_fails() -> None:
    engine = ScriptedEngine({}.get, source="test")
    done = engine.generate(ChatRequest("gate/x", "c", [], [], 1))
    assert done.outcome is Outcome.ENGINE_FAILED
    assert done.error == "no scripted answer for gate/x"


@pytest.mark.parametrize(
    "delays", [(-1, 0), (0, -0.5), (float("nan"), 0), (0, float("inf")), (1e300, 0)]
)
def test_impossible_delays_are_refused(delays: tuple[float, float]) -> None:
    with pytest.raises(BadInputError, match="delay"):
        ScriptedDelays(*delays)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"text": "x"}', "'request_id'"),
        ('{"request_id": 3}', "'request_id'"),
        ('{"request_id": "r", "text": 3}', "'text'"),
        ('{"request_id": "r", "tool_calls": {}}', "'tool_calls' must be a list"),
        ('{"request_id": "r", "tool_calls": [1]}', "'tool_calls' must be a list"),
        ('{"request_id": "a"}', 'a second answer for "a"'),
        ("[]", "expected a JSON object"),
    ],
)
def test_a_wrong_answers_file_is_named_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(f'{{"request_id": "a", "text": "x"}}\n{line}\n')
    with pytest.raises(BadInputError) as caught:
        read_answers(path)
    assert str(caught.value).startswith(f"{path}:2: ") and said in str(caught.value)
