"""Device profiles: engine settings that suit a device, kept as TOML data."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.json_schema import Schema
from edge_agentic.core.jsonio import read_bytes
from edge_agentic.core.resources import data_dir

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class EngineDefaults:
    """How the in-process engine is set up unless the user says otherwise."""

    context_tokens: int
    batch_tokens: int
    micro_batch_tokens: int
    gpu_layers: int


@dataclass(frozen=True)
class DeviceProfile:
    """One device: its id, its name, and the engine settings that suit it."""

    id: str
    name: str
    engine: EngineDefaults


def load_profile(profile_id: str | None = None) -> DeviceProfile:
    """A bundled profile by its id, or the generic one of this machine's architecture.

    Raises:
        BadInputError: no such profile, or one that breaks the schema.
    """
    folder = data_dir("device_profiles")
    wanted = profile_id or ("generic-aarch64" if _is_arm() else "generic-x86")
    known = sorted(path.stem for path in folder.glob("*.toml"))
    if wanted not in known:
        raise BadInputError(f"no device profile '{wanted}'; there are: {', '.join(known)}")
    return read_profile(folder / f"{wanted}.toml")


def read_profile(path: Path) -> DeviceProfile:
    """A profile from a file.

    Raises:
        BadInputError: not TOML, or against the schema; names the file and the key.
    """
    try:
        raw: dict[str, Any] = tomllib.loads(read_bytes(path).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path}: not valid TOML ({error})") from None
    schema = Schema.read(data_dir("device_profiles") / "profile.schema.json")
    if not schema.accepts(raw):
        problem = next(schema.errors(raw))
        where = ".".join(map(str, problem.absolute_path)) or "top level"
        raise BadInputError(f"{path}: {where}: {problem.message}")
    return DeviceProfile(raw["id"], raw["name"], EngineDefaults(**raw["engine"]))


def _is_arm() -> bool:
    return platform.machine().lower() in ("aarch64", "arm64")
