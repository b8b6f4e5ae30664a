"""Shows a summary in a terminal: the verdict first, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bfcl_gate.aggregate import NORMALIZED, OVERALL
from bfcl_gate.subsets import SUBSETS
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.text import one_line
from edge_agentic.measure.statistics import smallest_sample
from edge_agentic.report.tools import (
    difference_lines,
    task_rows,
    task_table,
    tool_rows,
    turns_line,
)

_TIMES: Final = (
    ("ttft_s", "time to first token"),
    ("ttft_cold_s", "  without cached prefix"),
    ("ttft_warm_s", "  with cached prefix"),
    ("tpot_s", "time per output token"),
    ("turn_latency_s", "turn latency (model)"),
    ("tool_time_s", "tool time"),
    ("step_s", "step (model + tools)"),
    ("conversation_s", "conversation"),
)
_LEAST_WIDTH: Final = 72
_TIME_COLUMNS: Final = ("p50", "p90", "p99", "mean")


def open_console() -> Console:
    """A console on standard output, wide enough that no figure is cut; lines may wrap."""
    console = Console()
    console.width = max(console.width, _LEAST_WIDTH)
    return console


def render_summary(summary: JsonObject, console: Console) -> None:
    """Print the summary that `measure.summary.build_summary` made.

    Needs neither colour nor a terminal, and 80 columns are enough. Text that came from files
    or a model is printed as plain characters: it can't style the output or steer the terminal.
    """
    _Page(console, summary["null_reasons"]).show(summary)


def render_gate(gate: JsonObject, null_reasons: Mapping[str, str], console: Console) -> None:
    """Print the `gate` section of a summary alone, with the scores of its subsets."""
    page = _Page(console, null_reasons)
    page.show_gate(gate, subsets=True)
    page.show_lines(gate["shortfalls"])


class _Page:
    """Writes one summary to one console."""

    def __init__(self, console: Console, null_reasons: Mapping[str, str]) -> None:
        self._console = console
        self._null_reasons = null_reasons
        self._ascii_only = console.options.ascii_only

    def show(self, summary: JsonObject) -> None:
        self._verdict(summary)
        if summary["gate"] is None:
            self._heading("Function-calling gate")
            self._line(f"  {self._reason('gate')}")
        else:
            self.show_gate(summary["gate"], subsets=summary["replay"] is None)
        self._replay(summary["replay"])
        self._heading("Machine")
        peak = summary["memory"]["peak_rss_mb"]
        self._rows(
            [
                ("peak memory of the run", self._known("memory.peak_rss_mb", peak, "{:.0f} MB")),
                ("energy", self._reason("energy")),
                ("throttling", self._reason("thermal")),
            ]
        )

    def _verdict(self, summary: JsonObject) -> None:
        if not summary["complete"]:
            self._line("INCOMPLETE: the run did not reach its end", "bold yellow")
        if summary["valid"]:
            self._line("VALID", "bold green")
        else:
            self._line("NOT VALID", "bold red")
        self.show_lines(summary["invalid_reasons"])
        engine = summary["engine"]
        if not engine["is_model"]:
            self._line(
                "Scripted engine: no model ran, so no figure here says anything about one.",
                "bold yellow",
            )
        resumed = ", resumed" if summary["resumed"] else ""
        self._line(f"engine {engine['kind']}, {summary['division']} division{resumed}")

    def show_gate(self, gate: JsonObject, *, subsets: bool) -> None:
        """The scores of a gate, with or without those of its subsets."""
        self._heading(
            f"Function-calling gate: {_gate_verdict(gate)} ({gate['dataset']}, {gate['selection']})"
        )
        table = _table("  score", "percent", "95 % interval", "needed")
        for label, key, score in _gate_scores(gate, subsets=subsets):
            interval = gate["interval95"].get(key)
            table.add_row(
                self._text(f"  {label}"),
                self._text(_number(score, "{:.2f}")),
                self._text("{:.2f} to {:.2f}".format(*interval) if interval else ""),
                self._text(_number(gate["thresholds"].get(key), "{:.4f}", missing="")),
            )
        self._console.print(table)
        self.show_lines(_gate_notes(gate, self._null_reasons))

    def _replay(self, replay: JsonObject | None) -> None:
        if replay is None:
            self._heading("Replay")
            self._line(f"  {self._reason('replay')}")
            return
        streams = replay["concurrency"]
        at_once = f", {streams} conversations at once" if streams > 1 else ""
        self._heading(f"Replay ({replay['dataset']}, policy {replay['policy']}{at_once})")
        if replay["tasks"]:
            self._show_table(task_table(replay["tasks"]))
            self._rows(task_rows(replay["tasks"], self._null_reasons))
        self._speed(replay)
        self._times(replay)
        self._quality(replay)

    def _speed(self, replay: JsonObject) -> None:
        turns = replay["turns"]
        # The sums of these two are over turns, whatever ran beside them.
        each = ", each" if replay["concurrency"] > 1 else ""
        skipped = replay["decode_skipped_turns"]
        note = f"; {skipped} turns skipped: output in one burst" if skipped else ""
        rates = [
            ("output tokens/s", "output_tokens_per_s", ""),
            (f"  without tool time{each}", "output_tokens_per_s_model_only", ""),
            (f"decode tokens/s{each}", "decode_tokens_per_s", note),
            ("prefill tokens/s", "prefill_tokens_per_s", ""),
        ]
        self._rows(
            [
                ("turns", turns_line(turns)),
                ("duration", self._known("replay.duration_s", replay["duration_s"], "{:.1f} s")),
                *(
                    (label, self._known(f"replay.{key}", replay[key], "{:.1f}") + suffix)
                    for label, key, suffix in rates
                ),
            ]
        )

    def _times(self, replay: JsonObject) -> None:
        table = _table("  time", *_TIME_COLUMNS, "n")
        missing = []
        for key, label in _TIMES:
            figures = replay[key]
            if not figures["n"]:
                missing.append((label.strip(), self._reason(f"replay.{key}")))
                continue
            table.add_row(
                self._text(f"  {label}"),
                *(self._text(_duration(figures[column])) for column in _TIME_COLUMNS),
                self._text(str(figures["n"])),
            )
        if table.row_count:
            self._console.print(table)
        few = smallest_sample(50)
        if any(0 < replay[key]["n"] < few for key, _ in _TIMES):
            self.show_lines([f"of fewer than {few} values, LoadGen's percentiles are low ones"])
        self._rows(missing)

    def _quality(self, replay: JsonObject) -> None:
        self.show_lines(replay["prefill"]["findings"])
        tools, efficiency = replay["tools"], replay["prefill"]["efficiency"]
        legend = "1.00: only new prompt tokens are computed; low: shared ones are redone"
        explained = [] if efficiency is None else [("", legend)]
        checks = f"{tools['checks_passed']} of {tools['checks_total']} passed"
        self._rows(
            [
                (
                    "prefill efficiency",
                    self._known("replay.prefill.efficiency", efficiency, "{:.2f}"),
                ),
                *explained,
                *self._drafting(replay["drafting"]),
                *tool_rows(tools, self._null_reasons),
                ("checks", checks if tools["checks_total"] else "- (no conversation has a check)"),
                (
                    "inline score",
                    self._known("replay.inline_score", replay["inline_score"], "{:.4f}"),
                ),
            ]
        )
        self.show_lines(difference_lines(tools))

    def _drafting(self, drafting: JsonObject) -> list[tuple[str, str]]:
        drafted, accepted = drafting["drafted_tokens"], drafting["accepted_tokens"]
        if not drafted:
            return []
        rate = drafting["acceptance_rate"]
        return [("drafted tokens", f"{drafted}, {accepted} of them accepted ({rate:.0%})")]

    def _known(self, path: str, value: float | None, form: str) -> str:
        """The figure, or "-" and why it is missing."""
        return self._reason(path) if value is None else form.format(value)

    def _reason(self, path: str) -> str:
        """The mark of a missing figure with its reason."""
        reason = self._null_reasons.get(path)
        return f"- ({reason})" if reason else "-"

    def _heading(self, title: str) -> None:
        self._line("")
        self._line(title, "bold")

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(self._text(text, style))

    def show_lines(self, lines: Iterable[str]) -> None:
        """One indented line each, aligned where it wraps."""
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=3, justify="right")
        grid.add_column(overflow="fold")
        for line in lines:
            grid.add_row("-", self._text(line))
        if grid.row_count:
            self._console.print(grid)

    def _show_table(self, rows: Sequence[Sequence[str]]) -> None:
        """A table whose first row names its columns."""
        headers, *body = rows
        table = _table(*headers)
        for row in body:
            table.add_row(*map(self._text, row))
        self._console.print(table)

    def _rows(self, rows: Iterable[tuple[str, str]]) -> None:
        """Label and value, one row each."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(min_width=24)
        grid.add_column(overflow="fold")
        for label, value in rows:
            grid.add_row(self._text(f"  {label}"), self._text(value))
        if grid.row_count:
            self._console.print(grid)

    def _text(self, text: str, style: str = "") -> Text:
        """Text that is shown as it is written, in what the console can encode."""
        shown = one_line(text, ascii_only=self._ascii_only)
        return Text(shown, style=style, overflow="fold")


def _gate_verdict(gate: JsonObject) -> str:
    if gate["passed"] is None:
        return "no verdict"
    if gate["passed"]:
        return "passed"
    decided = gate["overall_accuracy"] is not None or gate["early_stop"] is not None
    return "not passed" if decided else "not finished"


def _gate_scores(gate: JsonObject, *, subsets: bool) -> Iterator[tuple[str, str, float | None]]:
    """Label, key and score of each row."""
    early = gate["early_stop"]
    for label, key in (("overall", OVERALL), ("normalized", NORMALIZED)):
        yield label, key, gate[key]
        if early is not None:
            yield f"  of {early['asked_samples']} cases", "", early["estimates"][key]
    for category, score in gate["category_scores"].items():
        yield f"  {category}", category, score
        for name, subset in SUBSETS.items() if subsets else ():
            if subset.category is not None and subset.category.value == category:
                score = gate["subset_scores"].get(name)
                if score is not None:
                    yield f"    {name}", name, score


def _gate_notes(gate: JsonObject, null_reasons: Mapping[str, str]) -> Iterator[str]:
    if gate["overall_accuracy"] is None:
        yield f"no scores: {null_reasons['gate.overall_accuracy']}"
    answered = f"{gate['total_samples']} of {gate['issued_samples']} cases answered"
    right = gate["malformed_right"]
    yield (
        f"{answered}, {gate['malformed']} with a malformed call"
        + (f", {right} of them right, as no call was due" if right else "")
    )
    if early := gate["early_stop"]:
        sure = (
            "whatever the others' answers"
            if early["certain"]
            else f"wrong in at most {early['error_rate']:.1%} of runs"
        )
        yield (
            f"early verdict after {early['asked_samples']} of {early['selected_samples']} cases: "
            f"{sure}"
        )
    reference = gate["reference"]
    if reference is None:
        yield f"no verdict: {null_reasons['gate.reference']}"
    elif reference["kind"] == "reference":
        factor, name = reference["factor"], reference["name"]
        yield f"needed: {factor:g} of the scores measured for {name} itself"
    else:
        yield "needed: the floor for models without a reference"


def _table(*headers: str) -> Table:
    """A table without lines, which every encoding can show; figures to the right."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="underline")
    for index, header in enumerate(headers):
        table.add_column(
            header, justify="right" if index else "left", overflow="fold", no_wrap=not index
        )
    return table


def _number(value: float | None, form: str, missing: str = "-") -> str:
    """A figure in its format."""
    return missing if value is None else form.format(value)


def _duration(seconds: float) -> str:
    """A duration with three or four digits that count."""
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 1000 else f"{seconds:.0f} s"
