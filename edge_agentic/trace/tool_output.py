"""Renders what a command did as the tool result that a model reads."""

from __future__ import annotations

from typing import Final, Protocol

MAX_CHARACTERS: Final = 10_000
"""An output this long or longer is shown by its two ends, as in the official trace file."""
_END_CHARACTERS: Final = 5_000


class Executed(Protocol):
    """What a sandbox says of one command."""

    @property
    def exit_code(self) -> int | None:
        """The exit status; None where the command met its time limit."""

    @property
    def output(self) -> str:
        """Standard output and standard error, merged."""

    @property
    def timed_out(self) -> bool:
        """Whether the time limit ended it."""

    @property
    def duration_ns(self) -> int:
        """How long it ran."""


def render(executed: Executed, timeout_s: float) -> str:
    r"""The text of a tool result, in the form of the official MLPerf trace file.

    `<returncode>0</returncode>\n<output>\n…</output>`, the output verbatim. A command that met
    its limit of `timeout_s` has an `<exception>` line before a return code of -1.
    """
    if executed.timed_out:
        status = (
            f"<exception>The command timed out after {timeout_s:g} seconds</exception>\n"
            "<returncode>-1</returncode>\n"
        )
    else:
        status = f"<returncode>{executed.exit_code}</returncode>\n"
    output = executed.output
    if len(output) < MAX_CHARACTERS:
        return f"{status}<output>\n{output}</output>"
    elided = len(output) - 2 * _END_CHARACTERS
    return (
        f"{status}<warning>\n"
        "The output is too long to show in full: here are its beginning and its end.\n"
        "Ask for less with head, tail, sed -n or a narrower grep, or write it to a file first.\n"
        f"</warning><output_head>\n{output[:_END_CHARACTERS]}\n</output_head>\n"
        f"<elided_chars>\n{elided} characters elided\n</elided_chars>\n"
        f"<output_tail>\n{output[-_END_CHARACTERS:]}\n</output_tail>"
    )
