"""Real attacks on a sandbox, each of which tells whether it was stopped."""

import ctypes
import os
import re
import secrets
import socket
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from tools_sandbox.environment import fixed_environment
from tools_sandbox.info import SandboxInfo
from tools_sandbox.result import Tier
from tools_sandbox.scene import AttackNotRun, Scene, kill_marked, listener, victim, was_reached


@dataclass(frozen=True)
class Attack:
    """One attack, and which sandboxes promise to stop it."""

    name: str
    stopped: Callable[[Scene], bool]
    """Carries the attack out; False where it got through. May raise `AttackNotRun`."""
    promised: Callable[[SandboxInfo], bool]


def all_attacks() -> tuple[Attack, ...]:
    """Every attack, in the order of the report."""
    return (
        Attack("read_host_secret", _read_host_secret, _isolated),
        Attack("read_host_accounts", _read_host_accounts, _isolated),
        Attack("list_home", _list_home, _isolated),
        Attack("write_outside", _write_outside, _isolated),
        Attack("change_mode_outside", _change_mode_outside, _isolated),
        Attack("symlink_read", _symlink_read, _isolated),
        Attack("symlink_write", _symlink_write, _isolated),
        Attack("hard_link_read", _hard_link_read, _isolated),
        Attack("loopback_tcp", _loopback_tcp, _isolated),
        Attack("abstract_unix_socket", _abstract_unix_socket, _isolated),
        Attack("unix_socket_in_host_directory", _unix_socket_in_host_directory, _isolated),
        Attack("list_host_processes", _list_host_processes, _isolated),
        Attack("signal_host_process", _signal_host_process, _isolated),
        Attack("read_host_environment", _read_host_environment, _isolated),
        Attack("host_name", _host_name, _isolated),
        Attack("host_devices", _host_devices, _isolated),
        Attack("sysv_shared_memory", _sysv_shared_memory, _isolated),
        Attack("nested_user_namespace", _nested_user_namespace, _blocks_nesting),
        Attack("survive_deadline", _survive_deadline, _always),
        Attack("outlive_command", _outlive_command, _always),
        Attack("bash_startup_files", _bash_startup_files, _always),
        Attack("file_over_limit", _file_over_limit, _keeps("file_size_bytes")),
        Attack("fill_tmp", _fill_tmp, _keeps("tmp_bytes")),
        Attack("process_flood", _process_flood, _keeps("processes")),
        Attack("output_flood", _output_flood, _always),
    )


def _isolated(info: SandboxInfo) -> bool:
    return info.tier is Tier.BUBBLEWRAP


def _blocks_nesting(info: SandboxInfo) -> bool:
    return info.nested_namespaces_blocked


def _always(_: SandboxInfo) -> bool:
    return True


def _keeps(limit: str) -> Callable[[SandboxInfo], bool]:
    return lambda info: any(
        known.name == limit and known.enforcement == "enforced" for known in info.limits
    )


def _read_host_secret(scene: Scene) -> bool:
    return scene.token not in scene.bash(f"cat {quote(str(scene.secret))}").output


def _read_host_accounts(scene: Scene) -> bool:
    accounts = Path("/etc/passwd").read_text(errors="replace").splitlines()
    inside = scene.bash("cat /etc/passwd").output.splitlines()
    # An account line that any machine has proves nothing.
    if len(accounts) < 3:
        raise AttackNotRun("the host has fewer than three accounts")
    return len(set(accounts) & set(inside)) < 3


def _list_home(scene: Scene) -> bool:
    home = Path.home()
    try:
        itself = home.stat()
    except OSError:
        raise AttackNotRun("the user has no home directory") from None
    found = scene.bash(f"cd {quote(str(home))} && ls -A >/dev/null && stat -c %d:%i .").output
    return found.strip() != f"{itself.st_dev}:{itself.st_ino}"


def _write_outside(scene: Scene) -> bool:
    target = scene.outside / "written"
    scene.bash(f"mkdir -p {quote(str(scene.outside))}; echo x > {quote(str(target))}")
    return not target.exists()


def _change_mode_outside(scene: Scene) -> bool:
    scene.secret.chmod(0o600)
    scene.bash(f"chmod 644 {quote(str(scene.secret))}")
    return stat.S_IMODE(scene.secret.stat().st_mode) == 0o600


def _symlink_read(scene: Scene) -> bool:
    output = scene.bash(f"ln -sf {quote(str(scene.secret))} link-read && cat link-read").output
    return scene.token not in output


def _symlink_write(scene: Scene) -> bool:
    target = scene.outside / "written-through-link"
    scene.bash(f"ln -sf {quote(str(target))} link-write && echo x > link-write")
    return not target.exists()


def _hard_link_read(scene: Scene) -> bool:
    output = scene.bash(f"ln -f {quote(str(scene.secret))} hard-link && cat hard-link").output
    return scene.token not in output


def _loopback_tcp(scene: Scene) -> bool:
    with listener(socket.AF_INET, ("127.0.0.1", 0)) as listening:
        scene.bash(f"exec 3<>/dev/tcp/127.0.0.1/{listening.getsockname()[1]}")
        return not was_reached(listening)


_CONNECT = """
import socket, sys
address = bytes.fromhex(sys.argv[1])
socket.socket(socket.AF_UNIX).connect(address)
"""


def _abstract_unix_socket(scene: Scene) -> bool:
    return _unix_socket(scene, b"\0" + secrets.token_hex(8).encode())


def _unix_socket_in_host_directory(scene: Scene) -> bool:
    return _unix_socket(scene, os.fsencode(scene.outside / "socket"))


def _unix_socket(scene: Scene, address: bytes) -> bool:
    with listener(socket.AF_UNIX, address) as listening:
        scene.python(_CONNECT, address.hex())
        return not was_reached(listening)


def _list_host_processes(scene: Scene) -> bool:
    with victim(scene.token):
        return scene.token not in scene.bash("cat /proc/[0-9]*/cmdline").output


def _signal_host_process(scene: Scene) -> bool:
    with victim(scene.token) as process:
        if scene.bash(f"kill -9 {process.pid}").exit_code != 0:
            return True
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return True
        return False


def _read_host_environment(scene: Scene) -> bool:
    with victim(scene.token):
        shown = scene.bash("env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'").output
    own = fixed_environment(home="", tmp="")
    # Only a value that the sandbox does not set itself, and too long to be there by chance.
    leaks = {f"{k}={v}" for k, v in os.environ.items() if k not in own and len(v) >= 8}
    leaks -= {f"PWD={scene.sandbox.workspace}"}
    return scene.token not in shown and not leaks & set(shown.splitlines())


def _host_name(scene: Scene) -> bool:
    if os.uname().nodename == "sandbox":
        raise AttackNotRun("the host has the name that the sandbox gives")
    return scene.bash("uname -n").output.strip() != os.uname().nodename


def _host_devices(scene: Scene) -> bool:
    disks = {path.name for path in Path("/dev").iterdir() if path.is_block_device()}
    disks |= {name for name in ("kmsg", "mem", "fuse") if Path("/dev", name).exists()}
    if not disks:
        raise AttackNotRun("the host shows no device that a sandbox should hide")
    return not disks & set(scene.bash("ls /dev").output.split())


_ATTACH = """
import ctypes, sys
sys.exit(0 if ctypes.CDLL(None).shmget(int(sys.argv[1]), 0, 0) >= 0 else 1)
"""


def _sysv_shared_memory(scene: Scene) -> bool:
    libc = ctypes.CDLL(None)
    create_exclusively, remove = 0o1000 | 0o2000, 0
    key = secrets.randbelow(2**30) + 1
    segment = libc.shmget(key, ctypes.c_size_t(4096), create_exclusively | 0o600)
    if segment < 0:
        raise AttackNotRun("the host gives no shared memory")
    try:
        return scene.python(_ATTACH, str(key)).exit_code != 0
    finally:
        libc.shmctl(segment, remove, None)


def _nested_user_namespace(scene: Scene) -> bool:
    return scene.bash("unshare --user true").exit_code != 0


def _survive_deadline(scene: Scene) -> bool:
    return _leaves_nothing(scene, "sleep 600")


def _outlive_command(scene: Scene) -> bool:
    return _leaves_nothing(scene, "true")


def _leaves_nothing(scene: Scene, rest: str) -> bool:
    mark, started = f"mark-{secrets.token_hex(8)}", scene.sandbox.workspace / "daemon-started"
    started.unlink(missing_ok=True)
    daemon = f"exec -a {mark} sleep 600"
    wait = f"until [ -e {started.name} ]; do sleep 0.01; done"
    scene.bash(
        f"(setsid bash -c 'touch {started.name}; {daemon}' >/dev/null 2>&1 &); {wait}; {rest}",
        timeout_s=2,
    )
    left = kill_marked(mark)
    if not started.exists():
        raise AttackNotRun("the daemon did not start in time")
    return left == 0


def _bash_startup_files(scene: Scene) -> bool:
    names = ".bash_profile .bashrc .profile .bash_login"
    plant = (
        f"echo 'echo {scene.token}; cd /' | tee {names} >/dev/null; export BASH_ENV=$PWD/.bashrc"
    )
    scene.bash(f"{plant}; cp {names} ~")
    return scene.token not in scene.bash("pwd").output


def _file_over_limit(scene: Scene) -> bool:
    limit = scene.sandbox.limits.file_size_bytes
    target = scene.sandbox.workspace / "large-file"
    try:
        scene.bash(f"truncate -s {limit + 1} {target.name}")
        return not target.exists() or target.stat().st_size <= limit
    finally:
        target.unlink(missing_ok=True)


def _fill_tmp(scene: Scene) -> bool:
    size = scene.sandbox.limits.tmp_bytes + 1024 * 1024
    return scene.bash(f'fallocate -l {size} "$TMPDIR/fill"').exit_code != 0


_FORK = """
import os, signal, sys
count = 0
try:
    while count < int(sys.argv[1]):
        if os.fork() == 0:
            signal.pause()
            os._exit(0)
        count += 1
except OSError:
    pass
print("forked", count)
"""


def _process_flood(scene: Scene) -> bool:
    limit = scene.sandbox.limits.processes
    forked = re.search(r"forked (\d+)", scene.python(_FORK, str(limit + 32)).output)
    return forked is None or int(forked[1]) <= limit


def _output_flood(scene: Scene) -> bool:
    limits = scene.sandbox.limits
    result = scene.bash("yes", timeout_s=1)
    most = limits.output_head_bytes + limits.output_tail_bytes + 100
    return result.timed_out and len(result.output.encode()) <= most
