"""What the sandbox costs: launch, output, states of a workspace, and executed replay.

    python benchmarks/sandbox.py [--tier bubblewrap] [--rounds 50] [--json]

Each figure is measured side by side with its own yardstick in one run, the two in turns, and given
as a median. `launch_overhead_ms`: `true` in the sandbox less a plain subprocess. `capture`: a flood
of output, in MB/s and in growth of this process's memory. `snapshot` and `restore`: a workspace of
2,000 files and 20 MB after 20 changed files, against `cp -a` of all of it. `replay`: a recorded
call of `edge-mini` with the scripted engine, what the suite adds to the tool's own time; and what a
trial of the model's call adds after the replay.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edge_agentic.engine.scripted import ScriptedAnswer, ScriptedEngine
from edge_agentic.replay.player import ReplayLimits, ReplayPlan, TurnRecord, play
from edge_agentic.replay.tools import recorded_calls
from edge_agentic.replay.trials import try_calls
from edge_agentic.run.journal import JournalWriter
from edge_agentic.run.workspaces import Workspaces
from edge_agentic.trace.pack import load_pack
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import Sandbox, open_view
from tools_sandbox.store import Store

FILES, SIZE_BYTES = 2000, 20 * 1000 * 1000
FLOOD_BYTES = 1_000_000_000
WARM_UP = 3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what the sandbox costs.")
    parser.add_argument("--tier", choices=[tier.value for tier in Tier], default="bubblewrap")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tier, rounds = Tier(options.tier), options.rounds
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        figures = {
            "tier": tier.value,
            "rounds": rounds,
            **launch(tier, rounds, Path(scratch)),
            **capture(tier, Path(scratch)),
            **states(tier, rounds, Path(scratch)),
            **replay(tier, Path(scratch)),
        }
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        shown = f"{value:.2f}" if isinstance(value, float) else value
        print(f"{name:<32} {shown}")


def launch(tier: Tier, rounds: int, scratch: Path) -> dict[str, Any]:
    """One `true`, by bash and by itself, against a plain subprocess."""
    with empty_view(tier, scratch) as sandbox:
        plain, alone, bash = in_turns(
            rounds,
            lambda: subprocess.run(["/bin/true"], check=True),
            lambda: sandbox.run(["/bin/true"], timeout_s=60),
            lambda: sandbox.run("true", timeout_s=60),
        )
        view = sandbox.info.view
    overhead = [one - other for one, other in zip(alone, plain, strict=True)]
    return {
        "view": view,
        "plain_true_ms": median_ms(plain),
        "sandboxed_true_ms": median_ms(alone),
        "sandboxed_bash_true_ms": median_ms(bash),
        "launch_overhead_ms": median_ms(overhead),
        "launch_overhead_least_ms": min(overhead) * 1e3,
    }


def capture(tier: Tier, scratch: Path) -> dict[str, Any]:
    """A flood of output: how fast it is taken in, and what memory that takes."""
    flood = f"head -c {FLOOD_BYTES} /dev/zero"
    with empty_view(tier, scratch) as sandbox:
        sandbox.run("head -c 1000000 /dev/zero", timeout_s=60)
        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        result = sandbox.run(flood, timeout_s=600)
        took_s = time.perf_counter() - start
        after_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert result.exit_code == 0 and result.output_bytes == FLOOD_BYTES
    start = time.perf_counter()
    subprocess.run(f"{flood} | cat > /dev/null", shell=True, check=True)
    plain_s = time.perf_counter() - start
    return {
        "capture_mb_per_s": FLOOD_BYTES / took_s / 1e6,
        "capture_of_plain_pipe": plain_s / took_s,
        "capture_memory_growth_mib": (after_kib - before_kib) / 1024,
        "peak_rss_mib": after_kib / 1024,
    }


def states(tier: Tier, rounds: int, scratch: Path) -> dict[str, Any]:
    """Snapshot, restore and branch of a big workspace in which 20 files have changed."""
    source = scratch / "big"
    for number in range(FILES):
        path = source / f"d{number % 50}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([number % 251]) * (SIZE_BYTES // FILES))
    pristine = Store(scratch / "store").add_directory(source)
    change = "for i in $(seq 0 50 950); do echo changed >> d0/f$i; done"
    copied = scratch / "copied"
    snapshots, restores, branches, copies = [], [], [], []
    start = time.perf_counter()
    with open_view(pristine, tier=tier) as sandbox:
        opened_s = time.perf_counter() - start
        for _ in range(rounds):
            sandbox.run(change, timeout_s=60)
            snapshot, took_s = timed(sandbox.snapshot)
            snapshots.append(took_s)
            branch, took_s = timed(lambda snapshot=snapshot: sandbox.branch(snapshot))
            branches.append(took_s)
            branch.close()
            sandbox.run("rm -rf d1; echo more >> d0/f0", timeout_s=60)
            restores.append(timed(lambda snapshot=snapshot: sandbox.restore(snapshot))[1])
            copies.append(timed(lambda: plain_copy(source, copied))[1])
            shutil.rmtree(copied)
    ratio = statistics.median(c / r for c, r in zip(copies, restores, strict=True))
    return {
        "open_ms": opened_s * 1e3,
        "snapshot_ms": median_ms(snapshots),
        "restore_ms": median_ms(restores),
        "branch_ms": median_ms(branches),
        "copy_ms": median_ms(copies),
        "copy_over_restore": ratio,
    }


def replay(tier: Tier, scratch: Path) -> dict[str, Any]:
    """What a recorded call costs beyond the tool's own time, in the replay and in its trial.

    In a trial a turn's calls run twice: as the recorded ones, and as if the model had made them.
    """
    pack = load_pack("edge-mini")
    plan = ReplayPlan(pack, ReplayLimits(None, None, pack.tool_timeout_s))
    engine = ScriptedEngine(lambda _: ScriptedAnswer(text="ok"), source="benchmark")
    workspaces = Workspaces(pack, tier, Store(scratch / "workspaces").add_directory)
    tools_s, beyond_s, trials_s = [], [], []
    with JournalWriter(scratch / "journal.jsonl") as journal:
        start = time.perf_counter()
        for record in play(plan, engine, workspaces.open):
            if isinstance(record, TurnRecord):
                journal.write("turn", **record.to_json())
                own_s = sum(run.duration_ns for run in record.tools) / 1e9
                # The first turn's time holds the opening of the workspace.
                if record.tools and record.turn.index > 1:
                    tools_s.append(own_s)
                    beyond_s.append(time.perf_counter() - start - own_s)
            start = time.perf_counter()
        for conversation in pack.conversations:
            answers = {(conversation.id, t.index): recorded_calls(t) for t in conversation.turns}
            with workspaces.open(conversation.id) as sandbox:
                assert sandbox is not None
                start = time.perf_counter()
                for trial in try_calls(conversation, answers, sandbox, pack.tool_timeout_s):
                    journal.write("trial", **trial.to_json())
                    if trial.recorded and trial.model:
                        calls = (*trial.recorded.calls, *trial.model.calls)
                        own_s = sum(call.duration_ns for call in calls) / 1e9
                        trials_s.append(time.perf_counter() - start - own_s)
                    start = time.perf_counter()
    return {
        "replay_calls": len(tools_s),
        "tool_ms": median_ms(tools_s),
        "replay_beyond_tool_ms": median_ms(beyond_s),
        "trial_beyond_tools_ms": median_ms(trials_s),
    }


@contextmanager
def empty_view(tier: Tier, scratch: Path) -> Iterator[Sandbox]:
    """A sandbox over an empty workspace."""
    (scratch / "empty").mkdir(exist_ok=True)
    pristine = Store(scratch / "store").add_directory(scratch / "empty")
    with open_view(pristine, tier=tier) as sandbox:
        yield sandbox


def in_turns(rounds: int, *actions: Callable[[], object]) -> list[list[float]]:
    """The seconds that each action takes, round by round."""
    taken: list[list[float]] = [[] for _ in actions]
    for number in range(rounds + WARM_UP):
        for action, own in zip(actions, taken, strict=True):
            took_s = timed(action)[1]
            if number >= WARM_UP:
                own.append(took_s)
    return taken


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """The result of an action, and the seconds that it took."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def plain_copy(source: Path, target: Path) -> None:
    """What a state of a workspace without layers costs."""
    subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)


def median_ms(seconds: list[float]) -> float:
    """The median, in milliseconds."""
    return statistics.median(seconds) * 1e3


if __name__ == "__main__":
    main()
