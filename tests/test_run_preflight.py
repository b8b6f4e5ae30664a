"""What can't fit the context is found before the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import Message, ToolSpec
from edge_agentic.engine.scripted import ScriptedEngine
from edge_agentic.replay.player import ReplayLimits, ReplayPlan
from edge_agentic.run.preflight import check_context
from edge_agentic.trace.pack import load_pack
from tests.trace_samples import calls, results, says, user, write


class Counting(ScriptedEngine):
    """A scripted engine with a context window, in which a message takes 100 tokens."""

    def __init__(self, context_tokens: int) -> None:
        super().__init__({}.get, source="test")
        self.context_tokens = context_tokens  # type: ignore[assignment]

    def count_prompt_tokens(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> int:
        return 100 * len(messages)


@pytest.mark.parametrize(
    ("limits", "needed"),
    [
        pytest.param((10, 10, 10), 510, id="the-last-turn"),
        pytest.param((900, 10, 10), 1000, id="the-longest-answer"),
        pytest.param((300, 290, 10), 590, id="neither"),
    ],
)
def test_every_turn_has_to_fit_with_its_answer(
    limits: tuple[int, int, int], needed: int, tmp_path: Path
) -> None:
    trace = write(
        tmp_path / "t.jsonl",
        user(1, max_new_tokens=limits[0]),
        calls(2, "a"),
        results(3, "a", max_new_tokens=limits[1]),
        calls(4, "b"),
        results(5, "b", max_new_tokens=limits[2]),
        says(6),
    )
    plan = ReplayPlan(load_pack(trace), ReplayLimits(None, None, 1.0))
    check_context(Counting(needed), (), 1, plan)
    with pytest.raises(BadInputError, match=f"conversation 'c' needs .* holds {needed - 1}; use"):
        check_context(Counting(needed - 1), (), 1, plan)
