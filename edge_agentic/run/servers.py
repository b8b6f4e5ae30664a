"""Opens the engine that asks a server: one that runs already, or one that is started for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.device.profile import DeviceProfile
from edge_agentic.engine.choices import MAX_THREADS
from edge_agentic.engine.model_store import resolve_model
from edge_agentic.engine.openai import OpenAIEngine, ServedModel
from edge_agentic.engine.openai_endpoint import Endpoint, parse_base_url, read_api_key
from edge_agentic.engine.openai_identify import identify
from edge_agentic.engine.openai_probes import run_probes
from edge_agentic.engine.server_commands import ServerSettings
from edge_agentic.engine.server_kinds import ServerKind, dialect_of
from edge_agentic.engine.server_process import ManagedServer
from edge_agentic.engine.server_registry import remember
from edge_agentic.run.server_settings import GGUF_SERVERS, STARTED, ServerOptions
from edge_agentic.run.settings import EngineSettings

Say = Callable[[str], None]


class ServedEngine(OpenAIEngine):
    """Asks a server, and stops it in the end if it was started for this run."""

    def __init__(
        self,
        served: ServedModel,
        server: ManagedServer | None,
        *,
        context_tokens: int | None,
        can_force_length: bool,
        facts: JsonObject,
    ) -> None:
        """Take over a server that is ready; the arguments are `OpenAIEngine`'s.

        Args:
            served: the server, the model, and how requests are written.
            server: the server's process; None if it is not this run's.
            context_tokens: size of the context window, if the server told.
            can_force_length: whether the server was seen to.
            facts: what else the manifest should hold.
        """
        super().__init__(
            served, context_tokens=context_tokens, can_force_length=can_force_length, facts=facts
        )
        self._server = server

    def another(self) -> OpenAIEngine:
        """An engine with a connection of its own to the same model, for another stream."""
        return OpenAIEngine(self.served, context_tokens=self.context_tokens)

    def close(self) -> None:
        """Close the connection, and stop the server unless it is kept. Safe to call twice."""
        super().close()
        if self._server is not None:
            self._server.close()


@dataclass(frozen=True)
class Opened:
    """An engine that is ready, the public name of its model, and the log of a started server."""

    engine: ServedEngine
    model_name: str
    log: Path | None


def open_server_engine(
    settings: EngineSettings,
    profile: DeviceProfile,
    *,
    constrained: bool,
    force_length: bool,
    say: Say,
) -> Opened:
    """Start a server if one is asked for, find out what it is, and try it out.

    Args:
        settings: the engine that the user asked for.
        profile: sizes for a server that is started.
        constrained: hold answers to the functions' schemas.
        force_length: the replay's policy fixes the length of answers.
        say: tells the user what is going on.

    Raises:
        BadInputError: the server or the model can't be used as the options say.
        RequirementError: the server can't be reached or started, or would spoil the run.
    """
    options = settings.server
    key = read_api_key(options.api_key_env)
    server, own_context = None, None
    kind = STARTED.get(settings.kind, options.server_kind)
    if settings.kind in STARTED:
        sizes = server_sizes(settings, profile, model_to_serve(settings))
        own_context = sizes.context_tokens
        server = _start(STARTED[settings.kind], sizes, options, say)
    try:
        endpoint = _endpoint(settings, server)
        identity = identify(endpoint, key, model=options.served_model, kind=kind)
        served = ServedModel(
            endpoint,
            identity.model,
            identity.kind,
            dialect_of(identity.kind, options.server_settings),
            key,
            constrained,
        )
        say(f"probing {served.public_name} on {identity.kind.value} at {endpoint.url}")
        report = run_probes(served)
        report.require(force_length=force_length)
        for note in report.notes:
            say(f"note: {note}")
        facts = {**identity.to_json(), "probes": report.to_json()}
        if server is not None:
            facts |= server.started.to_json()
        engine = ServedEngine(
            served,
            server,
            context_tokens=identity.context_tokens or own_context,
            can_force_length=report.can_force_length,
            facts=facts,
        )
    except BaseException:
        if server is not None:
            server.close()
        raise
    return Opened(engine, served.public_name, server.started.log if server else None)


def model_to_serve(settings: EngineSettings) -> str:
    """What a started server loads: the GGUF file, or whatever other servers call a model.

    Raises:
        BadInputError: no such file, or no such name of a bundled model.
    """
    assert settings.model is not None
    if settings.kind in GGUF_SERVERS:
        return str(resolve_model(settings.model))
    return settings.model


def server_sizes(settings: EngineSettings, profile: DeviceProfile, model: str) -> ServerSettings:
    """What a started server is given: the user's sizes, else the device profile's."""
    defaults = profile.engine
    given_layers = settings.gpu_layers
    return ServerSettings(
        model=model,
        context_tokens=settings.context_tokens or defaults.context_tokens,
        batch_tokens=defaults.batch_tokens,
        micro_batch_tokens=defaults.micro_batch_tokens,
        gpu_layers=defaults.gpu_layers if given_layers is None else given_layers,
        threads=settings.threads or min(psutil.cpu_count(logical=False) or 1, MAX_THREADS),
        slots=settings.server.concurrency,
        extra=settings.server.server_args,
    )


def _start(
    kind: ServerKind, sizes: ServerSettings, options: ServerOptions, say: Say
) -> ManagedServer:
    say(f"starting {kind.value}")
    server = ManagedServer(kind, options.server_bin, sizes)
    if not options.keep_server:
        return server
    try:
        kept = remember(server.started)
        server.keep()
    except BaseException:
        server.close()
        raise
    say(f"{kept.name} stays up: edge-agentic server stop {kept.name}")
    return server


def _endpoint(settings: EngineSettings, server: ManagedServer | None) -> Endpoint:
    if server is not None:
        return server.started.endpoint
    assert settings.server.base_url is not None
    return parse_base_url(settings.server.base_url)
