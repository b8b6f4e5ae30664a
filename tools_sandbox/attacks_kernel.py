"""Attacks on the kernel's own interfaces, and on the rights of a command."""

import os
import shutil
from pathlib import Path
from shlex import quote

from tools_sandbox.promises import Attack, isolated, walled
from tools_sandbox.scene import AttackNotRun, Scene

_CALL = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == "aarch64"
def call(number, *words):
    return libc.syscall(ctypes.c_long(number), *(ctypes.c_long(word) for word in words))
done = 0
"""
# Each sets `done` to zero or more where the kernel did it.
_ATTEMPTS = {
    "nested_user_namespace": "done = call(97 if arm else 272, 0x10000000)",
    "namespace_by_clone": (
        "done = call(220 if arm else 56, 0x10000000 | 17, 0, 0, 0, 0)\nif done == 0: os._exit(0)"
    ),
    "namespace_by_clone3": (
        "words = (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, 17)\n"
        "done = call(435, ctypes.addressof(words), 64)\n"
        "if done == 0: os._exit(0)"
    ),
    "mount_file_system": (
        "os.makedirs('mount-here', exist_ok=True)\n"
        "done = libc.mount(b'none', b'mount-here', b'tmpfs', 0, None)\n"
        "if done == 0: libc.umount2(b'mount-here', 2)"
    ),
    "io_uring": ("words = (ctypes.c_uint32 * 30)()\ndone = call(425, 1, ctypes.addressof(words))"),
    "bpf_program": (
        "words = (ctypes.c_uint32 * 32)(1, 4, 4, 1)\n"
        "done = call(280 if arm else 321, 0, ctypes.addressof(words), 128)"
    ),
    "performance_counters": (
        "words = (ctypes.c_uint32 * 32)(1, 128)\n"
        "done = call(241 if arm else 298, ctypes.addressof(words), 0, -1, -1, 0)"
    ),
    "kernel_keyring": "done = call(219 if arm else 250, 0, -3, 0)",
    "user_fault_handling": "done = call(282 if arm else 323, 1)",
    "kernel_log": (
        "text = ctypes.create_string_buffer(4096)\n"
        "done = call(116 if arm else 103, 3, ctypes.addressof(text), 4096)"
    ),
    "real_time_priority": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
    "raise_priority": "os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) - 1)",
    "raise_limits": (
        "import resource\n"
        "for each in (resource.RLIMIT_FSIZE, resource.RLIMIT_CPU, resource.RLIMIT_DATA):\n"
        "    resource.setrlimit(each, (-1, -1))"
    ),
    "become_root": "os.setuid(0)",
    "change_root": "os.chroot('/tmp')",
}


def _attempt(name: str) -> Attack:
    def stopped(scene: Scene) -> bool:
        script = f"{_CALL}{_ATTEMPTS[name]}\nprint('through' if done >= 0 else 'stopped')\n"
        return "through" not in scene.python(script).output

    # The others concern only the process that tries.
    return Attack(name, stopped, walled, harmless=name != "mount_file_system")


_CAPABILITIES = """
import ctypes, sys
libc = ctypes.CDLL(None)
header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
libc.capget(header, data)
print("through" if any(data) else "stopped")
"""


def _hold_capabilities(scene: Scene) -> bool:
    return "through" not in scene.python(_CAPABILITIES).output


def _gain_by_set_user_id(scene: Scene) -> bool:
    if os.getuid() != 0:
        # Without a program of root's to plant, the flag that the kernel goes by must do.
        script = "import ctypes; print(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))"
        return scene.python(script).output == "1\n"
    program = scene.sandbox.workspace / "id-of-root"
    shutil.copy("/usr/bin/id", program)
    os.chown(program, 0, 0)
    program.chmod(0o4755)
    return scene.bash("./id-of-root -u").output.strip() != "0"


def _opens(paths: tuple[str, ...]) -> str:
    """A command that opens files to write, without writing, and tells of success."""
    return "; ".join(f"{{ : >> {quote(path)}; }} 2>/dev/null && echo through" for path in paths)


def _remount_system(scene: Scene) -> bool:
    script = "print('through' if libc.mount(None, b'/usr', None, 0x1020, None) == 0 else 'stopped')"
    return "through" not in scene.python(_CALL + script).output


def _write_proc(scene: Scene) -> bool:
    names = ("kernel/core_pattern", "kernel/hostname", "vm/overcommit_memory", "kernel/panic")
    paths = ("/proc/sysrq-trigger", *(f"/proc/sys/{name}" for name in names))
    return "through" not in scene.bash(_opens(paths)).output


def _write_sys(scene: Scene) -> bool:
    names = ("kernel/mm/transparent_hugepage/enabled", "power/state", "kernel/uevent_helper")
    paths = [f"/sys/{name}" for name in names if Path("/sys", name).exists()]
    if not paths:
        raise AttackNotRun("the host has none of the files to write to")
    return "through" not in scene.bash(_opens(tuple(paths))).output


ATTACKS = (
    *(_attempt(name) for name in _ATTEMPTS),
    Attack("hold_capabilities", _hold_capabilities, walled),
    Attack("gain_by_set_user_id", _gain_by_set_user_id, walled, harmless=False),
    Attack("remount_system", _remount_system, isolated, harmless=False),
    Attack("write_proc", _write_proc, walled, harmless=False),
    Attack("write_sys", _write_sys, walled, harmless=False),
)
