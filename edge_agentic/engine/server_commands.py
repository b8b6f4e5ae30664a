"""The command line of each server that can be started here, with its settings pinned.

llama.cpp's two servers are tested with real processes; the others follow their documentation
and were not tried on hardware.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edge_agentic.core.errors import BadInputError, RequirementError
from edge_agentic.engine.openai_request import SEED
from edge_agentic.engine.server_kinds import ServerKind

_ANSWER_RESERVE_TOKENS: Final = 1024


@dataclass(frozen=True)
class ServerSettings:
    """What a server is started with; sizes come from the device profile."""

    model: str
    """A GGUF file for llama.cpp's servers; a checkpoint's directory or name for the others."""
    context_tokens: int
    batch_tokens: int
    micro_batch_tokens: int
    gpu_layers: int
    threads: int
    slots: int = 1
    extra: tuple[str, ...] = ()
    """Words added to the end of the command line, as they are."""


def find_program(kind: ServerKind, given: str | None) -> str:
    """The program of a server: the one that was given, or the usual name on the search path.

    Raises:
        RequirementError: there is none, or it can't be run.
    """
    name = given or _PROGRAMS[kind].name
    found = shutil.which(name)
    if found is None:
        raise RequirementError(f"no program {name!r} for --engine {kind.value}; give --server-bin")
    return os.path.abspath(found)  # noqa: PTH100 - links stay: an interpreter needs its venv


def command_line(kind: ServerKind, program: str, port: int, settings: ServerSettings) -> list[str]:
    """The words that start a server on a loopback port.

    Raises:
        BadInputError: the model is none that this server can load.
    """
    return [program, *_PROGRAMS[kind].words(program, str(port), settings), *settings.extra]


def version_command(kind: ServerKind, program: str) -> list[str] | None:
    """The words that print a server's version; None where the running server tells it."""
    words = _PROGRAMS[kind].version
    return [program, *words] if words else None


def ready_path(kind: ServerKind) -> str:
    """The path that answers 200 as soon as the server can be asked."""
    return _PROGRAMS[kind].ready


@dataclass(frozen=True)
class _Program:
    name: str
    words: Callable[[str, str, ServerSettings], Sequence[str]]
    ready: str = "/health"
    version: tuple[str, ...] = ()


def _gguf(settings: ServerSettings) -> str:
    if not Path(settings.model).is_file():
        raise BadInputError(f"{settings.model}: no such file; llama.cpp's servers load a GGUF file")
    return settings.model


def _llama_server(program: str, port: str, settings: ServerSettings) -> Sequence[str]:
    sizes: dict[str, int | str] = {
        # llama-server divides the window among its slots.
        "--ctx-size": settings.context_tokens * settings.slots,
        "--parallel": settings.slots,
        "--batch-size": settings.batch_tokens,
        "--ubatch-size": settings.micro_batch_tokens,
        "--n-gpu-layers": "all" if settings.gpu_layers < 0 else settings.gpu_layers,
        "--threads": settings.threads,
        "--seed": SEED,
    }
    return [
        *("--host", "127.0.0.1", "--port", port, "--model", _gguf(settings), "--jinja"),
        *_flags(sizes),
    ]


def _llama_cpp_python(program: str, port: str, settings: ServerSettings) -> Sequence[str]:
    sizes: dict[str, int | str] = {
        "--n_ctx": settings.context_tokens,
        "--n_batch": settings.batch_tokens,
        "--n_ubatch": settings.micro_batch_tokens,
        "--n_gpu_layers": settings.gpu_layers,
        "--n_threads": settings.threads,
        "--seed": SEED,
        # Its default keeps the logits of every prompt token.
        "--logits_all": "false",
        # Its default ends an answer as soon as another request comes.
        "--interrupt_requests": "false",
    }
    start = ("-m", "llama_cpp.server", "--host", "127.0.0.1", "--port", port)
    return [*start, "--model", _gguf(settings), *_flags(sizes)]


def _vllm(program: str, port: str, settings: ServerSettings) -> Sequence[str]:
    sizes = {
        "--max-model-len": settings.context_tokens,
        "--max-num-seqs": settings.slots,
        "--seed": SEED,
    }
    start = ("serve", settings.model, "--host", "127.0.0.1", "--port", port)
    switches = ["--enable-prefix-caching", "--enable-prompt-tokens-details"]
    # Without the model's parser beside it, vLLM does not start.
    if any(word.partition("=")[0] == "--tool-call-parser" for word in settings.extra):
        switches.append("--enable-auto-tool-choice")
    return [*start, *switches, *_flags(sizes)]


def _sglang(program: str, port: str, settings: ServerSettings) -> Sequence[str]:
    sizes = {
        "--context-length": settings.context_tokens,
        "--max-running-requests": settings.slots,
        "--random-seed": SEED,
    }
    start = ("-m", "sglang.launch_server", "--model-path", settings.model)
    return [*start, "--host", "127.0.0.1", "--port", port, "--enable-cache-report", *_flags(sizes)]


def _trtllm_edge(program: str, port: str, settings: ServerSettings) -> Sequence[str]:
    sizes = {
        "--max-input-len": settings.context_tokens,
        "--max-kv-cache-capacity": settings.context_tokens + _ANSWER_RESERVE_TOKENS,
        "--max-batch-size": settings.slots,
    }
    # One of its programs is the server itself, the others have a command for it.
    start = () if Path(program).name.endswith("-serve") else ("serve",)
    switches = ["--enable-auto-tool-choice", "--enable-context-reuse"]
    if settings.slots > 1:
        switches.append("--enable-in-flight-batching")
    # By default it listens to the whole network.
    address = ("--host", "127.0.0.1", "--port", port)
    return [*start, settings.model, *address, *switches, *_flags(sizes)]


def _flags(values: Mapping[str, int | str]) -> list[str]:
    return [word for name, value in values.items() for word in (name, str(value))]


_PROGRAMS: Final[Mapping[ServerKind, _Program]] = {
    ServerKind.LLAMA_SERVER: _Program("llama-server", _llama_server, version=("--version",)),
    ServerKind.LLAMA_CPP_PYTHON: _Program(
        sys.executable,
        _llama_cpp_python,
        ready="/v1/models",
        version=("-c", "import llama_cpp; print(llama_cpp.__version__)"),
    ),
    ServerKind.VLLM: _Program("vllm", _vllm, version=("--version",)),
    ServerKind.SGLANG: _Program(sys.executable, _sglang),
    ServerKind.TRTLLM_EDGE: _Program("tensorrt-edgellm-serve", _trtllm_edge, ready="/health/ready"),
}
