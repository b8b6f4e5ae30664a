"""Memory and disk of a command are bounded in every tier, and a command that goes over ends."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools_sandbox.errors import SandboxUnavailable
from tools_sandbox.limits import MIB, Limits
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import Sandbox, open_sandbox
from tools_sandbox.watch import DiskWatch, Watch

LIMITS = Limits(memory_bytes=200 * MIB, workspace_bytes=8 * MIB, workspace_files=300)

HOLD = """
import mmap, os, sys, time
kind, processes, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) << 20
for _ in range(processes):
    if os.fork() == 0:
        shared = mmap.MAP_SHARED if kind == "shared" else mmap.MAP_PRIVATE
        memory = mmap.mmap(-1, size, shared | mmap.MAP_ANONYMOUS)
        for place in range(0, size, 4096):
            memory[place] = 1
        time.sleep(1)
        os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
print("done")
"""
FORK = """
import os, time
memory = bytearray(120 << 20)
for _ in range(6):
    if os.fork() == 0:
        time.sleep(0.5)
        os._exit(0)
for _ in range(6):
    os.wait()
print("done")
"""


LET_GO = """
import mmap, time
memory = mmap.mmap(-1, 600 << 20)
for place in range(0, 600 << 20, 4 << 20):
    for page in range(place, place + (4 << 20), 4096):
        memory[page] = 1
    memory.madvise(mmap.MADV_DONTNEED, place, 4 << 20)
time.sleep(5)
print("done")
"""
TABLES = """
import mmap, time
kept = mmap.mmap(-1, 300 << 30, mmap.MAP_PRIVATE | 0x4000, mmap.PROT_READ)
kept.madvise(15)
for place in range(0, 300 << 30, 2 << 20):
    kept[place]
time.sleep(5)
print("done")
"""


@pytest.fixture(params=list(Tier))
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with tempfile.TemporaryDirectory(prefix="test-limits-") as name:
        Path(name).chmod(0o755)
        try:
            opened = open_sandbox(Path(name), tier=request.param, limits=LIMITS)
        except SandboxUnavailable as reason:
            pytest.skip(str(reason))
        with opened:
            yield opened


def python(sandbox: Sandbox, script: str, *words: str) -> tuple[int | None, str, str | None]:
    words = ("/usr/bin/env", "python3", "-c", script, *words)
    result = sandbox.run(words, timeout_s=60)
    return result.exit_code, result.output, result.over_limit


@pytest.mark.parametrize(("kind", "processes", "mib"), [("private", 4, 80), ("shared", 1, 300)])
def test_a_command_that_goes_over_its_memory_ends(
    sandbox: Sandbox, kind: str, processes: int, mib: int
) -> None:
    outcome = python(sandbox, HOLD, kind, str(processes), str(mib))
    assert outcome == (137, "", "memory_bytes")


@pytest.mark.parametrize("script", [LET_GO, TABLES], ids=["shared, let go of", "page tables"])
def test_memory_that_is_in_no_resident_set_counts_too(sandbox: Sandbox, script: str) -> None:
    assert python(sandbox, script) == (137, "", "memory_bytes")


def test_one_process_that_asks_for_too_much_is_told_so(sandbox: Sandbox) -> None:
    exit_code, output, over = python(sandbox, "bytearray(300 << 20)")
    assert (exit_code, over) == (1, None)
    assert output.endswith("MemoryError\n")


def test_memory_that_processes_share_counts_once(sandbox: Sandbox) -> None:
    assert python(sandbox, FORK) == (0, "done\n", None)


@pytest.mark.parametrize(
    ("command", "limit"),
    [
        ("for i in 1 2 3; do head -c 4M /dev/zero > f$i; done; sleep 60", "workspace_bytes"),
        ("seq 1 400 | xargs touch; sleep 60", "workspace_files"),
    ],
)
def test_a_command_that_fills_the_workspace_ends(
    sandbox: Sandbox, command: str, limit: str
) -> None:
    result = sandbox.run(command, timeout_s=50)
    assert (result.exit_code, result.over_limit) == (137, limit)
    assert not result.timed_out


def test_a_full_workspace_can_be_tidied_up_and_used_again(sandbox: Sandbox) -> None:
    sandbox.run("for i in 1 2 3; do head -c 4M /dev/zero > f$i; done; sleep 60", timeout_s=50)
    tidy = sandbox.run("ls f* | wc -l; sleep 0.3; rm f*; sleep 0.3; echo tidy", timeout_s=50)
    assert tidy.output == "3\ntidy\n"
    assert sandbox.run("head -c 4M /dev/zero > f; echo ok", timeout_s=50).output == "ok\n"


def test_what_the_workspace_held_before_does_not_count(sandbox: Sandbox) -> None:
    directory = sandbox.workspace
    tier = sandbox.info.tier
    sandbox.close()
    (directory / "large").write_bytes(b"x" * 20 * MIB)
    with open_sandbox(directory, tier=tier, limits=LIMITS) as again:
        result = again.run("head -c 4M /dev/zero > more; sleep 0.3; echo ok", timeout_s=50)
        assert result.output == "ok\n"


def test_a_look_at_the_disk_gives_way_to_the_deadline(tmp_path: Path) -> None:
    disk = DiskWatch(tmp_path)
    watch = Watch(Limits(workspace_bytes=MIB), disk)
    with (tmp_path / "fill").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 256 * MIB)
    assert watch.exceeded(os.getpid(), left_s=60) == "workspace_bytes"
    assert watch.exceeded(os.getpid(), left_s=1e-4) is None
