from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from edge_agentic.core.jsonio import dump_pretty
from edge_agentic.measure.summary import build_summary
from tests.measure_journals import (
    MANIFEST,
    MS,
    REFERENCE,
    SAMPLES,
    SECOND,
    Event,
    conversation_finished,
    end,
    failed_turn,
    gate,
    gate_case,
    gate_started,
    other_tool,
    replay_started,
    run_started,
    tool,
    turn,
    whole_run,
)

TOP_LEVEL = [
    "schema",
    "valid",
    "complete",
    "invalid_reasons",
    "division",
    "resumed",
    "engine",
    "gate",
    "replay",
    "energy",
    "device",
    "thermal",
    "memory",
    "null_reasons",
]
DISTRIBUTIONS = (
    "ttft_s",
    "ttft_cold_s",
    "ttft_warm_s",
    "tpot_s",
    "tpot_loadgen_s",
    "turn_latency_s",
    "tool_time_s",
    "step_s",
    "conversation_s",
)

JOURNALS: dict[str, list[Event]] = {
    "empty": [],
    "only started": [run_started()],
    "gate cut short": [run_started(), *gate()[:3]],
    "gate failed": [run_started(), *gate(wrong=SAMPLES), *end()[1:]],
    "gate without cases": [run_started(), *gate(samples=()), *end()[1:]],
    "replay without gate": [run_started(), replay_started(1), turn(), *end()],
    "no turns": whole_run([]),
    "one turn": whole_run([turn()]),
    "all failed": whole_run([failed_turn(1), failed_turn(2)]),
    "no token counts": whole_run(
        [turn(output_tokens=None, computed_tokens=None, cached_tokens=None, ideal_tokens=None)]
    ),
    "instant": whole_run(
        [turn(issued_ns=0, arrivals_ns=[0], step_end_ns=0, computed_tokens=0, ideal_tokens=0)]
    ),
    "many turns": whole_run([turn(number) for number in range(1, 80)]),
}


def summarise(events: list[Event]) -> Event:
    return build_summary(MANIFEST, events)


def nulls(value: Any, path: str = "") -> Iterator[str]:
    """The dotted path of every null."""
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from nulls(item, f"{path}.{key}" if path else key)


@pytest.mark.parametrize("name", JOURNALS)
def test_every_summary_has_all_keys_and_a_reason_for_every_null(name: str) -> None:
    summary = summarise(JOURNALS[name])
    assert list(summary) == TOP_LEVEL
    assert summary["schema"] == "edge-agentic/summary/1"
    reasons = summary["null_reasons"]
    for path in nulls(summary):
        parts = path.split(".")
        ancestors = [".".join(parts[: depth + 1]) for depth in range(len(parts))]
        assert any(ancestor in reasons for ancestor in ancestors), path
    missing = set(nulls(summary))
    for path in reasons:
        assert any(null == path or null.startswith(f"{path}.") for null in missing), path


@pytest.mark.parametrize("name", JOURNALS)
def test_a_summary_survives_json_and_is_the_same_bytes_every_time(name: str) -> None:
    text = dump_pretty(summarise(JOURNALS[name]))
    again = [json.loads(json.dumps(event)) for event in JOURNALS[name]]
    assert dump_pretty(summarise(again)) == text
    assert json.loads(text) == summarise(JOURNALS[name])


def test_a_run_of_two_turns_by_hand() -> None:
    second = turn(2, cached_tokens=900, arrivals_ns=[100 * MS, 300 * MS, 500 * MS])
    summary = summarise(whole_run([turn(1), second | {"output_tokens": 3, "inline_score": 1.0}]))
    assert summary["valid"] and summary["complete"]
    assert summary["invalid_reasons"] == []
    replay = summary["replay"]
    assert replay["turns"] == {
        "issued": 2,
        "expected": 2,
        "observed": 2,
        "missing": 0,
        "failed": 0,
        "scored": 2,
    }
    assert replay["inline_score"] == 0.75
    assert replay["duration_s"] == 2.5
    assert replay["output_tokens"] == 8
    assert replay["output_tokens_per_s"] == 3.2
    assert replay["output_tokens_per_s_model_only"] == pytest.approx(8 / 1.5)
    assert replay["turns_per_s"] == 0.8
    assert replay["decode_tokens_per_s"] == 5.0
    assert replay["prefill_tokens_per_s"] == pytest.approx(1100 / 0.3)
    assert replay["prefill"] == {
        "prompt_tokens": 2000,
        "cached_tokens": 900,
        "computed_tokens": 1100,
        "ideal_tokens": 1096,
        "efficiency": pytest.approx(1096 / 1100),
        "accounted_turns": 2,
        "findings": [],
    }
    assert replay["ttft_s"]["mean"] == 0.15
    assert (replay["ttft_cold_s"]["p50"], replay["ttft_warm_s"]["p50"]) == (0.2, 0.1)
    assert replay["turn_latency_s"]["p99"] == 0.5
    assert replay["step_s"]["p99"] == 1.0
    assert replay["tool_time_s"]["mean"] == 0.5
    assert replay["conversation_s"]["mean"] == 3.5
    assert replay["tools"] == {
        "executed": 2,
        "compared": 2,
        "exact": 2,
        "fidelity": 1.0,
        "differing_turns": 0,
        "differences": [],
        "tried_calls": 0,
        "executable_rate": None,
        "tried_turns": 0,
        "effect_match": None,
        "checks_passed": 1,
        "checks_total": 1,
    }
    assert summary["memory"]["peak_rss_mb"] == 812.5


def test_a_distribution_has_every_percentile_and_its_estimate() -> None:
    replay = summarise(JOURNALS["many turns"])["replay"]
    for name in DISTRIBUTIONS:
        figures = replay[name]
        assert set(figures) == {
            "mean",
            "mean_interval95",
            "p50",
            "p90",
            "p95",
            "p99",
            "n",
            "early_stopping",
        }
        assert set(figures["early_stopping"]) == {"p50", "p90", "p95", "p99"}
    assert replay["ttft_s"]["early_stopping"] == {"p50": 0.2, "p90": 0.2, "p95": None, "p99": None}


@pytest.mark.parametrize(
    "events",
    [
        [run_started(), *gate(wrong=SAMPLES), replay_started(1), turn(), *end()],
        [run_started(), *gate()[:-1], replay_started(1), turn(), *end()],
        [run_started(), replay_started(1), turn(), *end()],
        [
            run_started(),
            gate_started(),
            *(gate_case(sample) for sample in SAMPLES[:3]),
            {"event": "gate_finished"},
            replay_started(1),
            turn(),
            *end(),
        ],
    ],
    ids=["failed", "unfinished", "never run", "a case without a record"],
)
def test_without_a_passed_gate_no_speed_figure_appears_anywhere(events: list[Event]) -> None:
    summary = summarise(events)
    assert not summary["valid"]
    assert summary["replay"] is None
    text = json.dumps({key: summary[key] for key in summary if key != "null_reasons"})
    assert "per_s" not in text
    assert '_s"' not in text


def test_the_gate_is_compared_exactly_with_a_share_of_its_reference() -> None:
    samples = tuple(f"simple_python_{i}" for i in range(100))
    events = [
        run_started(),
        gate_started(samples, REFERENCE),
        *(gate_case(sample, i < 84) for i, sample in enumerate(samples)),
        {"event": "gate_finished"},
        *end()[1:],
    ]
    section = summarise(events)["gate"]
    assert section["thresholds"] == {
        "overall_accuracy": 83.6431,
        "normalized_single_turn_score": 85.3212,
    }
    assert section["overall_accuracy"] == 84.0
    assert not section["passed"]
    assert len(section["shortfalls"]) == 1
    assert section["reference"]["id"] == "qwen3.6-27b"
    low, high = section["interval95"]["overall_accuracy"]
    assert low < 84.0 < high


def test_a_gate_request_that_failed_is_wrong_even_where_no_call_is_due() -> None:
    events = [
        run_started(),
        gate_started(),
        *(
            gate_case(sample, outcome="timeout" if "irrelevance" in sample else "ok")
            for sample in SAMPLES
        ),
        {"event": "gate_finished"},
    ]
    section = summarise(events)["gate"]
    assert section["overall_accuracy"] == 75.0
    assert (section["total_samples"], section["issued_samples"]) == (3, 4)


def test_a_case_answered_twice_counts_once_by_its_first_answer() -> None:
    events = [
        run_started(),
        *gate(wrong=SAMPLES[:1])[:-1],
        gate_case(SAMPLES[0], malformed=True),
        {"event": "gate_finished"},
    ]
    section = summarise(events)["gate"]
    assert section["overall_accuracy"] == 75.0
    assert section["malformed"] == 0


def test_a_gate_that_was_cut_short_has_no_scores() -> None:
    summary = summarise(JOURNALS["gate cut short"])
    assert summary["gate"]["overall_accuracy"] is None
    assert summary["gate"]["category_scores"] == {}
    assert not summary["gate"]["passed"]
    assert "The function-calling gate stopped after 2 of 4 cases." in summary["invalid_reasons"]


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (JOURNALS["empty"], "The function-calling gate did not run."),
        (JOURNALS["gate failed"], "The function-calling gate failed: overall_accuracy: 0.0 %"),
        (JOURNALS["gate without cases"], "The function-calling gate has no case that counts."),
        (
            [run_started(), *gate()[:-2], {"event": "gate_finished"}, *end()[1:]],
            "The function-calling gate is incomplete: no record of 1 of 4 cases.",
        ),
        ([run_started(), *gate(), *end()[1:]], "The replay did not run."),
        (JOURNALS["no turns"], "The data set holds no turn: nothing was measured."),
        (
            [run_started(), *gate(), replay_started(4), turn(1), failed_turn(2), *end()],
            "3 of 4 turns have no completed answer (1 failed, 2 never issued).",
        ),
        (
            [run_started(), *gate(), replay_started(1), turn(1), turn(2), *end()],
            "Issued turns: 2; the data set holds 1.",
        ),
        (
            [run_started(), *gate(), replay_started(2), turn(1), turn(2), turn(1), *end()],
            "Turns recorded more than once: 1 (first: turn 1 of 'fix-parser'); "
            "only the first record of each counts.",
        ),
        (
            whole_run([turn(1), turn(2)], scorable=1),
            "Scored turns: 2; the data set has 1 that can be scored.",
        ),
        (
            [event for event in whole_run([turn()]) if event["event"] != "replay_finished"],
            "The replay did not reach its end.",
        ),
        (whole_run([turn()])[:-1], "The journal ends before the run did: it was cut short."),
        (
            [*whole_run([turn()])[:-3], {"event": "interrupted", "signal": "SIGINT"}],
            "The run was interrupted by SIGINT.",
        ),
    ],
)
def test_what_makes_a_run_invalid_is_said_in_a_sentence(events: list[Event], reason: str) -> None:
    summary = summarise(events)
    assert not summary["valid"]
    assert any(given.startswith(reason) for given in summary["invalid_reasons"])


def test_a_run_cut_anywhere_has_a_summary_and_is_not_valid() -> None:
    events = whole_run([turn(1), failed_turn(2), turn(3)])
    for length in range(len(events)):
        summary = summarise(events[:length])
        assert not summary["valid"]
        assert not summary["complete"]


def test_an_interrupted_run_stays_incomplete_though_it_closed_its_journal() -> None:
    events = whole_run([turn()])
    summary = summarise([*events[:-1], {"event": "interrupted", "signal": "SIGTERM"}, events[-1]])
    assert not summary["complete"]
    assert summary["invalid_reasons"] == ["The run was interrupted by SIGTERM."]


def test_figures_have_eight_significant_digits() -> None:
    arrivals = [[100 * MS], [100 * MS], [101 * MS]]
    turns = [turn(n, arrivals_ns=arrival) for n, arrival in enumerate(arrivals, start=1)]
    assert summarise(whole_run(turns))["replay"]["ttft_s"]["mean"] == 0.10033333


def test_a_failed_gate_is_a_complete_run() -> None:
    assert summarise(JOURNALS["gate failed"])["complete"]


def test_turns_that_never_ran_are_missing_by_the_data_sets_own_count() -> None:
    events = [run_started(), *gate(), replay_started(10), turn(1), failed_turn(2), *end()]
    assert summarise(events)["replay"]["turns"] == {
        "issued": 2,
        "expected": 10,
        "observed": 1,
        "missing": 9,
        "failed": 1,
        "scored": 2,
    }


def test_a_failed_turn_scores_zero_and_a_turn_with_nothing_to_score_is_left_out() -> None:
    turns = [
        turn(1, inline_score=0.9),
        failed_turn(2, inline_score=1.0),
        turn(3, inline_score=None),
    ]
    assert summarise(whole_run(turns))["replay"]["inline_score"] == 0.45


def test_the_inline_score_has_four_decimals() -> None:
    turns = [turn(1, inline_score=1.0), turn(2, inline_score=0.0), turn(3, inline_score=0.0)]
    assert summarise(whole_run(turns))["replay"]["inline_score"] == 0.3333


def test_failed_turns_are_counted_and_not_timed() -> None:
    partial = failed_turn(2, arrivals_ns=[900 * MS], output_tokens=50)
    replay = summarise(whole_run([turn(1), partial]))["replay"]
    assert replay["output_tokens"] == 5
    assert replay["ttft_s"]["n"] == replay["turn_latency_s"]["n"] == 1
    assert replay["duration_s"] == 2.9


def test_a_repeated_turn_counts_by_its_first_record() -> None:
    repeat = turn(1, output_tokens=500, inline_score=0.0)
    replay = summarise(whole_run([turn(1), repeat]))["replay"]
    assert replay["output_tokens"] == 5
    assert replay["inline_score"] == 0.5
    assert replay["turns"]["issued"] == 1


def test_one_unknown_token_count_makes_the_total_unknown_not_smaller() -> None:
    replay = summarise(whole_run([turn(1), turn(2, output_tokens=None)]))["replay"]
    assert replay["output_tokens"] is None
    assert replay["output_tokens_per_s"] is None
    assert replay["decode_tokens_per_s"] == 5.0


def test_turns_whose_output_came_in_one_burst_are_skipped_and_counted() -> None:
    burst = turn(2, output_tokens=60, arrivals_ns=[900 * MS])
    replay = summarise(whole_run([turn(1), burst]))["replay"]
    assert replay["decode_tokens_per_s"] == 5.0
    assert replay["decode_skipped_turns"] == 1
    assert replay["tpot_s"]["n"] == replay["tpot_loadgen_s"]["n"] == 1


def test_a_server_that_reprocesses_every_prompt_shows_in_the_efficiency() -> None:
    turns = [
        turn(n, cached_tokens=0, computed_tokens=1000, ideal_tokens=1000 if n == 1 else 0)
        for n in range(1, 26)
    ]
    replay = summarise(whole_run(turns))["replay"]
    assert replay["prefill"]["efficiency"] == 0.04
    assert (replay["ttft_cold_s"]["n"], replay["ttft_warm_s"]["n"]) == (25, 0)


def test_drafted_tokens_add_up_and_a_journal_without_them_says_so() -> None:
    drafted = [
        turn(number, drafted_tokens=drafted, accepted_tokens=accepted)
        for number, drafted, accepted in ((1, 0, 0), (2, 30, 12), (3, 10, 8))
    ]
    figures = {"drafted_tokens": 40, "accepted_tokens": 20, "acceptance_rate": 0.5}
    assert summarise(whole_run(drafted))["replay"]["drafting"] == figures
    older = summarise(whole_run([turn()]))
    assert set(older["replay"]["drafting"].values()) == {None}
    assert older["null_reasons"]["replay.drafting.drafted_tokens"]
    none = summarise(whole_run([turn(drafted_tokens=0, accepted_tokens=0)]))
    assert none["null_reasons"]["replay.drafting.acceptance_rate"] == "no token was drafted"


def test_an_answer_of_another_length_than_was_forced_makes_the_run_invalid() -> None:
    right = turn(1, forced_tokens=5)
    assert summarise(whole_run([right]))["valid"]
    (reason,) = summarise(whole_run([right, turn(2, forced_tokens=6)]))["invalid_reasons"]
    assert "turn 2 of 'fix-parser', 5 tokens for 6" in reason


def test_under_exact_a_turn_without_a_forced_length_makes_the_run_invalid() -> None:
    events = whole_run([turn(1, forced_tokens=5), turn(2)])
    assert summarise(events)["valid"]
    next(e for e in events if e["event"] == "replay_started")["policy"] = "exact"
    (reason,) = summarise(events)["invalid_reasons"]
    assert "turn 2 of 'fix-parser', 5 tokens for a length that is not recorded" in reason


def test_tool_time_is_that_of_turns_with_tools_and_fidelity_that_of_compared_calls() -> None:
    turns = [
        turn(1, tools=[tool(), other_tool()]),
        turn(2, tools=[]),
        turn(3, tools=[tool(match=None)]),
    ]
    replay = summarise(whole_run(turns))["replay"]
    assert replay["tool_time_s"]["n"] == 2
    assert replay["tool_time_s"]["p99"] == 0.5
    assert replay["step_s"]["n"] == 3
    assert replay["tools"]["executed"] == 3
    assert replay["tools"]["compared"] == 2
    assert replay["tools"]["fidelity"] == 0.5
    assert replay["tools"]["differences"] == [
        {
            "conversation_id": "fix-parser",
            "turn": 1,
            "fidelity": 0.5,
            "line": 2,
            "recorded": "two",
            "now": "2",
        }
    ]


def test_conversations_without_a_check_or_an_end_do_not_count_as_checked() -> None:
    events = [
        run_started(),
        *gate(),
        replay_started(3),
        *(turn(1, name, issued_ns=at * 9 * SECOND) for at, name in enumerate("abc")),
        conversation_finished("a", passed=False),
        conversation_finished("b", passed=None),
        *end(),
    ]
    replay = summarise(events)["replay"]
    assert (replay["tools"]["checks_passed"], replay["tools"]["checks_total"]) == (0, 1)
    assert replay["conversation_s"]["n"] == 2


def test_a_resumed_run_adds_up_its_sessions_whatever_their_clocks_say() -> None:
    # The board lost power between the turns: its second monotonic clock starts anew.
    events = [
        run_started(),
        *gate(),
        replay_started(2),
        turn(1, issued_ns=5000 * SECOND),
        {"event": "interrupted", "signal": "SIGTERM"},
        run_started(),
        turn(2, issued_ns=3 * SECOND),
        conversation_finished(),
        *end(),
    ]
    summary = summarise(events)
    assert summary["resumed"] and summary["complete"] and summary["valid"]
    assert summary["replay"]["duration_s"] == 2.0
    assert summary["replay"]["conversation_s"]["n"] == 0


def test_a_scripted_engine_may_be_valid_but_is_said_to_be_no_model() -> None:
    manifest = {**MANIFEST, "engine": {"kind": "scripted", "is_model": False}}
    summary = build_summary(manifest, whole_run([turn()]))
    assert summary["valid"]
    assert summary["engine"] == {"kind": "scripted", "is_model": False}


def test_a_run_of_the_official_size_is_summarised_at_once() -> None:
    arrivals = [200 * MS + 20 * MS * i for i in range(100)]
    events = whole_run(
        [
            turn(n, issued_ns=n * 10 * SECOND, arrivals_ns=arrivals, output_tokens=100)
            | {"step_end_ns": n * 10 * SECOND + 3 * SECOND}
            for n in range(1, 1008)
        ]
    )
    started = time.perf_counter()
    replay = summarise(events)["replay"]
    assert time.perf_counter() - started < 5
    assert replay["ttft_s"]["early_stopping"]["p99"] == 0.2
