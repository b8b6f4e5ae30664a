from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from edge_agentic.measure.summary import build_summary
from edge_agentic.report.terminal import render_summary
from tests.measure_journals import (
    MANIFEST,
    REFERENCE,
    SAMPLES,
    Event,
    end,
    failed_turn,
    gate,
    gate_started,
    run_started,
    turn,
    whole_run,
)


def shown(
    events: list[Event], encoding: str = "utf-8", width: int = 80, manifest: Event = MANIFEST
) -> str:
    """What a file or pipe of this encoding receives."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    render_summary(build_summary(manifest, events), Console(file=stream, width=width))
    stream.flush()
    return raw.getvalue().decode(encoding)


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_a_valid_run_says_so_first_and_shows_its_figures() -> None:
    text = shown(whole_run([turn(1), turn(2)]))
    assert text.splitlines()[0].strip() == "VALID"
    assert "Function-calling gate: passed (gate-mini, all)" in text
    for figure in (
        "overall 100.00",
        "hallucination 100.00",
        "turns 2 of 2 completed, 0 failed, 0 missing",
        "output tokens/s 3.3",
        "decode tokens/s 5.0",
        "time to first token 200.0 ms 200.0 ms 200.0 ms 200.0 ms 2",
        "turn latency (model) 1.00 s 1.00 s 1.00 s 1.00 s 2",
        "prefill efficiency 1.00",
        "tool fidelity 100.0% of 2 compared results",
        "checks 1 of 1 passed",
        "inline score 0.5000",
        "peak memory of the run 812 MB",
    ):
        assert figure in squeezed(text)
    assert "Scripted" not in text
    assert "INCOMPLETE" not in text


def test_an_incomplete_run_says_so_before_anything_else() -> None:
    events = [*whole_run([turn(1)])[:-3], {"event": "interrupted", "signal": "SIGINT"}]
    lines = shown(events).splitlines()
    assert lines[0].startswith("INCOMPLETE")
    assert lines[1].strip() == "NOT VALID"
    assert "The run was interrupted by SIGINT." in lines[2]


def test_a_run_whose_gate_failed_shows_why_and_no_speed() -> None:
    text = shown([run_started(), *gate(wrong=SAMPLES), *end()[1:]])
    assert text.startswith("NOT VALID")
    assert "Function-calling gate: not passed" in text
    assert "overall_accuracy: 0.0 % is 50.0 points below the threshold of 50.0" in squeezed(text)
    assert "only after the function-calling gate is passed" in squeezed(text)
    assert "tokens/s" not in text
    assert "time to first token" not in text


def test_a_gate_that_was_cut_short_says_that_it_has_no_scores() -> None:
    text = shown([run_started(), *gate()[:2]])
    assert "no scores: the gate stopped early" in text


def test_a_run_without_a_gate_is_shown() -> None:
    assert "- (the gate did not run)" in shown([run_started()])


def test_the_reference_of_the_gate_is_named() -> None:
    text = shown([run_started(), gate_started(SAMPLES, REFERENCE), *gate()[1:], *end()[1:]])
    assert "needed: 0.97 of the scores measured for Qwen3.6-27B itself" in text
    assert "83.6431" in text


def test_a_scripted_engine_is_said_to_be_no_model() -> None:
    manifest = {**MANIFEST, "engine": {"kind": "scripted", "is_model": False}}
    text = shown(whole_run([turn()]), manifest=manifest)
    assert "Scripted engine: no model ran" in text


def test_a_missing_figure_is_a_dash_with_its_reason() -> None:
    text = squeezed(shown(whole_run([turn(1, tools=[], output_tokens=None), failed_turn(2)])))
    assert "decode tokens/s - (no completed turn has a token count" in text
    assert "tool time - (no tool ran)" in text
    assert "tool fidelity - (no executed call has a recorded result" in text
    assert "energy - (not sampled)" in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_any_encoding_and_width_will_do(encoding: str, width: int) -> None:
    long_name = "モデル-" + "x" * 120
    events = whole_run([turn(1), failed_turn(2)])
    manifest: dict[str, Any] = {**MANIFEST, "engine": {"kind": long_name, "is_model": True}}
    text = shown(events, encoding, width, manifest)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= width
    if encoding == "ascii":
        assert "\\u30e2" in text.replace("\n", "")


def test_names_can_neither_style_the_output_nor_steer_the_terminal() -> None:
    hostile = "[red]x[/red]\x1b[2J\x1b]0;title\x07\u202eevil\r\nVALID"
    events = whole_run([turn(1)])
    for event in events:
        if event["event"] in ("gate_started", "replay_started"):
            event["dataset"] = hostile
    stream = io.StringIO()
    console = Console(file=stream, width=400, force_terminal=True, color_system="truecolor")
    manifest = {**MANIFEST, "engine": {"kind": hostile, "is_model": False}}
    render_summary(build_summary(manifest, events), console)
    text = stream.getvalue()
    assert "[red]x[/red]\\u001b[2J\\u001b]0;title\\u0007\\u202eevil\\r\\nVALID" in text
    own_styles = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert "\x1b" not in own_styles
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", own_styles)
    assert "\x1b[31m" not in text


def test_colour_is_an_addition_and_carries_no_meaning_of_its_own() -> None:
    summary = build_summary(MANIFEST, whole_run([turn(1)]))
    plain, coloured = io.StringIO(), io.StringIO()
    render_summary(summary, Console(file=plain, width=80, no_color=True))
    render_summary(
        summary, Console(file=coloured, width=80, force_terminal=True, color_system="standard")
    )
    assert "\x1b[" in coloured.getvalue()
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured.getvalue()) == plain.getvalue()
