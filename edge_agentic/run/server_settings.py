"""What the user asked of a server engine, checked at construction."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.choices import EngineKind
from edge_agentic.engine.openai_endpoint import parse_base_url
from edge_agentic.engine.server_kinds import ServerKind, dialect_of

STARTED: Final = {
    EngineKind.LLAMA_SERVER: ServerKind.LLAMA_SERVER,
    EngineKind.LLAMA_CPP_PYTHON: ServerKind.LLAMA_CPP_PYTHON,
    EngineKind.VLLM: ServerKind.VLLM,
    EngineKind.SGLANG: ServerKind.SGLANG,
    EngineKind.TRTLLM_EDGE: ServerKind.TRTLLM_EDGE,
}
"""The engines that start a server, and the kind of each."""
MAX_CONCURRENCY: Final = 256
"""More threads than any board's server has slots."""
GGUF_SERVERS: Final = (EngineKind.LLAMA_SERVER, EngineKind.LLAMA_CPP_PYTHON)
"""Those that load a GGUF file."""


@dataclass(frozen=True)
class ServerOptions:
    """The options of engines that ask a server. None or empty takes the usual."""

    base_url: str | None = None
    served_model: str | None = None
    api_key_env: str | None = None
    """The environment variable that holds the key; never the key."""
    server_kind: ServerKind | None = None
    server_settings: tuple[str, ...] = ()
    """Departures from how this kind of server is asked, `NAME=VALUE`."""
    server_bin: str | None = None
    server_args: tuple[str, ...] = ()
    keep_server: bool = False
    concurrency: int = 1
    """How many conversations are played at once."""

    def __post_init__(self) -> None:
        """Refuse a URL, a setting or a number that can't be used."""
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise BadInputError(
                f"--concurrency must be from 1 to {MAX_CONCURRENCY}, got {self.concurrency}"
            )
        if self.base_url is not None:
            parse_base_url(self.base_url)
        dialect_of(self.server_kind or ServerKind.OTHER, self.server_settings)

    def check(self, kind: EngineKind, model: str | None) -> None:
        """Refuse options that don't belong to this engine.

        Raises:
            BadInputError: names the option, and the engine that it belongs to.
        """
        if kind is EngineKind.OPENAI:
            if self.base_url is None:
                raise BadInputError(
                    "give the server's address: --base-url http://127.0.0.1:8080/v1"
                )
            if model is not None:
                raise BadInputError(
                    "--engine openai asks the model that a server holds; use --served-model"
                )
            self._refuse("an engine that starts a server, such as --engine llama-server", _START)
        elif kind in STARTED:
            if model is None:
                raise BadInputError("give the model to be served: --model")
            self._refuse("--engine openai", _CONNECT)
        else:
            self._refuse("--engine openai, or an engine that starts a server", _CONNECT + _START)
            self._refuse("--engine openai, or an engine that starts a server", _ASK)

    def _refuse(self, owner: str, names: tuple[str, ...]) -> None:
        defaults = {field.name: field.default for field in fields(self)}
        for name in names:
            if getattr(self, name) != defaults[name]:
                option = "--" + name.removesuffix("s").replace("_", "-")
                raise BadInputError(f"{option} belongs to {owner}")


_CONNECT: Final = ("base_url", "served_model", "api_key_env", "server_kind")
_START: Final = ("server_bin", "server_args", "keep_server")
_ASK: Final = ("server_settings", "concurrency")
