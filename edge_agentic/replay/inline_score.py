"""Scores a turn by the executables it runs: multiset IoU of recorded and generated calls.

The rule is that of the MLPerf Inference v6.1 edge-agentic benchmark. It reads commands with a
few plain text rules, not with a shell grammar, and the score is defined by those rules: a
here-document's body or a comment counts, a sub-shell's `(ls` does not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from edge_agentic.core.messages import call_arguments
from edge_agentic.trace.bash_call import TOOL_NAME

_WRAPPERS: Final = frozenset({"env", "time", "nice", "sudo", "exec", "command"})

_OWN_NAME: Final = (
    "pytest pylint cython make conda head tail wc diff sed tr sort uniq cut ls xargs cp mv rm "
    "mkdir touch tee which alias unset export git true false timeout date yum"
)
_ALIASES: Final = {
    "python": "python python2 python3 py",
    "pip": "pip pip3",
    "sphinx": "sphinx-build sphinx-quickstart",
    "cat": "cat less more",
    "grep": "grep egrep fgrep rg ag",
    "awk": "awk gawk",
    "find": "find locate",
    "source": "source .",
    "curl": "curl wget",
    "apt": "apt apt-get",
}
_ACTIONS: Final[Mapping[str, str]] = {name: name for name in _OWN_NAME.split()} | {
    name: action for action, names in _ALIASES.items() for name in names.split()
}
"""The action of each known executable."""

_QUOTE: Final = re.compile("['\"`]")
_DOUBLE_QUOTED_BODY: Final = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*')
_SEPARATOR: Final = re.compile(r"\|\||\||&&|;|\n")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_VERSION: Final = re.compile(r"\.\d+(?:\.\d+)?\Z")


def score_turn(expected_calls: object, model_calls: object) -> float | None:
    """Sum of the smaller counts over sum of the larger counts, per action: 0.0 to 1.0.

    None where the recorded calls hold no known action: such a turn is excluded from the run's mean.
    """
    expected = Counter(actions(expected_calls))
    if not expected:
        return None
    got = Counter(actions(model_calls))
    return (expected & got).total() / (expected | got).total()


def actions(tool_calls: object) -> list[str]:
    """The known executables that OpenAI-shaped calls run, normalised, in order.

    Whatever is not a list of well-formed `bash` calls adds nothing; no input raises. Time is
    linear in the length of the commands.
    """
    if not isinstance(tool_calls, (list, tuple)):
        return []
    return [
        action
        for call in tool_calls
        for stage in _SEPARATOR.split(_without_quoted(_command(call)))
        if (action := _action(stage)) is not None
    ]


def _command(call: object) -> str:
    """The shell command of one call; empty where it has none."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or function.get("name") != TOOL_NAME:
        return ""
    arguments = call_arguments(function) or {}
    command = arguments.get("command") or arguments.get("cmd")
    return command if isinstance(command, str) else ""


def _without_quoted(command: str) -> str:
    """The command with each quoted piece replaced by a space; an unclosed quote stays.

    In double quotes a backslash escapes any character but a line feed, as in the reference.
    """
    pieces: list[str] = []
    kept = search_from = no_double_before = 0
    while opener := _QUOTE.search(command, search_from):
        start = opener.start()
        end = -1
        if opener[0] != '"':
            end = command.find(opener[0], start + 1)
        elif start >= no_double_before:
            body = _DOUBLE_QUOTED_BODY.match(command, start + 1)
            assert body is not None, "the pattern matches the empty text too"
            # A double quote inside an unclosed body is an escaped one, and would end at the same
            # place. Not trying it again keeps a long run of \\" from taking quadratic time.
            no_double_before = body.end()
            if command[no_double_before : no_double_before + 1] == '"':
                end = no_double_before
        if end < 0:
            search_from = start + 1
            continue
        pieces += command[kept:start], " "
        kept = search_from = end + 1
    return "".join(pieces) + command[kept:]


def _action(stage: str) -> str | None:
    """The action of one pipeline stage; None where its executable is unknown or missing."""
    for token in stage.split():
        if token in _WRAPPERS or _ASSIGNMENT.match(token):
            continue
        executable = token.rpartition("/")[2].lower()
        return _ACTIONS.get(_VERSION.sub("", executable))
    return None
