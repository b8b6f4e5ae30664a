"""A view starts from the pristine workspace, never changes it, and goes back to any state."""

import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tools_sandbox.effects import Observer
from tools_sandbox.errors import InvalidRequest, SandboxStopped, SandboxUnavailable
from tools_sandbox.limits import MIB, Limits
from tools_sandbox.processes import descendants
from tools_sandbox.result import Result, Tier
from tools_sandbox.sandbox import Sandbox, open_sandbox, open_view
from tools_sandbox.store import Pristine, Store, tree_digest

ROOT = Path(__file__).parent.parent
KINDS = [
    pytest.param((Tier.BUBBLEWRAP, "overlay"), id="bubblewrap-overlay"),
    pytest.param((Tier.BUBBLEWRAP, "overlay-disk"), id="bubblewrap-overlay-disk"),
    pytest.param((Tier.BUBBLEWRAP, "copy"), id="bubblewrap-copy"),
    pytest.param((Tier.LANDLOCK, "copy"), id="landlock-copy"),
    pytest.param((Tier.NONE, "copy"), id="none-copy"),
]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user can reach."""
    with tempfile.TemporaryDirectory(prefix="test-views-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def pristine(place: Path) -> Pristine:
    source = place / "source"
    (source / "src").mkdir(parents=True)
    (source / "src" / "a").write_text("a\n")
    (source / "src" / "b").write_text("b\n")
    (source / "run.sh").write_text("echo hi\n")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("src/a")
    return Store(place / "store").add_directory(source)


@pytest.fixture(params=KINDS)
def view(request: pytest.FixtureRequest, pristine: Pristine) -> Iterator[Sandbox]:
    tier, kind = request.param
    try:
        opened = open_view(pristine, tier=tier, view=kind)
    except SandboxUnavailable as reason:
        pytest.skip(str(reason))
    with opened:
        yield opened


def overlay(pristine: Pristine, limits: Limits | None = None) -> Sandbox:
    try:
        return open_view(pristine, view="overlay", limits=limits)
    except SandboxUnavailable as reason:
        pytest.skip(str(reason))


def said(sandbox: Sandbox, command: str) -> str:
    return sandbox.run(command, timeout_s=30).output


EVERYTHING = "find . -printf '%P %y %m %T@ %l\\n' | sort; cat src/* run.sh"


def test_a_view_shows_the_pristine_workspace_and_leaves_it_as_it_is(
    view: Sandbox, pristine: Pristine
) -> None:
    assert said(view, "cat link run.sh src/b; ./run.sh") == "a\necho hi\nb\nhi\n"
    changed = view.run(
        "echo x >> src/a && rm src/b && mkdir n && mv run.sh n/ && rm -r src && mkdir src"
        " && echo new > src/c && chmod 700 .",
        timeout_s=30,
    )
    assert changed.exit_code == 0, changed.output
    assert said(view, "ls -R") == ".:\nlink\nn\nsrc\n\n./n:\nrun.sh\n\n./src:\nc\n"
    assert tree_digest(pristine.path) == pristine.digest


def test_every_view_starts_the_same(pristine: Pristine, view: Sandbox) -> None:
    before = said(view, EVERYTHING)
    said(view, "rm -r src")
    again = open_view(pristine, tier=view.info.tier, view="copy")
    with again:
        assert said(again, EVERYTHING) == before


def test_a_view_goes_back_to_any_state(view: Sandbox) -> None:
    start, states = view.snapshot(), []
    at_start = said(view, EVERYTHING)
    for number in range(4):
        said(
            view,
            f"echo {number} > src/a; touch f{number}; rm -f f{number - 2}; chmod 64{number} run.sh",
        )
        states.append((view.snapshot(), said(view, EVERYTHING)))
    for snapshot, shown in (*reversed(states), *states):
        said(view, "rm -rf src; echo lost > run.sh; mkdir lost")
        view.restore(snapshot)
        assert said(view, EVERYTHING) == shown
    view.restore(start)
    assert said(view, EVERYTHING) == at_start


def test_a_branch_and_its_view_do_not_see_each_other(view: Sandbox) -> None:
    said(view, "echo kept > kept")
    snapshot = view.snapshot()
    with view.branch(snapshot) as branch:
        assert said(branch, "cat kept; echo branch > src/a; rm kept") == "kept\n"
        said(view, "echo main > src/b")
        assert said(branch, "cat src/*; ls") == "branch\nb\nlink\nrun.sh\nsrc\n"
        assert said(view, "cat src/*; cat kept") == "a\nmain\nkept\n"
        with branch.branch(snapshot) as inner:
            assert said(inner, "cat src/* kept") == "a\nb\nkept\n"
    assert said(view, "cat src/* kept") == "a\nmain\nkept\n"


def test_a_branch_stops_with_its_view(view: Sandbox) -> None:
    with view.branch(view.snapshot()) as branch:
        view.stop()
        with pytest.raises(SandboxStopped):
            branch.run("true", timeout_s=30)


def test_a_view_works_on_after_a_branch_is_gone(view: Sandbox) -> None:
    snapshot = view.snapshot()
    for number in range(3):
        with view.branch(snapshot) as branch:
            said(branch, f"echo {number} > src/a")
    said(view, "echo x > src/a")
    view.restore(snapshot)
    assert said(view, "cat src/a") == "a\n"


def test_the_file_tools_see_every_state(view: Sandbox) -> None:
    snapshot = view.snapshot()
    assert view.files.write_file("src/a", "changed").ok
    assert said(view, "cat src/a") == "changed"
    assert view.files.read_file("src/a").output == "changed"
    view.restore(snapshot)
    assert view.files.read_file("src/a").output == "a\n"


def test_a_snapshot_of_what_has_not_changed_costs_no_layer(pristine: Pristine) -> None:
    with overlay(pristine) as view:
        assert view.snapshot() == view.snapshot()
        said(view, "touch x")
        changed = view.snapshot()
        said(view, "cat x; ls")
        assert view.snapshot() == changed
        said(view, "chmod 700 .")
        assert view.snapshot() != changed


def test_a_hundred_states_can_be_kept(pristine: Pristine) -> None:
    with overlay(pristine) as view:
        states = []
        for number in range(100):
            view.files.write_file("count", str(number))
            states.append(view.snapshot())
        for number in (0, 42, 99):
            view.restore(states[number])
            assert view.files.read_file("count").output == str(number)


def test_nothing_is_left_of_a_view(view: Sandbox, place: Path) -> None:
    with view.branch(view.snapshot()) as branch:
        said(branch, "mkdir -p d/e; touch d/e/f; chmod 0 d/e d; ln -s / root")
    said(view, "mkdir -p d/e; touch d/e/f; chmod 0 d/e d; ln -s / root")
    path = view.workspace
    view.close()
    assert not path.exists()
    assert descendants(os.getpid()) == []


def test_what_is_done_in_memory_is_bounded_and_leaves_no_room_to_go_over(
    pristine: Pristine,
) -> None:
    with overlay(pristine, Limits(workspace_bytes=4 * MIB)) as view:
        [status] = [each for each in view.info.limits if each.name == "workspace_bytes"]
        if status.enforcement != "enforced":
            pytest.skip("this kernel has no overlay in memory for the user")
        assert "No space left" in said(view, "head -c 8M /dev/zero > big")
        assert said(view, "rm big; echo x > small; cat small") == "x\n"


def test_layers_on_disk_are_removed_with_the_view(pristine: Pristine) -> None:
    before = tempdirs()
    try:
        view = open_view(pristine, view="overlay-disk")
    except SandboxUnavailable as reason:
        pytest.skip(str(reason))
    with view:
        said(view, "rm -r src; mkdir -p src/d; touch src/d/n; chmod 0 src/d")
        view.snapshot()
        said(view, "touch more")
        assert view.layers
        layers = [path for path in view.layers if path != pristine.path]
        [scratch] = tempdirs() - before
        assert all(path.exists() for path in layers)
    assert not scratch.exists()


def tempdirs() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("agent-sandbox-*"))


def test_a_state_of_files_that_nobody_may_read_is_kept(view: Sandbox) -> None:
    shut = "echo x > f; chmod 000 f; mkdir -p d/e; echo y > d/e/g; chmod 000 d/e; chmod 100 d"
    assert view.run(shut, timeout_s=30).exit_code == 0
    snapshot = view.snapshot()
    said(view, "chmod -R u+rwx .; rm -r f d")
    view.restore(snapshot)
    assert said(view, "stat -c %a f d d/e") == "0\n100\n0\n"
    with view.branch(snapshot) as branch:
        assert said(branch, "chmod -R u+rwx f d; cat f d/e/g") == "x\ny\n"


def test_a_command_that_shuts_the_workspace_does_not_end_all_others(view: Sandbox) -> None:
    assert view.run("chmod 0 .", timeout_s=20).exit_code == 0
    assert said(view, "cat run.sh") == said(view, "cat run.sh")
    with view.branch(view.snapshot()) as branch:
        assert said(branch, "cat run.sh") == "echo hi\n"


def test_the_callers_own_directory_has_no_states(place: Path) -> None:
    (place / "own").mkdir()
    with (
        open_sandbox(place / "own", tier=Tier.NONE) as sandbox,
        pytest.raises(InvalidRequest, match="open a view of it"),
    ):
        sandbox.snapshot()


def test_a_tier_without_overlays_says_so(pristine: Pristine) -> None:
    with pytest.raises(SandboxUnavailable, match="ask for a copy"):
        open_view(pristine, tier=Tier.NONE, view="overlay")


def test_a_killed_caller_leaves_no_holder_of_mounts(pristine: Pristine) -> None:
    script = (
        "import os, pathlib, signal, sys\n"
        "from tools_sandbox.processes import descendants\n"
        "from tools_sandbox.sandbox import open_view\n"
        "from tools_sandbox.store import Pristine\n"
        "view = open_view(Pristine(pathlib.Path(sys.argv[1]), ''))\n"
        "print(*descendants(os.getpid()), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(pristine.path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if "SandboxUnavailable" in done.stderr:
        pytest.skip("no bubblewrap works here")
    holders = [int(pid) for pid in done.stdout.split()]
    for pid in holders:
        try:
            ended = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        assert select.select([ended], [], [], 10)[0]
        os.close(ended)


# What was done to the files


def bash(command: str) -> Callable[[Sandbox], Result]:
    return lambda sandbox: sandbox.run(command, timeout_s=30)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("echo x > src/a", "printf 'x\\n' > src/a; touch src/b", True),
        ("sed -i s/a/x/ src/a", "echo x > src/a", True),
        ("rm src/b", "mv src/b $TMPDIR", True),
        ("rm -r src", "rm src/a src/b; rmdir src", True),
        ("rm -r src; mkdir src; echo b > src/b", "rm src/a", True),
        ("cat src/a", "head -n 5 src/b", True),
        ("echo x > src/a", "echo y > src/a", False),
        ("echo x > src/a", "echo x > src/b", False),
        ("chmod 700 run.sh", "true", False),
        ("ln -s a src/l", "ln -s b src/l", False),
        ("mkdir new", "touch new", False),
        ("rm src/a; mkdir src/a", "rm src/a; mkdir src/a; touch src/a/x", False),
        ("echo new > 'na\nme'", "echo new > 'na\nme'", True),
        ("truncate -s 1M hole", "head -c 1M /dev/zero > hole", True),
        ("truncate -s 1M hole", "truncate -s 2M hole", False),
        ("truncate -s 1M h; echo x >> h", "head -c 1M /dev/zero > h; echo x >> h", True),
        ("truncate -s 1M h; echo x >> h", "truncate -s 1M h; echo y >> h", False),
    ],
)
def test_what_two_commands_changed_can_be_compared(
    view: Sandbox, one: str, other: str, same: bool
) -> None:
    observer = Observer(view)
    _, on_branch = observer.watch_on_branch(view.snapshot(), bash(other))
    _, here = observer.watch(bash(one))
    assert (here == on_branch) is same
    # Where layers lie makes no difference after more than one change.
    assert observer.watch_on_branch(view.snapshot(), bash("true"))[1] == ()


def test_holes_take_no_time_to_look_at(view: Sandbox) -> None:
    start_s = time.monotonic()
    many = "for i in {1..300}; do truncate -s 1G hole-$i; done"
    _, changes = Observer(view).watch(bash(many))
    assert len(changes) == 300
    assert time.monotonic() - start_s < 30


def test_changes_are_named(view: Sandbox) -> None:
    observer = Observer(view)
    observer.watch(bash("echo first > first"))
    snapshot = view.snapshot()
    _, changes = observer.watch_on_branch(snapshot, bash("rm -r src; mv first second; touch link"))
    assert [name for name, _ in changes] == ["first", "second", "src", "src/a", "src/b"]
    assert [name for name, now in changes if now] == ["second"]


def test_links_are_told_apart_whatever_their_targets_end_with(view: Sandbox) -> None:
    observer, before = Observer(view), view.snapshot()
    _, one = observer.watch_on_branch(before, bash("ln -s there new"))
    _, other = observer.watch_on_branch(before, bash("ln -s 'there opaque' new"))
    assert one != other


def test_many_changes_over_many_files_are_named(view: Sandbox) -> None:
    view.run("mkdir many; cd many; seq 1 4000 | xargs touch", timeout_s=60)
    observer, before = Observer(view), view.snapshot()
    _, changes = observer.watch_on_branch(before, bash("rm many/*[0-8]"))
    assert len(changes) == 3600


def test_a_full_workspace_can_still_be_kept_and_tried_on(pristine: Pristine) -> None:
    with overlay(pristine, Limits(workspace_files=300)) as view:
        fill = "mkdir -p f; seq -f f/%g 1 400 | xargs touch"
        view.run(fill, timeout_s=20)
        snapshot = view.snapshot()
        for _ in range(3):
            with ExitStack() as stack:
                for _ in range(8):
                    branch = stack.enter_context(view.branch(snapshot))
                    assert said(branch, "cat run.sh") == "echo hi\n"
            # What the branches gave back is not for commands.
            view.run(fill, timeout_s=20)
