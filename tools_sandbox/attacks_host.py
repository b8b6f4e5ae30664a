"""Attacks on the host's processes, network, names and devices."""

import ctypes
import os
import pty
import secrets
import select
import socket
import subprocess
from pathlib import Path
from shlex import quote

from tools_sandbox.environment import fixed_environment
from tools_sandbox.promises import (
    Attack,
    always,
    isolated,
    keeps_signals,
    walled,
)
from tools_sandbox.result import Tier
from tools_sandbox.scene import AttackNotRun, Scene, listener, victim, was_reached


def _loopback_tcp(scene: Scene) -> bool:
    with listener(socket.AF_INET, ("127.0.0.1", 0)) as listening:
        scene.bash(f"exec 3<>/dev/tcp/127.0.0.1/{listening.getsockname()[1]}")
        return not was_reached(listening)


def _loopback_udp(scene: Scene) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waiting:
        waiting.bind(("127.0.0.1", 0))
        scene.bash(f"echo x > /dev/udp/127.0.0.1/{waiting.getsockname()[1]}")
        return not select.select([waiting], [], [], 0.2)[0]


_LISTEN = """
import socket, sys, time
listening = socket.socket()
listening.bind(("127.0.0.1", int(sys.argv[1])))
listening.listen()
listening.settimeout(3)
print("listening", flush=True)
listening.accept()
"""


def _serve_to_host(scene: Scene) -> bool:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    connect = (
        "import socket, sys, time\n"
        "for _ in range(20):\n"
        "    time.sleep(0.1)\n"
        "    try: socket.create_connection(('127.0.0.1', int(sys.argv[1])), 1)\n"
        "    except OSError: continue\n"
        "    sys.exit(0)\n"
        "sys.exit(1)\n"
    )
    with subprocess.Popen(
        ["/usr/bin/env", "python3", "-I", "-S", "-c", connect, str(port)]
    ) as host:
        scene.python(_LISTEN, str(port))
        host.wait()
    return host.returncode != 0


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


_PACKETS = """
import socket
for family, kind in ((17, 3), (40, 1), (38, 5), (2, 3)):
    try:
        socket.socket(family, kind)
    except OSError:
        continue
    raise SystemExit(0)
raise SystemExit(1)
"""


def _special_sockets(scene: Scene) -> bool:
    """Packets as they are, virtual machines, the kernel's ciphers, raw IP."""
    return scene.python(_PACKETS).exit_code != 0


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


def _signal_everybody(scene: Scene) -> bool:
    if scene.sandbox.info.tier is not Tier.BUBBLEWRAP:
        # Signal 0 reaches whom another would reach, and does nothing.
        return scene.bash("kill -0 -1").exit_code != 0
    with victim(scene.token) as process:
        scene.bash("kill -9 -1; kill -9 -- -1 0")
        return process.poll() is None


_TRACE = """
import ctypes, sys
attach = 16
sys.exit(0 if ctypes.CDLL(None).ptrace(attach, int(sys.argv[1]), None, None) == 0 else 1)
"""


def _trace_host_process(scene: Scene) -> bool:
    with victim(scene.token) as process:
        return scene.python(_TRACE, str(process.pid)).exit_code != 0


_READ_MEMORY = """
import ctypes, os, sys
pid = int(sys.argv[1])
for line in open(f"/proc/{pid}/maps"):
    start, end = (int(part, 16) for part in line.split()[0].split("-"))
    break
class Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))
buffer = ctypes.create_string_buffer(8)
here, there = Vector(ctypes.addressof(buffer), 8), Vector(start, 8)
libc = ctypes.CDLL(None)
got = libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
with open(f"/proc/{pid}/mem", "rb", 0) as memory:
    memory.seek(start)
    got = max(got, len(memory.read(8)))
sys.exit(0 if got == 8 else 1)
"""


def _read_host_memory(scene: Scene) -> bool:
    with victim(scene.token) as process:
        return scene.python(_READ_MEMORY, str(process.pid)).exit_code != 0


def _read_through_host_process(scene: Scene) -> bool:
    with victim(scene.token) as process:
        way = f"/proc/{process.pid}/root{scene.secret}"
        return (
            scene.token
            not in scene.bash(
                f"cat {quote(way)} /proc/[0-9]*/root{quote(str(scene.secret))}"
            ).output
        )


def _read_host_environment(scene: Scene) -> bool:
    with victim(scene.token):
        shown = scene.bash("env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'").output
    own = fixed_environment(home="", tmp="")
    # Only a value that the sandbox does not set itself, and too long to be there by chance.
    leaks = {f"{k}={v}" for k, v in os.environ.items() if k not in own and len(v) >= 8}
    leaks -= {f"PWD={scene.sandbox.workspace}"}
    return scene.token not in shown and not leaks & set(shown.splitlines())


def _inherited_descriptors(scene: Scene) -> bool:
    with scene.secret.open() as held:
        os.set_inheritable(held.fileno(), True)
        script = (
            "import os\n"
            "for fd in range(3, 256):\n"
            "    try: print(fd, os.read(fd, 100))\n"
            "    except OSError: pass\n"
        )
        return scene.token not in scene.python(script).output


def _host_name(scene: Scene) -> bool:
    if os.uname().nodename == "sandbox":
        raise AttackNotRun("the host has the name that the sandbox gives")
    return scene.bash("uname -n").output.strip() != os.uname().nodename


_SET_NAME = """
import ctypes, sys
name = sys.argv[1].encode()
sys.exit(0 if ctypes.CDLL(None).sethostname(name, len(name)) == 0 else 1)
"""


def _change_host_name(scene: Scene) -> bool:
    # To the name that it has.
    return scene.python(_SET_NAME, os.uname().nodename).exit_code != 0


def _host_devices(scene: Scene) -> bool:
    disks = {path.name for path in Path("/dev").iterdir() if path.is_block_device()}
    disks |= {name for name in ("kmsg", "mem", "fuse") if Path("/dev", name).exists()}
    if not disks:
        raise AttackNotRun("the host shows no device that a sandbox should hide")
    return not disks & set(scene.bash("ls /dev").output.split())


def _write_host_terminal(scene: Scene) -> bool:
    ours, theirs = pty.openpty()
    try:
        os.set_blocking(ours, False)
        scene.bash(f"echo {scene.token} > {os.ttyname(theirs)}")
        return not select.select([ours], [], [], 0.1)[0]
    finally:
        os.close(ours)
        os.close(theirs)


_INJECT = """
import fcntl, os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    try:
        fcntl.ioctl(0, 0x5412, b"x")
    except OSError:
        os._exit(1)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def _inject_terminal_input(scene: Scene) -> bool:
    return scene.python(_INJECT).exit_code != 0


_ATTACH = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_ssize_t
key, number = map(int, sys.argv[1:])
by_number = [libc.shmat(number, None, flags) for flags in (0, 0o10000)]
sys.exit(0 if libc.shmget(key, 0, 0) >= 0 or max(by_number) != -1 else 1)
"""


def _sysv_shared_memory(scene: Scene) -> bool:
    libc = ctypes.CDLL(None)
    create_exclusively, remove = 0o1000 | 0o2000, 0
    key = secrets.randbelow(2**30) + 1
    segment = libc.shmget(key, ctypes.c_size_t(4096), create_exclusively | 0o666)
    if segment < 0:
        raise AttackNotRun("the host gives no shared memory")
    try:
        return scene.python(_ATTACH, str(key), str(segment)).exit_code != 0
    finally:
        libc.shmctl(segment, remove, None)


ATTACKS = (
    Attack("loopback_tcp", _loopback_tcp, walled),
    Attack("loopback_udp", _loopback_udp, walled),
    Attack("serve_to_host", _serve_to_host, walled),
    Attack("abstract_unix_socket", _abstract_unix_socket, walled),
    Attack("unix_socket_in_host_directory", _unix_socket_in_host_directory, walled),
    Attack("special_sockets", _special_sockets, walled),
    Attack("list_host_processes", _list_host_processes, walled),
    Attack("signal_host_process", _signal_host_process, keeps_signals),
    Attack("signal_everybody", _signal_everybody, always),
    Attack("trace_host_process", _trace_host_process, walled),
    Attack("read_host_memory", _read_host_memory, walled),
    Attack("read_through_host_process", _read_through_host_process, walled),
    Attack("read_host_environment", _read_host_environment, walled),
    Attack("inherited_descriptors", _inherited_descriptors, always),
    Attack("host_name", _host_name, isolated),
    Attack("change_host_name", _change_host_name, walled, harmless=False),
    Attack("host_devices", _host_devices, isolated),
    Attack("write_host_terminal", _write_host_terminal, walled),
    Attack("inject_terminal_input", _inject_terminal_input, walled),
    Attack("sysv_shared_memory", _sysv_shared_memory, walled),
)
