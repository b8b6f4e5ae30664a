"""Attacks on the limits of a command.

What a watch should end waits long enough for it on a busy machine; it is ended at once otherwise.
"""

import re

from tools_sandbox.limits import MIB
from tools_sandbox.promises import Attack, always, keeps, keeps_shared_memory, watches
from tools_sandbox.scene import AttackNotRun, Scene

_HELD = "held"


def _output_flood(scene: Scene) -> bool:
    limits = scene.sandbox.limits
    result = scene.bash("yes", timeout_s=1)
    most = limits.output_head_bytes + limits.output_tail_bytes + 100
    return result.timed_out and len(result.output.encode()) <= most


def _file_over_limit(scene: Scene) -> bool:
    limit = scene.sandbox.limits.file_size_bytes
    target = scene.sandbox.workspace / "large-file"
    try:
        scene.bash(f"truncate -s {limit + 1} {target.name}")
        return not target.exists() or target.stat().st_size <= limit
    finally:
        target.unlink(missing_ok=True)


def _fill(scene: Scene, directory: str, size: int) -> bool:
    command = f'fallocate -l {size} "{directory}/fill" && echo {_HELD}; rm -f "{directory}/fill"'
    return _HELD not in scene.bash(command).output


def _fill_tmp(scene: Scene) -> bool:
    return _fill(scene, "$TMPDIR", scene.sandbox.limits.tmp_bytes + MIB)


def _fill_home(scene: Scene) -> bool:
    return _fill(scene, "$HOME", scene.sandbox.limits.home_bytes + MIB)


def _fill_shared_memory(scene: Scene) -> bool:
    return _fill(scene, "/dev/shm", scene.sandbox.limits.shm_bytes + MIB)


def _fill_workspace(scene: Scene) -> bool:
    each = scene.sandbox.limits.workspace_bytes // 4 + MIB
    make = f"for i in 1 2 3 4; do fallocate -l {each} fill-$i || exit; done; sleep 15; echo {_HELD}"
    try:
        return _HELD not in scene.bash(make, timeout_s=60).output
    finally:
        scene.bash("rm -f fill-*")


def _flood_of_files(scene: Scene) -> bool:
    count = scene.sandbox.limits.workspace_files + 500
    make = f"mkdir flood; cd flood; seq 1 {count} | xargs touch && sleep 15 && echo {_HELD}"
    try:
        return _HELD not in scene.bash(make, timeout_s=60).output
    finally:
        scene.bash("rm -rf flood")


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


def _fork_bomb(scene: Scene) -> bool:
    result = scene.bash("bomb() { bomb | bomb & }; bomb; sleep 600", timeout_s=1)
    return result.timed_out and result.duration_ns < 5_000_000_000


_HOLD = """
import mmap, os, sys, time
kind, processes, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def hold():
    flags = mmap.MAP_ANONYMOUS | (mmap.MAP_SHARED if kind == "shared" else mmap.MAP_PRIVATE)
    memory = mmap.mmap(-1, size, flags)
    for place in range(0, size, 4096):
        memory[place] = 1
    return memory
ready, tell = os.pipe()
for _ in range(processes):
    if os.fork() == 0:
        kept = hold()
        os.write(tell, b"x")
        time.sleep(60)
        os._exit(0)
os.close(tell)
got = 0
while got < processes and (more := os.read(ready, 100)):
    got += len(more)
time.sleep(15)
print("held" if got == processes else "stopped")
"""


def _memory_hog(scene: Scene) -> bool:
    return _hold(scene, "private", 1)


def _shared_memory_hog(scene: Scene) -> bool:
    return _hold(scene, "shared", 1)


def _memory_of_many_processes(scene: Scene) -> bool:
    return _hold(scene, "private", 4)


def _hold(scene: Scene, kind: str, processes: int) -> bool:
    size = scene.sandbox.limits.memory_bytes * 5 // 4 // processes // 4096 * 4096
    result = scene.python(_HOLD, kind, str(processes), str(size))
    return _HELD not in result.output


_OPEN = """
import sys
kept = [open("/dev/null") for _ in range(int(sys.argv[1]))]
print("held")
"""


def _descriptor_flood(scene: Scene) -> bool:
    return _HELD not in scene.python(_OPEN, str(scene.sandbox.limits.open_files + 1)).output


def _cpu_hog(scene: Scene) -> bool:
    limit = scene.sandbox.limits.cpu_s
    if limit > 10:
        raise AttackNotRun(f"a limit of {limit} s of CPU time takes too long to try")
    result = scene.bash("while :; do :; done", timeout_s=limit * 10 + 60)
    return not result.timed_out


ATTACKS = (
    Attack("output_flood", _output_flood, always),
    Attack("file_over_limit", _file_over_limit, keeps("file_size_bytes")),
    Attack("fill_tmp", _fill_tmp, keeps("tmp_bytes")),
    Attack("fill_home", _fill_home, keeps("home_bytes")),
    Attack("fill_shared_memory", _fill_shared_memory, keeps_shared_memory),
    Attack("fill_workspace", _fill_workspace, watches("workspace_bytes")),
    Attack("flood_of_files", _flood_of_files, watches("workspace_files")),
    Attack("process_flood", _process_flood, keeps("processes")),
    Attack("fork_bomb", _fork_bomb, keeps("processes"), harmless=False),
    Attack("memory_hog", _memory_hog, watches("memory_bytes")),
    Attack("shared_memory_hog", _shared_memory_hog, watches("memory_bytes")),
    Attack("memory_of_many_processes", _memory_of_many_processes, watches("memory_bytes")),
    Attack("descriptor_flood", _descriptor_flood, watches("open_files")),
    Attack("cpu_hog", _cpu_hog, watches("cpu_s")),
)
