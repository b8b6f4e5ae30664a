"""One run from start to end: preflight, gate, replay, summary."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from bfcl_gate.cases import Dataset, gate_mini, load_dataset
from edge_agentic.core import interrupt
from edge_agentic.core.clock import monotonic_ns, utc_now
from edge_agentic.core.errors import BadInputError, signal_name
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.device.facts import read_device
from edge_agentic.device.profile import load_profile
from edge_agentic.engine.api import Engine
from edge_agentic.engine.model_store import resolve_model
from edge_agentic.measure.events import JOURNAL_SCHEMA
from edge_agentic.measure.summary import build_summary
from edge_agentic.replay.inline_score import score_turn
from edge_agentic.replay.player import (
    DEFAULT_MAX_OUTPUT_TOKENS,
    POLICY,
    ReplayLimits,
    TurnRecord,
    play,
)
from edge_agentic.run.directory import RunDirectory, check_output, create_run_directory
from edge_agentic.run.engines import Prepared, prepare_engine
from edge_agentic.run.gate import run_gate
from edge_agentic.run.journal import JournalWriter
from edge_agentic.run.manifest import build_manifest
from edge_agentic.run.preflight import check_context, check_sandbox
from edge_agentic.run.progress import Progress, Silent
from edge_agentic.run.settings import RunSettings
from edge_agentic.trace.pack import BYTECODE_DIRECTORY, TracePack, load_pack
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import Sandbox, open_sandbox
from tools_sandbox.workspace import fresh_copy

GATE_MINI = "gate-mini"
GATE_MINI_MAX_OUTPUT_TOKENS = 256
"""No right answer of `gate-mini` needs half of it; a small model that rambles is cut there."""

_KIB_PER_MIB = 1024  # Linux counts ru_maxrss in KiB


@dataclass(frozen=True)
class RunResult:
    """A finished run: where it lies, and its summary."""

    directory: Path
    summary: JsonObject

    @property
    def gate_passed(self) -> bool:
        """Whether speed may be reported at all."""
        gate = self.summary["gate"]
        return bool(gate and gate["passed"])


def run(settings: RunSettings, progress: Progress | None = None) -> RunResult:
    """Run the whole job and leave a run directory.

    Raises:
        BadInputError: a file or option can't be used; found before anything is measured.
        RequirementError, SandboxUnavailable: the machine lacks something.
        StorageError, SandboxError: the disk or the sandbox failed; what was measured is kept.
        RunInterrupted, KeyboardInterrupt: a signal; what was measured is kept.
    """
    progress = progress or Silent()
    job = _prepare(settings, progress)
    try:
        interrupt.check()
        return job.execute(progress)
    finally:
        job.prepared.engine.close()


@dataclass(frozen=True)
class _Job:
    """Everything that was checked before the first request."""

    settings: RunSettings
    directory: RunDirectory
    manifest: JsonObject
    prepared: Prepared
    pack: TracePack
    gate: Dataset
    limits: ReplayLimits
    gate_output_tokens: int

    def execute(self, progress: Progress) -> RunResult:
        manifest_sha256 = self.directory.write_manifest(self.manifest)
        progress.say(f"run directory: {self.directory.path}")
        with JournalWriter(self.directory.journal_path) as journal:
            try:
                self._measure(journal, progress, manifest_sha256)
            except KeyboardInterrupt as interruption:
                journal.write("interrupted", signal=signal_name(interruption))
                progress.say(f"what was measured: edge-agentic results show {self.directory.path}")
                raise
        summary = build_summary(self.manifest, self.directory.events())
        self.directory.write_summary(summary)
        return RunResult(self.directory.path, summary)

    def _measure(self, journal: JournalWriter, progress: Progress, manifest_sha256: str) -> None:
        journal.write(
            "run_started",
            schema=JOURNAL_SCHEMA,
            manifest_sha256=manifest_sha256,
            wall_time=utc_now().isoformat().replace("+00:00", "Z"),
            t_ns=monotonic_ns(),
        )
        run_gate(
            self.gate,
            self.prepared.reference,
            self.prepared.engine,
            journal,
            progress,
            max_output_tokens=self.gate_output_tokens,
            turn_timeout_s=self.settings.turn_timeout_s,
        )
        if self._gate_passed():
            self._replay(self.prepared.engine, journal, progress)
        journal.write("memory", peak_rss_mb=_peak_rss_mb())
        journal.write("run_finished")

    def _gate_passed(self) -> bool:
        gate = build_summary(self.manifest, self.directory.events())["gate"]
        return bool(gate["passed"])

    def _replay(self, engine: Engine, journal: JournalWriter, progress: Progress) -> None:
        turns = [turn for conversation in self.pack.conversations for turn in conversation.turns]
        scorable = sum(score_turn(turn.expected_calls, []) is not None for turn in turns)
        progress.phase("replay", len(turns))
        journal.write(
            "replay_started",
            policy=POLICY,
            dataset=self.pack.name,
            dataset_sha256=self.pack.sha256,
            expected_turns=len(turns),
            scorable_turns=scorable,
            t_ns=monotonic_ns(),
        )
        # Closed here: an interruption must remove the workspace before it goes on.
        with closing(play(self.pack, engine, self.limits, self._open_workspace)) as records:
            for record in records:
                if isinstance(record, TurnRecord):
                    journal.write("turn", **record.to_json())
                    progress.step(_speed_note(record))
                else:
                    journal.write("conversation_finished", **record.to_json())
                interrupt.check()
        journal.write("replay_finished", t_ns=monotonic_ns())

    def _open_workspace(self, conversation_id: str) -> AbstractContextManager[Sandbox | None]:
        source = self.pack.workspaces.get(conversation_id)
        return _sandboxed(source, self.settings.tier) if source else nullcontext(None)


@contextmanager
def _sandboxed(source: Path, tier: Tier) -> Iterator[Sandbox]:
    with ExitStack() as stack:
        # A workspace that is half made or half removed would stay on the disk.
        with interrupt.deferred():
            copy = fresh_copy(source, leave_out=BYTECODE_DIRECTORY)
            workspace = stack.enter_context(copy)
        try:
            yield stack.enter_context(open_sandbox(workspace, tier=tier))
        finally:
            with interrupt.deferred():
                stack.close()


def _prepare(settings: RunSettings, progress: Progress) -> _Job:
    check_output(settings.out)
    pack = load_pack(settings.pack)
    gate = _load_gate(settings.gate_set)
    limits = ReplayLimits(settings.max_output_tokens, settings.turn_timeout_s, pack.tool_timeout_s)
    gate_output_tokens = settings.max_output_tokens or (
        GATE_MINI_MAX_OUTPUT_TOKENS if gate.name == GATE_MINI else DEFAULT_MAX_OUTPUT_TOKENS
    )
    sandbox = check_sandbox(settings.tier, pack.required_tools) if pack.workspaces else None
    profile, device = load_profile(), read_device()
    if settings.engine.model is not None:
        progress.say(f"loading {resolve_model(settings.engine.model).name}")
    prepared = prepare_engine(settings.engine, profile, pack, gate)
    try:
        check_context(prepared.engine, pack, limits, gate, gate_output_tokens)
        manifest = build_manifest(
            engine=prepared.engine,
            model=prepared.model,
            pack=pack,
            gate=gate,
            limits=limits,
            gate_output_tokens=gate_output_tokens,
            device=device,
            profile_id=profile.id,
            sandbox=sandbox,
        )
        directory = create_run_directory(settings.out, prepared.label, profile.id)
    except BaseException:
        prepared.engine.close()
        raise
    return _Job(settings, directory, manifest, prepared, pack, gate, limits, gate_output_tokens)


def _load_gate(gate_set: str) -> Dataset:
    bundled = gate_mini()
    if gate_set == GATE_MINI:
        return bundled
    if not Path(gate_set).is_dir():
        raise BadInputError(f"{gate_set}: no such gate set; give '{GATE_MINI}' or a directory")
    dataset = load_dataset(Path(gate_set))
    if dataset.name == bundled.name and dataset.sha256 != bundled.sha256:
        raise BadInputError(
            f"{gate_set}: calls itself '{dataset.name}' but holds other cases; rename it"
        )
    return dataset


def _speed_note(record: TurnRecord) -> str:
    """Tokens/s of the turn just played, model time only."""
    times, output = record.completion.times, record.completion.tokens.output
    if not output or not times.arrivals_ns or not times.arrivals_ns[-1]:
        return ""
    return f"{output / (times.arrivals_ns[-1] / 1e9):.1f} tokens/s"


def _peak_rss_mb() -> float:
    """Peak resident memory of this process, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB
