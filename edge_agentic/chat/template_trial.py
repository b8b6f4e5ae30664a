"""Finds out what a chat template can't take, by giving it a small conversation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import combinations
from typing import Final

from jinja2.exceptions import SecurityError

from edge_agentic.chat.template_changes import Change
from edge_agentic.core.messages import Message, ToolSpec

Render = Callable[[Collection[Change]], str]
"""Renders the trial conversation with these changes, the prompt to answer included."""

TRIAL_TOOLS: Final[tuple[ToolSpec, ...]] = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "Looks.",
            "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
        },
    }
    for name in ("trial_first", "trial_second", "trial_unused")
)
TRIAL: Final[tuple[Message, ...]] = (
    {"role": "system", "content": "trial-system"},
    {"role": "user", "content": "trial-question"},
    {"role": "assistant", "content": "trial-answer"},
    {"role": "user", "content": "trial-further"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"trial{place}",
                "type": "function",
                "function": {"name": name, "arguments": f'{{"place": "trial-{place}"}}'},
            }
            for name, place in (("trial_first", "here"), ("trial_second", "there"))
        ],
    },
    {"role": "tool", "tool_call_id": "trialhere", "content": "trial-shallow"},
    {"role": "tool", "tool_call_id": "trialthere", "content": "trial-deep"},
)
"""Ends with results, as most requests of an agent do: some templates drop the system text there."""

_EXPECTED: Final = (
    *("trial-system", "trial-question", "trial-answer", "trial-further"),
    *("trial-here", "trial-there", "trial-shallow", "trial-deep", "trial_unused"),
)
_MOST_CHANGES: Final = 3
_OPEN_THOUGHT: Final = "<think>"


def needed_changes(render: Render, possible: Iterable[Change]) -> frozenset[Change]:
    """The fewest of the possible changes that bring the whole trial conversation into the prompt.

    Where none do, those that bring in the most. Where `NO_THINK` is possible, a prompt that
    ends with reasoning opened lacks something too.

    Raises:
        SecurityError: the template breaks a bound before anything is changed.
    """
    best: frozenset[Change] = frozenset()
    least: int | None = None
    changes = list(possible)
    for size in range(_MOST_CHANGES + 1):
        for chosen in combinations(changes, size):
            try:
                text = render(chosen)
            except SecurityError:
                if not chosen:
                    raise
                return best
            except Exception:  # a template raises what Python can: it can't take this
                continue
            lacking = sum(expected not in text for expected in _EXPECTED)
            lacking += Change.NO_THINK in changes and text.rstrip().endswith(_OPEN_THOUGHT)
            if least is None or lacking < least:
                best, least = frozenset(chosen), lacking
            if not lacking:
                return best
    return best
