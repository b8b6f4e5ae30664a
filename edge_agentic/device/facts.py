"""What the machine is, read from /proc, device tree and the kernel. No root, no service."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from edge_agentic.core.jsonio import JsonObject

MIB = 1024 * 1024


@dataclass(frozen=True)
class DeviceFacts:
    """The machine a run was made on. None where the machine does not say.

    Holds nothing that names its owner: no host name, serial number or address.
    """

    model: str | None
    cpu: str | None
    architecture: str
    physical_cores: int | None
    logical_cores: int | None
    memory_mb: int | None
    kernel: str
    operating_system: str | None

    def to_json(self) -> JsonObject:
        """The facts as the manifest holds them."""
        return asdict(self)


def read_device(root: Path = Path("/")) -> DeviceFacts:
    """Read the facts of this machine.

    Args:
        root: where /proc, /sys and /etc are looked for; a saved tree can stand in for files,
            while core counts, memory and kernel always come from the running machine.
    """
    return DeviceFacts(
        model=_device_model(root),
        cpu=_cpu_name(root),
        architecture=platform.machine(),
        physical_cores=psutil.cpu_count(logical=False),
        logical_cores=psutil.cpu_count(),
        memory_mb=psutil.virtual_memory().total // MIB,
        kernel=platform.release(),
        operating_system=_os_name(root),
    )


def _device_model(root: Path) -> str | None:
    """The board's name: the device tree on ARM boards, DMI elsewhere."""
    for name in ("proc/device-tree/model", "sys/class/dmi/id/product_name"):
        text = _read_text(root / name)
        if text:
            return text
    return None


def _cpu_name(root: Path) -> str | None:
    for line in (_read_text(root / "proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return value.strip()
    return None


def _os_name(root: Path) -> str | None:
    for line in (_read_text(root / "etc/os-release") or "").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip().strip('"') or None
    return None


def _read_text(path: Path) -> str | None:
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    return raw.decode("utf-8", "replace").replace("\0", "").strip() or None
