"""A server that processes the whole prompt in every turn is found out, by counts or by times."""

from __future__ import annotations

import pytest

from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import TokenCounts, TokenTimes
from edge_agentic.engine.server_kinds import ServerKind
from edge_agentic.measure.prefill_finding import prefill_findings
from edge_agentic.measure.records import Turn

MS = 1_000_000
COLD_PROMPT = 2000
NEW_TOKENS = 100
TURNS = 12


def turn(
    number: int, ttft_ms: float | None, *, cached: int | None = None, prompt: int | None = None
) -> Turn:
    prompt = COLD_PROMPT + NEW_TOKENS * (number - 1) if prompt is None else prompt
    arrivals = () if ttft_ms is None else (int(ttft_ms * MS),)
    return Turn(
        session=1,
        conversation_id="fix-parser",
        number=number,
        outcome=Outcome.OK,
        times=TokenTimes(0, arrivals),
        tokens=TokenCounts(
            prompt=prompt,
            cached=cached,
            computed=None if cached is None else prompt - cached,
            ideal=prompt if number == 1 else NEW_TOKENS,
            output=5,
        ),
        inline_score=1.0,
        tools=(),
        step_end_ns=10**12,
    )


def prompt_of(number: int) -> int:
    return COLD_PROMPT + NEW_TOKENS * (number - 1)


def counted(cached_share: float) -> list[Turn]:
    """Turns of a server that finds that share of the earlier prompt in its cache."""
    return [turn(1, 900, cached=0)] + [
        turn(n, 900, cached=int(prompt_of(n - 1) * cached_share)) for n in range(2, TURNS)
    ]


def timed(ms_per_prompt_token: float, ms_per_new_token: float, fixed_ms: float = 5) -> list[Turn]:
    first = turn(1, fixed_ms + COLD_PROMPT * 1.0)
    return [first] + [
        turn(n, fixed_ms + prompt_of(n) * ms_per_prompt_token + NEW_TOKENS * ms_per_new_token)
        for n in range(2, TURNS)
    ]


def test_counts_name_the_worst_turn_and_the_servers_remedy() -> None:
    (line,) = prefill_findings(counted(0), ServerKind.LLAMA_SERVER)
    assert line.startswith(
        "10 of 10 later turns processed again what was there before; "
        "turn 11 of 'fix-parser' re-processed 2900 of 3000 tokens. "
    )
    assert "--ctx-checkpoints" in line


def test_reuse_but_for_a_block_is_no_waste() -> None:
    assert prefill_findings(counted(0.95), ServerKind.VLLM) == []
    assert prefill_findings(counted(1), ServerKind.VLLM) == []


def test_without_a_server_there_is_no_remedy() -> None:
    (line,) = prefill_findings(counted(0), None)
    assert line.endswith("re-processed 2900 of 3000 tokens.")


def test_times_that_grow_with_the_prompt_at_the_cold_rate_tell_the_same() -> None:
    (line,) = prefill_findings(timed(1.0, 0), ServerKind.VLLM)
    assert "grows with the whole prompt (1000.0 ms per 1000 tokens" in line
    assert "; turn 11 of 'fix-parser' re-processed about 2900 of 3000 tokens. " in line
    assert "--enable-prefix-caching" in line


@pytest.mark.parametrize(
    "turns",
    [
        timed(0, 1.0),
        timed(0.05, 1.0),
        timed(1.0, 0)[:5],
        timed(1.0, 0)[1:],
        [turn(n, None) for n in range(1, TURNS)],
        [turn(n, 50, prompt=2000) for n in range(1, TURNS)],
        [],
    ],
    ids=["reuse", "slower attention", "too few", "no cold turn", "no times", "flat", "none"],
)
def test_other_times_tell_nothing(turns: list[Turn]) -> None:
    assert prefill_findings(turns, ServerKind.VLLM) == []


def test_times_say_nothing_where_the_server_counts() -> None:
    turns = [turn(n, prompt_of(n), cached=0 if n == 1 else prompt_of(n - 1)) for n in range(1, 12)]
    assert prefill_findings(turns, ServerKind.VLLM) == []
