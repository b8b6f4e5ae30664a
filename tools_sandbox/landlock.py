"""What a command of tier `landlock` may open: the system to read, its own directories, no more."""

import os
from collections.abc import Iterable
from pathlib import Path

from tools_sandbox import kernel
from tools_sandbox.environment import ETC, SYSTEM

_DEVICES = ("null", "zero", "full", "random", "urandom")

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_FIRST_VERSION = (1 << 13) - 1
_MAKE_DEVICES = 1 << 6 | 1 << 11  # character and block devices
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_SCOPE_ABSTRACT_UNIX, _SCOPE_SIGNAL = 1 << 0, 1 << 1


def ruleset(private: Iterable[Path]) -> int:
    """A descriptor of the rules: read the system, do everything in `private` directories.

    Raises:
        OSError: the kernel has no Landlock, or a private directory can't be opened.
    """
    abi = kernel.landlock_abi()
    handled = _handled(abi)
    tcp = _BIND_TCP | _CONNECT_TCP if abi >= 4 else 0
    scopes = _SCOPE_ABSTRACT_UNIX | _SCOPE_SIGNAL if abi >= 6 else 0
    # The kernel refuses a structure longer than the one it knows unless the rest is zero.
    attributes = b"".join(value.to_bytes(8, "little") for value in (handled, tcp, scopes))
    rules = kernel.landlock_ruleset(attributes)
    try:
        for name in ("usr", *SYSTEM, *(f"etc/{name}" for name in ETC)):
            _allow(rules, f"/{name}", _READ & handled, required=False)
        for name in _DEVICES:
            _allow(rules, f"/dev/{name}", (_READ_FILE | _WRITE_FILE) & handled, required=False)
        for directory in private:
            _allow(rules, directory, handled & ~_MAKE_DEVICES, required=True)
    except OSError:
        os.close(rules)
        raise
    return rules


def _handled(abi: int) -> int:
    later = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE))
    return _FIRST_VERSION | sum(right for version, right in later if abi >= version)


def _allow(rules: int, path: str | Path, access: int, *, required: bool) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        if required:
            raise
        return
    try:
        is_directory = Path(f"/proc/self/fd/{fd}").is_dir()
        kernel.landlock_allow(rules, access if is_directory else access & _OF_FILES, fd)
    finally:
        os.close(fd)
