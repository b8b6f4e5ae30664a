"""The phase of a run after its gate: plays the pack, then tries the model's own calls."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing

from edge_agentic.core import interrupt
from edge_agentic.core.clock import monotonic_ns
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import ToolCall
from edge_agentic.core.outcome import Outcome
from edge_agentic.core.replay_policy import ReplayPolicy
from edge_agentic.replay.inline_score import score_turn
from edge_agentic.replay.lengths import TurnKey
from edge_agentic.replay.player import (
    ConversationEnd,
    OpenWorkspace,
    ReplayPlan,
    TurnRecord,
    no_workspaces,
    play,
)
from edge_agentic.replay.streams import play_at_once
from edge_agentic.replay.trials import Answers, try_calls
from edge_agentic.run.engines import Prepared
from edge_agentic.run.journal import JournalWriter
from edge_agentic.run.progress import Progress
from edge_agentic.run.workspaces import Workspaces


def run_replay(
    plan: ReplayPlan,
    prepared: Prepared,
    workspaces: Workspaces | None,
    journal: JournalWriter,
    progress: Progress,
) -> None:
    """Play the pack and write down every turn; `workspaces` is None where no tool runs.

    Raises:
        SandboxError: the sandbox itself failed; what was measured is kept.
    """
    conversations = plan.pack.conversations
    steps = len(conversations) if plan.live else sum(len(each.turns) for each in conversations)
    progress.phase("tasks" if plan.live else "replay", steps)
    journal.write("replay_started", **_start(plan), t_ns=monotonic_ns())
    open_workspace = workspaces.open if workspaces else no_workspaces
    answers: dict[TurnKey, Sequence[ToolCall]] = {}
    # Closed here: an interruption must remove the workspace before it goes on.
    with ExitStack() as stack:
        records = stack.enter_context(closing(_play(plan, prepared, open_workspace, stack)))
        for record in records:
            if isinstance(record, TurnRecord):
                journal.write("turn", **record.to_json())
                done = record.completion
                calls = done.tool_calls if done.outcome is Outcome.OK else ()
                answers[record.conversation_id, record.turn.index] = calls
                if not plan.live:
                    progress.step(_speed_note(record))
            else:
                journal.write("conversation_finished", **record.to_json())
                if plan.live:
                    progress.step(f"{record.conversation_id}: {_verdict(record)}")
            interrupt.check()
    journal.write("replay_finished", t_ns=monotonic_ns())
    # Answers of a forced length are not what the model would have said.
    if workspaces and plan.policy is ReplayPolicy.RECORDED:
        _try_calls(plan, answers, workspaces, journal, progress)


def _start(plan: ReplayPlan) -> JsonObject:
    """What the replay sets out to do; under the policy `live` nobody knows how many turns."""
    pack = plan.pack
    turns = [turn for conversation in pack.conversations for turn in conversation.turns]
    scorable = sum(score_turn(turn.expected_calls, []) is not None for turn in turns)
    return {
        "policy": plan.policy.value,
        "concurrency": plan.concurrency,
        "dataset": pack.name,
        "dataset_sha256": pack.sha256,
        "expected_turns": None if plan.live else len(turns),
        "scorable_turns": None if plan.live else scorable,
        "tasks": [c.id for c in pack.conversations] if plan.live else None,
    }


def _play(
    plan: ReplayPlan, prepared: Prepared, open_workspace: OpenWorkspace, stack: ExitStack
) -> Generator[TurnRecord | ConversationEnd, None, None]:
    """Play on one stream or several; further engines are closed with the stack."""
    another = prepared.another
    if plan.concurrency == 1 or another is None:
        return play(plan, prepared.engine, open_workspace)
    further = [stack.enter_context(closing(another())) for _ in range(1, plan.concurrency)]
    return play_at_once(plan, [prepared.engine, *further], open_workspace)


def _try_calls(
    plan: ReplayPlan,
    answers: Answers,
    workspaces: Workspaces,
    journal: JournalWriter,
    progress: Progress,
) -> None:
    pack = plan.pack
    conversations = [c for c in pack.conversations if c.id in pack.workspaces]
    progress.phase("the model's calls", sum(len(c.turns) for c in conversations))
    for conversation in conversations:
        with workspaces.open(conversation.id) as sandbox:
            assert sandbox is not None
            trials = try_calls(conversation, answers, sandbox, plan.limits.tool_timeout_s)
            for trial in trials:
                journal.write("trial", **trial.to_json())
                progress.step()
                interrupt.check()


def _verdict(end: ConversationEnd) -> str:
    return "solved" if end.check_passed else "not solved"


def _speed_note(record: TurnRecord) -> str:
    """Tokens/s of the turn just played, model time only."""
    times, output = record.completion.times, record.completion.tokens.output
    if not output or not times.arrivals_ns or not times.arrivals_ns[-1]:
        return ""
    return f"{output / (times.arrivals_ns[-1] / 1e9):.1f} tokens/s"
