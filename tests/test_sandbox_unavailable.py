"""A tier that can't run is refused in one line that names the remedy."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tools_sandbox.binaries import Bwrap, find_bwraps, inspect_bwrap
from tools_sandbox.errors import InvalidRequest, SandboxUnavailable
from tools_sandbox.limits import Limits
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import open_sandbox

ROOT = Path(__file__).parent.parent


def forbidden_bwrap(directory: Path, complaint: str) -> Bwrap:
    """A program that answers as bubblewrap does on a machine that forbids what it needs."""
    program = directory / "bwrap"
    program.write_text(
        "#!/bin/sh\n"
        '[ "$1" = --version ] && echo "bubblewrap 0.9.0" && exit\n'
        '[ "$1" = --help ] && echo "    --size BYTES   Set size" && exit\n'
        f'echo "bwrap: {complaint}" >&2\n'
        "exit 1\n"
    )
    program.chmod(0o755)
    bwrap = inspect_bwrap(program, "system")
    assert bwrap
    return bwrap


def test_without_bubblewrap_the_remedy_is_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable) as error:
        open_sandbox(tmp_path, bwraps=[])
    assert "apt install bubblewrap or pip install 'edge-agentic[sandbox]'" in str(error.value)


@pytest.mark.parametrize(
    ("complaint", "remedy"),
    [
        ("setting up uid map: Permission denied", "AppArmor"),
        ("loopback: Failed RTM_NEWADDR: Operation not permitted", "AppArmor"),
        ("No permissions to create new namespace", "No permissions to create new namespace"),
    ],
)
def test_a_forbidden_bubblewrap_is_refused_with_its_reason(
    tmp_path: Path, complaint: str, remedy: str
) -> None:
    bwrap = forbidden_bwrap(tmp_path, complaint)
    with pytest.raises(SandboxUnavailable) as error:
        open_sandbox(tmp_path, bwraps=[bwrap])
    message = str(error.value)
    assert remedy in message
    assert complaint in message
    assert "docs/sandbox.md" in message
    assert "\n" not in message


def test_the_next_bubblewrap_is_tried_and_the_refusal_recorded(tmp_path: Path) -> None:
    working = find_bwraps()
    if not working:
        pytest.skip("this machine has no bubblewrap")
    forbidden = forbidden_bwrap(tmp_path, "setting up uid map: Permission denied")
    with open_sandbox(tmp_path, bwraps=[forbidden, *working]) as sandbox:
        assert sandbox.info.bwrap_path != str(forbidden.path)
        assert "setting up uid map" in sandbox.info.refused[0]


def test_a_program_that_is_not_bubblewrap_is_not_taken_for_it() -> None:
    assert inspect_bwrap(Path("/bin/true")) is None
    assert inspect_bwrap(Path("/nonexistent/bwrap")) is None


@pytest.mark.parametrize("tier", list(Tier))
@pytest.mark.parametrize(
    ("name", "message"), [("missing", "no such directory"), ("file", "not a directory")]
)
def test_a_workspace_that_is_no_directory_is_refused(
    tmp_path: Path, tier: Tier, name: str, message: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest, match=message):
        open_sandbox(tmp_path / name, tier=tier)


SYSTEM = ("/", "/usr", "/usr/bin", "/etc", "/bin", "/lib", "/sbin", "/boot", "/dev", "/proc")
SYSTEM += ("/proc/self/root", "/sys", "/sys/kernel", "/root", "/home", "/var", "/run", "/tmp/..")
SYSTEM += ("/tmp", "/var/tmp", "/opt", "/srv", "/mnt", "/media")


@pytest.mark.parametrize("tier", list(Tier))
@pytest.mark.parametrize("name", [*SYSTEM, "/dev/shm", "link"])
def test_a_workspace_is_no_directory_of_the_system(tmp_path: Path, tier: Tier, name: str) -> None:
    (tmp_path / "link").symlink_to("/")
    workspace = tmp_path / name
    if not workspace.is_dir():
        pytest.skip(f"this machine has no {name}")
    with pytest.raises(InvalidRequest, match=f"workspace '{workspace}': belongs to the system"):
        open_sandbox(workspace, tier=tier)


@pytest.mark.parametrize("parent", ["/tmp", "/var/tmp", "/dev/shm", str(Path.home())])
def test_a_workspace_may_lie_below_the_places_of_users(parent: str) -> None:
    if not os.access(parent, os.W_OK):
        pytest.skip(f"{parent} is not writable here")
    with (
        tempfile.TemporaryDirectory(dir=parent) as workspace,
        open_sandbox(Path(workspace), tier=Tier.NONE) as sandbox,
    ):
        assert sandbox.run("echo hi > a; cat a", timeout_s=30).output == "hi\n"


def test_root_runs_commands_as_the_owner_of_the_workspace(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can make a directory of another owner")
    if not find_bwraps():
        pytest.skip("this machine has no bubblewrap")
    os.chown(tmp_path, 12345, 12345)
    with open_sandbox(tmp_path) as sandbox:
        assert sandbox.info.command_uid == 12345
        sandbox.run("touch made", timeout_s=30)
    assert (tmp_path / "made").stat().st_uid == 12345


def test_a_workspace_that_the_user_of_commands_cannot_reach_is_refused(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root runs commands as somebody else")
    tmp_path.chmod(0o700)
    (tmp_path / "workspace").mkdir()
    with pytest.raises(InvalidRequest, match="user 60800, who runs its commands"):
        open_sandbox(tmp_path / "workspace", tier=Tier.LANDLOCK)
    assert (tmp_path / "workspace").stat().st_uid == 0


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "many"])
def test_a_limit_that_is_no_positive_whole_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidRequest, match="limit cpu_s"):
        Limits(cpu_s=value)


PROBE = """
import pathlib, sys
from tools_sandbox.sandbox import open_sandbox
from tests.sandbox_attacks import carry_out
attacks = ["list_host_processes", "read_host_memory", "read_through_host_process"]
attacks += ["read_host_environment", "signal_host_process", "write_proc", "inherited_descriptors"]
with open_sandbox(pathlib.Path(sys.argv[1])) as sandbox:
    print(sandbox.info.form, sandbox.info.has_proc, carry_out(sandbox, attacks))
"""


def test_a_masked_proc_leads_to_a_form_without_it_that_keeps_its_promises(tmp_path: Path) -> None:
    if not find_bwraps():
        pytest.skip("this machine has no bubblewrap")
    mask = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys"
    private = ["unshare", "--mount", "--propagation", "private", "bash", "-c"]
    if subprocess.run([*private, mask], capture_output=True, check=False).returncode:
        pytest.skip("a part of /proc can't be masked without being root")
    done = subprocess.run(
        [*private, f'{mask} && exec "$@"', "-", sys.executable, "-c", PROBE, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "no-proc False set()\n", done.stderr
