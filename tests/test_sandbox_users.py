"""A directory is lent to the user of commands as far as it goes, and no further."""

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools_sandbox.users import TOOL_UID, User, caller, give, give_back

AGENT = User(TOOL_UID, TOOL_UID)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="test-users-") as name:
        yield Path(name)


def test_all_that_is_in_a_directory_is_given_and_given_back(place: Path) -> None:
    top, outside = place / "top", place / "outside"
    (top / "d" / "e").mkdir(parents=True)
    (top / "d" / "e" / "file").touch()
    outside.touch()
    (top / "d" / "link").symlink_to(outside)
    (top / "twice").touch()
    os.link(top / "twice", top / "d" / "twice")
    os.link(outside, top / "shared")
    give(top, AGENT, only_from=caller())
    owners = {p.name: p.lstat().st_uid for p in (top, *top.rglob("*"))}
    assert owners.pop("shared") == 0
    assert set(owners.values()) == {TOOL_UID}
    assert outside.stat().st_uid == 0
    give_back(top, AGENT)
    assert {p.lstat().st_uid for p in (top, *top.rglob("*"))} == {0}


def test_a_directory_that_becomes_a_link_meanwhile_leads_nowhere(place: Path) -> None:
    top, outside = place / "top", place / "outside"
    names = [f"file-{number}" for number in range(20)]
    for directory in (top / "d", outside):
        directory.mkdir(parents=True)
        for name in names:
            (directory / name).touch()
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (top / "d").rename(place / "away")
            (top / "d").symlink_to(outside)
            (top / "d").unlink()
            (place / "away").rename(top / "d")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(300):
            give(top, AGENT, only_from=caller())
            give(top, caller(), only_from=AGENT)
    finally:
        done.set()
        thread.join()
    assert {(outside / name).stat().st_uid for name in names} == {0}
    shutil.rmtree(top)
