"""Shows the prompt of a turn to a person, with the stable prefix marked."""

from __future__ import annotations

from collections.abc import Iterator

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.text import one_line, printable


def prompt_lines(report: JsonObject) -> Iterator[str]:
    """The result of `engine.prompt_report` as lines; nothing in it can drive a terminal.

    The text stands between lines of dashes, which say where a line of it goes on behind them.
    """
    text, stable = report["text"], report["stable_characters"]
    yield (
        f"{one_line(report['conversation'])}, turn {report['turn']}, of {one_line(report['pack'])} "
        f"for {one_line(report['model'])}"
    )
    yield _rule("stable prefix: the next prompt starts with it")
    yield from _shown(text[:stable])
    within = "" if text[:stable].endswith("\n") else ", within a line"
    yield _rule(f"end of the stable prefix{within}")
    yield from _shown(text[stable:])
    yield _rule("end of the prompt")
    yield from _facts(report)


def _facts(report: JsonObject) -> Iterator[str]:
    """Token counts, and what was made of the template."""
    yield f"prompt   {report['prompt_tokens']:8,} tokens"
    yield f"stable   {report['stable_tokens']:8,} tokens"
    before = "the first turn" if report["turn"] == 1 else "beyond the turn before: the ideal"
    yield f"new      {report['new_tokens']:8,} tokens ({before})"
    own = "the model's own" if report["template"] == "own" else "plain ChatML; the file has none"
    yield f"template {own}; calls: {report['tool_format'] or 'in a form that can not be read'}"
    if report["template_changes"]:
        yield f"changed for the template: {', '.join(report['template_changes'])}"


def _rule(label: str) -> str:
    return f"---- {label} ".ljust(72, "-")


def _shown(text: str) -> Iterator[str]:
    yield from map(printable, text.removesuffix("\n").split("\n")) if text else ()
