"""Finds out which server answers, which model it serves, and how large its window is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from edge_agentic.core.errors import BadInputError, RequirementError
from edge_agentic.core.jsonio import JsonObject, is_json
from edge_agentic.core.text import one_line
from edge_agentic.engine.openai_connection import OpenAIConnection
from edge_agentic.engine.openai_endpoint import ApiKey, Endpoint, hiding
from edge_agentic.engine.openai_faults import Failure, Fault, status_failure
from edge_agentic.engine.openai_values import as_count, as_object, as_text
from edge_agentic.engine.server_kinds import ServerKind

_TIMEOUT_S: Final = 15.0
_MOST_NAMED: Final = 8

_OWNERS: Final[Mapping[str, ServerKind]] = {
    "llamacpp": ServerKind.LLAMA_SERVER,
    "me": ServerKind.LLAMA_CPP_PYTHON,
    "vllm": ServerKind.VLLM,
    "sglang": ServerKind.SGLANG,
    "tensorrt_llm": ServerKind.TRTLLM_SERVE,
    "tensorrt-edgellm": ServerKind.TRTLLM_EDGE,
    "library": ServerKind.OLLAMA,
}
"""What each kind of server says in `owned_by` of its models."""


@dataclass(frozen=True)
class Identity:
    """What a server says of itself. None where it does not say."""

    kind: ServerKind
    model: str
    context_tokens: int | None
    version: str | None
    slots: int | None

    def to_json(self) -> JsonObject:
        """The facts for the manifest that a request's settings don't hold."""
        return {"server_version": self.version, "server_slots": self.slots}


def identify(
    endpoint: Endpoint, key: ApiKey | None, *, model: str | None, kind: ServerKind | None
) -> Identity:
    """Ask a server what it is.

    Args:
        endpoint: where it listens.
        key: what it may want to see.
        model: the served model that the user named; None takes the only one.
        kind: the kind that the user gave; None detects it.

    Raises:
        RequirementError: it can't be reached, or wants another key.
        BadInputError: it does not serve the model, or several where none was named.
    """
    connection = OpenAIConnection(endpoint, key)
    try:
        reply = _Reply.get(connection, f"{endpoint.api_path}/models")
        if reply.failure is not None and (reply.failure.fault is not Fault.NOT_FOUND or not model):
            raise unusable(endpoint, reply.failure, key)
        entries = _entries(reply.payload)
        hide = hiding(key)
        entry = _choose(entries, model, endpoint, hide)
        found = kind or _detect(entry, reply, connection, endpoint)
        context, version, slots = _facts(entry, found, connection, endpoint)
        return Identity(
            found,
            model or as_text(entry.get("id")),
            context,
            version and hide(version),
            slots,
        )
    finally:
        connection.close()


def unusable(endpoint: Endpoint, failure: Failure, key: ApiKey | None) -> RequirementError:
    """The error for a server that can't be used, with what to do about it."""
    hint = _HINTS.get(failure.fault, "")
    return RequirementError(f"{endpoint.url}: {failure.told(key)}{f'; {hint}' if hint else ''}")


_HINTS: Final[Mapping[Fault, str]] = {
    Fault.REFUSED: "start the server, or give another --base-url",
    Fault.NO_ANSWER: "the server hangs; look at its log",
    Fault.UNAUTHORIZED: "name the environment variable that holds its key: --api-key-env",
    Fault.NOT_FOUND: "give the API's own --base-url (it often ends with /v1) and --served-model",
    Fault.REJECTED: "leave out what it does not take: --server-setting NAME=none",
    Fault.UNAVAILABLE: "wait until the model is loaded",
    Fault.RATE_LIMITED: "a server that puts clients off can't be measured; lift its limit",
    Fault.NOT_EVENTS: "give the API's own --base-url (it often ends with /v1)",
    Fault.NOT_HTTP: "give the port of its HTTP API; https:// if it speaks TLS",
}


@dataclass(frozen=True)
class _Reply:
    headers: Mapping[str, str]
    payload: JsonObject | None
    failure: Failure | None

    @classmethod
    def get(cls, connection: OpenAIConnection, path: str) -> _Reply:
        exchange = connection.get(path, deadline_s=_TIMEOUT_S)
        if exchange.failure is not None or exchange.head is None:
            return cls({}, None, exchange.failure or Failure(Fault.RESET, "no answer"))
        head = exchange.head
        failure = status_failure(head.status, head.headers, exchange.body)
        payload = as_object(exchange.body)
        if failure is None and payload is None:
            failure = Failure(Fault.NOT_EVENTS, f"{path} is no JSON")
        return cls(head.headers, payload, failure)


def _entries(payload: JsonObject | None) -> list[JsonObject]:
    return _objects(payload.get("data")) if payload else []


def _choose(
    entries: list[JsonObject], model: str | None, endpoint: Endpoint, hide: Callable[[str], str]
) -> JsonObject:
    # A name that UTF-8 can't hold could be neither sent nor written down.
    entries = [entry for entry in entries if is_json(entry.get("id"))]
    names = [as_text(entry.get("id")) for entry in entries]
    if model is not None:
        if model in names:
            return entries[names.index(model)]
        # llama-server serves its one model under any name.
        if not names or (len(names) == 1 and entries[0].get("owned_by") == "llamacpp"):
            return entries[0] if entries else {}
        raise BadInputError(f"{endpoint.url} serves no {model!r}; it serves {hide(_named(names))}")
    if len(names) != 1 or not names[0]:
        raise BadInputError(
            f"{endpoint.url} serves {hide(_named(names))}; choose one with --served-model"
        )
    return entries[0]


def _named(names: list[str]) -> str:
    shown = ", ".join(one_line(name)[:80] for name in names[:_MOST_NAMED])
    return (shown + (", …" if len(names) > _MOST_NAMED else "")) or "no model that it names"


def _detect(
    entry: JsonObject, reply: _Reply, connection: OpenAIConnection, endpoint: Endpoint
) -> ServerKind:
    owner = as_text(entry.get("owned_by")).lower()
    if owner in _OWNERS:
        return _OWNERS[owner]
    if "llama.cpp" in reply.headers.get("server", ""):
        return ServerKind.LLAMA_SERVER
    version = _Reply.get(connection, f"{endpoint.root_path}/api/version")
    if version.payload and set(version.payload) == {"version"}:
        return ServerKind.OLLAMA
    return ServerKind.OTHER


def _facts(
    entry: JsonObject, kind: ServerKind, connection: OpenAIConnection, endpoint: Endpoint
) -> tuple[int | None, str | None, int | None]:
    """Context window, version and slots, as far as the server tells."""
    place = _VERSIONS.get(kind)
    about: JsonObject = {}
    if place is not None:
        about = _Reply.get(connection, f"{endpoint.root_path}{place[0]}").payload or {}
    windows: list[Any] = []
    if kind is ServerKind.LLAMA_SERVER:
        defaults = about.get("default_generation_settings")
        # Of one slot; the models list may tell that of all slots together.
        windows.append(defaults.get("n_ctx") if isinstance(defaults, dict) else None)
    elif kind is ServerKind.OLLAMA:
        running = _Reply.get(connection, f"{endpoint.root_path}/api/ps").payload or {}
        windows += [
            model.get("context_length")
            for model in _objects(running.get("models"))
            if entry.get("id") in (model.get("name"), model.get("model"))
        ]
    windows.append(entry.get("max_model_len"))
    meta = entry.get("meta")
    windows.append(meta.get("n_ctx") if isinstance(meta, dict) else None)
    context = next((count for value in windows if (count := as_count(value))), None)
    version = one_line(as_text(about.get(place[1])))[:80] if place else ""
    return context, version or None, as_count(about.get("total_slots"))


_VERSIONS: Final[Mapping[ServerKind, tuple[str, str]]] = {
    ServerKind.LLAMA_SERVER: ("/props", "build_info"),
    ServerKind.VLLM: ("/version", "version"),
    ServerKind.SGLANG: ("/get_server_info", "version"),
    ServerKind.TRTLLM_SERVE: ("/version", "version"),
    ServerKind.OLLAMA: ("/api/version", "version"),
}
"""Where each kind of server tells its version, and in which field."""


def _objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
