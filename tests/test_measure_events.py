from __future__ import annotations

from typing import Any

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.outcome import Outcome
from edge_agentic.measure.events import read_journal
from edge_agentic.measure.summary import build_summary
from edge_agentic.trace.comparison import Match
from tests.measure_journals import (
    MANIFEST,
    SAMPLES,
    SECOND,
    Event,
    conversation_finished,
    end,
    gate,
    gate_case,
    gate_started,
    live_started,
    replay_started,
    run_started,
    tool,
    trial,
    turn,
    whole_run,
)


def test_a_whole_journal_is_read_in_order() -> None:
    journal = read_journal(whole_run([turn(1), turn(2)]))
    assert journal.sessions == 1
    assert [case.sample_id for case in journal.gate_cases] == list(SAMPLES)
    assert [played.number for played in journal.turns] == [1, 2]
    assert journal.turns[0].outcome is Outcome.OK
    assert journal.turns[0].times.issued_ns == 2 * SECOND
    assert (journal.gate_finished, journal.replay_finished, journal.finished) == (True,) * 3
    assert journal.peak_rss_mb == 812.5


def test_kinds_of_event_from_a_newer_version_are_left_out() -> None:
    journal = read_journal([run_started(), {"event": "telemetry_gap", "turn": "?"}])
    assert journal.turns == []


def test_an_empty_journal_is_a_run_that_never_began() -> None:
    assert read_journal([]).sessions == 0


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([turn()], "journal.jsonl:1: a journal starts with 'run_started', found 'turn'"),
        ([{}], "journal.jsonl:1: 'event' is missing"),
        ([{"event": 3}], "journal.jsonl:1: 'event' must be a string, found 3"),
        (
            [{**run_started(), "schema": "edge-agentic/journal/9"}],
            "journal.jsonl:1: schema 'edge-agentic/journal/9' is unknown; "
            "this version reads 'edge-agentic/journal/1'",
        ),
        ([run_started(), turn()], "journal.jsonl:2: 'replay_started' must come before"),
        ([run_started(), gate_case("x")], "journal.jsonl:2: 'gate_started' must come before"),
        ([run_started(), conversation_finished()], "journal.jsonl:2: 'replay_started' must come"),
        ([run_started(), {"event": "gate_finished"}], "journal.jsonl:2: 'gate_started' must come"),
        (
            [run_started(), gate_started(), gate_started()],
            "journal.jsonl:3: this phase has started before",
        ),
        (
            [run_started(), replay_started(1), replay_started(1)],
            "journal.jsonl:3: this phase has started before",
        ),
        ([run_started(), replay_started(1, 2)], "journal.jsonl:2: 'scorable_turns' is larger"),
        (
            [run_started(), {**replay_started(1), "expected_turns": None}],
            "journal.jsonl:2: needs 'expected_turns' and 'scorable_turns', or 'tasks'",
        ),
        (
            [run_started(), {**replay_started(1), "tasks": ["a"]}],
            "journal.jsonl:2: needs 'expected_turns' and 'scorable_turns', or 'tasks'",
        ),
        (
            [run_started(), live_started("a"), conversation_finished("a", True, "bored")],
            "journal.jsonl:3: 'ending' must be one of submitted, gave_up",
        ),
        ([run_started(), trial()], "journal.jsonl:2: 'replay_started' must come before"),
        (
            [run_started(), gate_started(("irrelevance_1", "irrelevance_1"))],
            "journal.jsonl:2: 'sample_ids' names a sample twice",
        ),
        ([run_started(), {"event": "interrupted"}], "journal.jsonl:2: 'signal' is missing"),
        (
            [run_started(), {"event": "memory", "peak_rss_mb": float("nan")}],
            "journal.jsonl:2: 'peak_rss_mb' must be a finite number from 0, found nan",
        ),
    ],
)
def test_an_event_in_the_wrong_place_or_form_is_one_line_about_it(
    events: list[Event], message: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        read_journal(events)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"issued_ns": "soon"}, "'issued_ns' must be a whole number from 0, found str"),
        ({"turn": True}, "'turn' must be a whole number from 0, found True"),
        ({"turn": 0}, "'turn' counts from 1 (event 'turn')"),
        ({"turn": 1.0}, "'turn' must be a whole number from 0, found 1.0"),
        ({"conversation_id": None}, "'conversation_id' is missing"),
        ({"outcome": "lost\x1b[2J\n"}, "'outcome' must be one of ok, timeout, "),
        ({"prompt_tokens": -1}, "'prompt_tokens' must be a whole number from 0, found -1"),
        ({"output_tokens": 10**400}, "'output_tokens' must be a whole number from 0, found a huge"),
        ({"arrivals_ns": 7}, "'arrivals_ns' must be a list, found 7"),
        (
            {"arrivals_ns": [1, None]},
            "'arrivals_ns' must be a list of whole numbers from 0; item 1",
        ),
        ({"arrivals_ns": [5, 4]}, "arrivals_ns must ascend"),
        ({"inline_score": 1.5}, "'inline_score' is larger than 1"),
        (
            {"inline_score": float("inf")},
            "'inline_score' must be a finite number from 0, found inf",
        ),
        ({"tools": [[]]}, "'tools' must be a list of objects; item 0 is not"),
        ({"tools": [tool(duration_ns=-3)]}, "'tools[0]': 'duration_ns' must be a whole number"),
        ({"tools": [tool(match="nearly")]}, "'match' must be one of exact, normalised, different"),
        ({"tools": [tool(match="different")]}, "'expected' is there if and only if"),
        ({"tools": [tool(expected="x")]}, "'expected' is there if and only if"),
        ({"tools": [tool(result=None)]}, "'tools[0]': 'result' is missing"),
        ({"step_end_ns": 2 * SECOND}, "'step_end_ns' lies before the end of the turn's output"),
    ],
)
def test_a_turn_of_the_wrong_form_names_line_and_field(
    changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        read_journal([run_started(), replay_started(1), {**turn(), **changed}])
    line = str(caught.value)
    assert line.startswith("journal.jsonl:3")
    assert message in line
    assert line.isprintable()


@pytest.mark.parametrize(
    ("matches", "match"), [(True, Match.EXACT), (False, Match.DIFFERENT), (None, None)]
)
def test_a_tool_run_of_before_results_were_kept_still_says_whether_it_matched(
    matches: bool | None, match: Match | None
) -> None:
    old = {"duration_ns": 5, "exit_code": 0, "matches_record": matches}
    journal = read_journal([run_started(), replay_started(1), turn(tools=[old])])
    (run,) = journal.turns[0].tools
    assert (run.duration_ns, run.match) == (5, match)


@pytest.mark.parametrize(
    "name",
    ["prompt_tokens", "cached_tokens", "first_delta_tokens", "inline_score", "output_tokens"],
)
def test_what_was_not_measured_may_be_null_or_absent(name: str) -> None:
    absent = turn()
    del absent[name]
    for event in (absent, turn(**{name: None})):
        read_journal([run_started(), replay_started(1), event])


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (gate_case("irrelevance_99"), "was not issued"),
        (gate_case("nonsense"), "no BFCL subset"),
    ],
)
def test_a_verdict_on_a_case_that_the_gate_does_not_hold_is_bad_input(
    case: Event, message: str
) -> None:
    events = [run_started(), gate_started(), case, *gate()[1:], *end()[1:]]
    with pytest.raises(BadInputError, match=message):
        build_summary(MANIFEST, events)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"kind": "guess"}, "'kind' must be 'reference' or 'floor'"),
        ({"kind": "floor", "dataset": "gate-mini"}, "'selection' is missing"),
        ({"overall": "half"}, "'overall' must be a finite number from 0, found str"),
        ({"overall": 101.0}, "'overall' must be in percent"),
    ],
)
def test_a_recorded_reference_that_cannot_be_used_is_bad_input(
    reference: Event, message: str
) -> None:
    started = gate_started()
    started["reference"] = reference if "kind" in reference else started["reference"] | reference
    with pytest.raises(BadInputError) as caught:
        build_summary(MANIFEST, [run_started(), started])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({}, "manifest.json: 'engine' is missing"),
        ({**MANIFEST, "division": 3}, "manifest.json: 'division' must be a string, found 3"),
        ({**MANIFEST, "device": []}, "manifest.json: 'device' must be an object, found list"),
        (
            {**MANIFEST, "engine": {"kind": "llamacpp"}},
            "manifest.json, 'engine': 'is_model' is missing",
        ),
        (
            {**MANIFEST, "device": {"memory_gb": float("inf")}},
            "manifest.json: 'device.memory_gb' is not a finite number",
        ),
    ],
)
def test_a_manifest_of_the_wrong_form_names_the_field(manifest: Event, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        build_summary(manifest, [run_started()])
    assert str(caught.value) == message


def test_a_manifest_nested_without_end_is_bad_input() -> None:
    deep: Event = {}
    for _ in range(5000):
        deep = {"in": deep}
    with pytest.raises(BadInputError, match="nested too deeply"):
        build_summary({**MANIFEST, "device": deep}, [run_started()])
