"""One run from start to end: preflight, gate, replay, summary."""

from __future__ import annotations

import resource
from dataclasses import dataclass, replace
from pathlib import Path

from bfcl_gate.selection import Selection, select
from edge_agentic.core import interrupt
from edge_agentic.core.clock import monotonic_ns, utc_now
from edge_agentic.core.errors import BadInputError, signal_name
from edge_agentic.core.jsonio import JsonObject, sha256_file
from edge_agentic.core.replay_policy import ReplayPolicy
from edge_agentic.core.tool_mode import ToolMode
from edge_agentic.device.facts import read_device
from edge_agentic.device.profile import load_profile
from edge_agentic.engine.choices import EngineKind
from edge_agentic.engine.model_store import resolve_model
from edge_agentic.measure.events import JOURNAL_SCHEMA
from edge_agentic.measure.summary import build_summary
from edge_agentic.replay.lengths import recorded_lengths
from edge_agentic.replay.player import DEFAULT_MAX_OUTPUT_TOKENS, ReplayLimits, ReplayPlan
from edge_agentic.run.directory import RunDirectory, check_output, create_run_directory
from edge_agentic.run.engines import Prepared, prepare_engine
from edge_agentic.run.gate import gate_start, run_gate
from edge_agentic.run.gate_sets import GATE_MINI, open_gate_set
from edge_agentic.run.journal import JournalWriter
from edge_agentic.run.manifest import build_manifest
from edge_agentic.run.preflight import check_context
from edge_agentic.run.progress import Progress, Silent
from edge_agentic.run.replay_phase import run_replay
from edge_agentic.run.resume import UnfinishedGate, check_same_setup, find_unfinished_gate
from edge_agentic.run.settings import RunSettings
from edge_agentic.run.workspaces import Workspaces
from edge_agentic.trace.pack import TracePack, load_pack
from tools_sandbox.result import Tier

GATE_MINI_MAX_OUTPUT_TOKENS = 192
"""No right answer of `gate-mini` comes near it; a small model that rambles is cut there."""

_KIB_PER_MIB = 1024  # Linux counts ru_maxrss in KiB


@dataclass(frozen=True)
class RunResult:
    """A finished run: where it lies, and its summary."""

    directory: Path
    summary: JsonObject

    @property
    def gate_passed(self) -> bool | None:
        """Whether speed may be reported at all; None where a part of a set was asked."""
        passed: bool | None = self.summary["gate"]["passed"]
        return passed


def run(settings: RunSettings, progress: Progress | None = None) -> RunResult:
    """Run the whole job, or the gate alone, and leave a run directory.

    A gate that was cut short in `settings.out` is continued, under the same settings only.

    Raises:
        BadInputError: a file or option can't be used; found before anything is measured.
        RequirementError, SandboxUnavailable: the machine lacks something.
        StorageError, SandboxError: the disk or the sandbox failed; what was measured is kept.
        RunInterrupted, KeyboardInterrupt: a signal; what was measured is kept.
    """
    progress = progress or Silent()
    job = prepare(settings, progress)
    try:
        interrupt.check()
        return job.execute(progress)
    finally:
        job.prepared.engine.close()
        if job.prepared.server_log is not None:
            is_final = not settings.engine.server.keep_server
            job.directory.add_server_log(job.prepared.server_log, is_final=is_final)


@dataclass(frozen=True)
class Job:
    """Everything that was checked before the first request; `execute` asks it."""

    settings: RunSettings
    directory: RunDirectory
    manifest: JsonObject
    prepared: Prepared
    gate: Selection
    gate_output_tokens: int
    replay: ReplayPlan | None
    workspaces: Workspaces | None
    """None where no tool is to run."""
    unfinished: UnfinishedGate | None

    def execute(self, progress: Progress) -> RunResult:
        """Run the job; raises as `run`."""
        with self.directory.locked():
            return self._execute(progress)

    def _execute(self, progress: Progress) -> RunResult:
        manifest_sha256 = self._start(progress)
        append = self.unfinished is not None
        with JournalWriter(self.directory.journal_path, append=append) as journal:
            try:
                self._measure(journal, progress, manifest_sha256)
            except KeyboardInterrupt as interruption:
                journal.write("interrupted", signal=signal_name(interruption))
                progress.say(f"what was measured: edge-agentic results show {self.directory.path}")
                if self.replay is None:
                    progress.say(f"to continue: the same options and --out {self.directory.path}")
                raise
        summary = build_summary(self.manifest, self.directory.events())
        self.directory.write_summary(summary)
        return RunResult(self.directory.path, summary)

    def _start(self, progress: Progress) -> str:
        """Write the manifest, unless an earlier session has; return its SHA-256.

        Raises:
            BadInputError: another run came first while this one was getting ready.
        """
        if self.unfinished is None:
            check_output(self.directory.path)
        elif find_unfinished_gate(self.directory.path) != self.unfinished:
            raise BadInputError(
                f"{self.directory.path}: another run went on in it meanwhile; look at it first"
            )
        progress.say(f"run directory: {self.directory.path}")
        if self.unfinished is None:
            return self.directory.write_manifest(self.manifest)
        done = len(self.unfinished.verdicts or ())
        progress.say(f"continuing: {done} of {len(self.gate.cases)} cases are recorded there")
        return sha256_file(self.directory.manifest_path)

    def _measure(self, journal: JournalWriter, progress: Progress, manifest_sha256: str) -> None:
        journal.write(
            "run_started",
            schema=JOURNAL_SCHEMA,
            manifest_sha256=manifest_sha256,
            wall_time=utc_now().isoformat().replace("+00:00", "Z"),
            t_ns=monotonic_ns(),
        )
        if self.unfinished is None or not self.unfinished.is_finished:
            run_gate(
                self.gate,
                self.prepared.reference,
                self.prepared.engine,
                journal,
                progress,
                max_output_tokens=self.gate_output_tokens,
                turn_timeout_s=self.settings.turn_timeout_s,
                early_stop_error_rate=self.settings.gate.early_stop_error_rate,
                recorded=None if self.unfinished is None else self.unfinished.verdicts,
            )
        if self.replay is not None and self._gate_passed():
            run_replay(self.replay, self.prepared, self.workspaces, journal, progress)
        journal.write("memory", peak_rss_mb=_peak_rss_mb())
        journal.write("run_finished")

    def _gate_passed(self) -> bool:
        gate = build_summary(self.manifest, self.directory.events())["gate"]
        return bool(gate["passed"])


def prepare(settings: RunSettings, progress: Progress) -> Job:
    """Check all that can be checked and load the model; the caller closes the engine.

    Raises:
        BadInputError, RequirementError, SandboxUnavailable: as `run`.
    """
    unfinished = find_unfinished_gate(settings.out) if settings.pack is None else None
    if unfinished is None:
        check_output(settings.out)
    replay = None if settings.pack is None else _plan_replay(settings, settings.pack)
    gate = select(
        open_gate_set(settings.gate.dataset),
        settings.gate.selection,
        subsets=settings.gate.subsets,
        limit=settings.gate.limit,
    )
    is_mini = gate.dataset.name == GATE_MINI
    gate_output_tokens = settings.max_output_tokens or (
        GATE_MINI_MAX_OUTPUT_TOKENS if is_mini else DEFAULT_MAX_OUTPUT_TOKENS
    )
    workspaces = None if replay is None else _workspaces(replay, settings.tier)
    sandbox = None if workspaces is None else workspaces.prove()
    profile, device = load_profile(), read_device()
    if settings.engine.kind is EngineKind.LLAMACPP and settings.engine.model is not None:
        progress.say(f"loading {resolve_model(settings.engine.model).name}")
    pack = replay.pack if replay else None
    force_length = replay is not None and settings.policy is ReplayPolicy.EXACT
    prepared = prepare_engine(
        settings.engine, profile, pack, gate, progress.say, force_length=force_length
    )
    try:
        if replay is not None and force_length:
            replay = replace(replay, lengths=recorded_lengths(replay.pack, prepared.engine))
        check_context(prepared.engine, gate.cases, gate_output_tokens, replay)
        manifest = build_manifest(
            engine=prepared.engine,
            model=prepared.model,
            gate=gate,
            gate_output_tokens=gate_output_tokens,
            early_stop_error_rate=settings.gate.early_stop_error_rate,
            turn_timeout_s=settings.turn_timeout_s,
            replay=replay,
            device=device,
            profile_id=profile.id,
            sandbox=sandbox,
        )
        if unfinished is None:
            directory = create_run_directory(settings.out, prepared.label, profile.id)
        else:
            start = gate_start(gate, prepared.reference, settings.gate.early_stop_error_rate)
            check_same_setup(unfinished, manifest, start)
            directory, manifest = unfinished.directory, unfinished.manifest
    except BaseException:
        prepared.engine.close()
        raise
    return Job(
        settings,
        directory,
        manifest,
        prepared,
        gate,
        gate_output_tokens,
        replay,
        workspaces,
        unfinished,
    )


def _plan_replay(settings: RunSettings, name: str) -> ReplayPlan:
    pack = load_pack(name)
    is_live = settings.policy is ReplayPolicy.LIVE
    if is_live:
        _require_tasks(pack)
    return ReplayPlan(
        pack,
        ReplayLimits(settings.max_output_tokens, settings.turn_timeout_s, pack.tool_timeout_s),
        concurrency=settings.engine.server.concurrency,
        tools=settings.tools,
        live=settings.live if is_live else None,
    )


def _require_tasks(pack: TracePack) -> None:
    """Refuse a pack that the policy `live` can't play: without a check nobody knows success."""
    for conversation in pack.conversations:
        if conversation.id not in pack.workspaces or conversation.id not in pack.checks:
            raise BadInputError(
                f"pack '{pack.name}', conversation '{conversation.id}': the policy 'live' needs "
                "a workspace and a check; add them to pack.json, or use --policy recorded"
            )


def _workspaces(plan: ReplayPlan, tier: Tier) -> Workspaces | None:
    if not plan.pack.workspaces or plan.tools is not ToolMode.EXECUTE:
        return None
    return Workspaces(plan.pack, tier)


def _peak_rss_mb() -> float:
    """Peak resident memory of this process, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB
