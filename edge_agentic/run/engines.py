"""Builds the engine that the user asked for, from settings and the device profile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from bfcl_gate.references import Floor, Reference, load_references
from bfcl_gate.selection import PART, Selection
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject, sha256_file
from edge_agentic.device.profile import DeviceProfile
from edge_agentic.engine.api import Engine
from edge_agentic.engine.choices import (
    DEFAULT_SNAPSHOT_MIB,
    DEFAULT_SNAPSHOTS,
    MAX_THREADS,
    EngineKind,
    ToolGrammar,
)
from edge_agentic.engine.gguf import GgufInfo, read_gguf
from edge_agentic.engine.memory_check import require_memory
from edge_agentic.engine.model_store import resolve_model
from edge_agentic.engine.requirement import importing_llamacpp
from edge_agentic.engine.scripted import ScriptedEngine
from edge_agentic.run.answers import RECORDED, answer_book
from edge_agentic.run.manifest import model_facts
from edge_agentic.run.server_settings import GGUF_SERVERS
from edge_agentic.run.settings import EngineSettings
from edge_agentic.trace.pack import TracePack


@dataclass(frozen=True)
class Prepared:
    """An engine that is ready, the model's facts, and what its gate is held to."""

    engine: Engine
    label: str
    model: JsonObject | None
    reference: Reference | Floor | None
    """None for a part of a gate set, which has no verdict."""
    server_log: Path | None = None
    """The output of a server that was started for the run."""
    another: Callable[[], Engine] | None = None
    """Opens a further engine on the same model; None where there can be only one."""


def prepare_engine(
    settings: EngineSettings,
    profile: DeviceProfile,
    pack: TracePack | None,
    gate: Selection,
    say: Callable[[str], None],
    *,
    force_length: bool = False,
) -> Prepared:
    """Load the model, find and probe its server, or take the answers of the scripted engine.

    Args:
        settings: the engine that the user asked for.
        profile: sizes that suit the device.
        pack: what is to be replayed, if anything.
        gate: the cases to be asked.
        say: tells the user what is going on.
        force_length: whether the replay's policy fixes the length of answers.

    Raises:
        BadInputError: the model or the answers can't be used, or nothing is known to hold the
            gate set to.
        RequirementError: llama-cpp-python is not installed, or a server can't be used.
    """
    if settings.kind is EngineKind.LLAMACPP:
        return _prepare_llamacpp(settings, profile, gate)
    if settings.kind is not EngineKind.SCRIPTED:
        return _prepare_server(settings, profile, gate, say, force_length=force_length)
    choice = settings.answers or RECORDED
    source = Path(choice).name
    answers = answer_book(choice, pack, gate.cases).get
    scripted = ScriptedEngine(answers, source=source, delays=settings.delays)
    reference = _find_reference(gate, None, None)
    return Prepared(scripted, f"scripted-{source}", None, _judging(gate, reference))


def _prepare_llamacpp(
    settings: EngineSettings, profile: DeviceProfile, gate: Selection
) -> Prepared:
    assert settings.model is not None
    path = resolve_model(settings.model)
    info = read_gguf(path)
    sha256 = sha256_file(path)
    reference = _find_reference(gate, sha256, info.name)
    engine = _load(path, info, settings, profile, reference)
    return Prepared(engine, path.stem, model_facts(info, sha256), _judging(gate, reference))


def _prepare_server(
    settings: EngineSettings,
    profile: DeviceProfile,
    gate: Selection,
    say: Callable[[str], None],
    *,
    force_length: bool,
) -> Prepared:
    # Imported here: sockets and TLS take time that other engines don't have.
    from edge_agentic.run.servers import model_to_serve, open_server_engine

    model, sha256, name = None, None, settings.server.served_model
    if settings.kind in GGUF_SERVERS:
        file = Path(model_to_serve(settings))
        info, sha256 = read_gguf(file), sha256_file(file)
        model, name = model_facts(info, sha256), info.name
    reference = _find_reference(gate, sha256, name)
    constrained = _grammar(settings.tool_grammar, reference) is ToolGrammar.ON
    opened = open_server_engine(
        settings, profile, constrained=constrained, force_length=force_length, say=say
    )
    if model is None:
        # Which weights a server holds, nobody can check: only the name is known.
        model = {"name": opened.model_name}
        reference = _find_reference(gate, None, opened.model_name)
    judging = _judging(gate, reference)
    return Prepared(
        opened.engine, opened.model_name, model, judging, opened.log, opened.engine.another
    )


def _load(
    path: Path,
    info: GgufInfo,
    settings: EngineSettings,
    profile: DeviceProfile,
    reference: Reference | Floor,
) -> Engine:
    with importing_llamacpp():
        from edge_agentic.engine import llama_library
        from edge_agentic.engine.llama_runtime import RuntimeSettings
        from edge_agentic.engine.llamacpp import LlamaCppEngine, LlamaCppSettings
        from edge_agentic.engine.prefix_cache import SnapshotLimits
    defaults = profile.engine
    own_context = info.context_length_tokens or defaults.context_tokens
    gpu_layers = _given(settings.gpu_layers, defaults.gpu_layers)
    on_device = gpu_layers != 0 and llama_library.can_offload()
    context_tokens = settings.context_tokens or min(own_context, defaults.context_tokens)
    if not on_device:
        # An accelerator may have memory of its own, of which llama.cpp knows.
        machine_bytes = psutil.virtual_memory().total
        require_memory(info, context_tokens, settings.draft.rollback_tokens, machine_bytes)
    return LlamaCppEngine(
        path,
        LlamaCppSettings(
            RuntimeSettings(
                context_tokens=context_tokens,
                batch_tokens=defaults.batch_tokens,
                micro_batch_tokens=defaults.micro_batch_tokens,
                threads=settings.threads or min(psutil.cpu_count(logical=False) or 1, MAX_THREADS),
                gpu_layers=gpu_layers,
            ),
            tool_grammar=_grammar(settings.tool_grammar, reference),
            tool_format=settings.tool_format,
            reasoning=settings.reasoning,
            snapshots=SnapshotLimits(
                _given(settings.prefix_snapshots, DEFAULT_SNAPSHOTS),
                _given(settings.prefix_snapshot_mib, DEFAULT_SNAPSHOT_MIB) * 2**20,
                on_device=on_device,
            ),
            draft=settings.draft,
        ),
    )


def _given(value: int | None, default: int) -> int:
    return default if value is None else value


def _grammar(choice: ToolGrammar, reference: Reference | Floor) -> ToolGrammar:
    if choice is not ToolGrammar.REFERENCE:
        return choice
    on = isinstance(reference, Reference) and reference.tool_grammar == "on"
    return ToolGrammar.ON if on else ToolGrammar.OFF


def _judging(gate: Selection, reference: Reference | Floor) -> Reference | Floor | None:
    """What the scores are held to: a part of a set is asked as its whole is, and not judged."""
    return None if gate.name == PART else reference


def _find_reference(
    gate: Selection, gguf_sha256: str | None, gguf_name: str | None
) -> Reference | Floor:
    found = load_references().find(
        gate.dataset.name, gate.base, gguf_sha256=gguf_sha256, gguf_name=gguf_name
    )
    if found is None:
        raise BadInputError(
            f"nothing is known to hold a model to on the gate set '{gate.dataset.name}', "
            f"{gate.base}; use gate-mini"
        )
    return found
