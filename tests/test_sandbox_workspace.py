"""A copy of a workspace is private, and goes away whatever was left in it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools_sandbox.private import PrivateDirectory
from tools_sandbox.removal import remove_tree
from tools_sandbox.workspace import copy_tree


@pytest.fixture
def pristine(tmp_path: Path) -> Path:
    source = tmp_path / "pristine"
    (source / "src").mkdir(parents=True)
    (source / "src" / "run.sh").write_text("echo hi\n")
    (source / "src" / "run.sh").chmod(0o755)
    (source / "read-only").write_text("x")
    (source / "read-only").chmod(0o444)
    (source / ".hidden").write_text("h")
    (source / "link").symlink_to("/etc/hostname")
    (source / "dangling").symlink_to("nowhere")
    for path in (source / "src" / "run.sh", source / "src"):
        os.utime(path, ns=(10**18, 10**18))
    return source


def test_a_copy_has_the_same_files_modes_times_and_links(pristine: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    copy_tree(pristine, copy)
    assert sorted(p.name for p in copy.iterdir()) == sorted(p.name for p in pristine.iterdir())
    assert (copy / "src" / "run.sh").read_text() == "echo hi\n"
    assert (copy / "src" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (copy / "read-only").stat().st_mode & 0o777 == 0o444
    assert (copy / "src").stat().st_mtime_ns == 10**18
    assert (copy / "src" / "run.sh").stat().st_mtime_ns == 10**18
    assert (copy / "link").readlink() == Path("/etc/hostname")
    assert (copy / "dangling").is_symlink()
    (copy / ".hidden").write_text("changed")
    assert (pristine / ".hidden").read_text() == "h"


def test_what_its_owner_closed_is_copied_and_stays_closed(pristine: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (pristine / "read-only").chmod(0)
    (pristine / "src").chmod(0o311)
    copy_tree(pristine, copy)
    for top in (pristine, copy):
        assert (top / "read-only").stat().st_mode & 0o777 == 0
        assert (top / "src").stat().st_mode & 0o777 == 0o311


def test_removal_copes_with_read_only_directories_pipes_and_odd_names(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "locked" / "inner").mkdir(parents=True)
    (tree / "locked" / "inner" / "file").write_text("x")
    (tree / "-rf\n'\"").write_text("x")
    os.mkfifo(tree / "pipe")
    (tree / "locked" / "inner").chmod(0)
    (tree / "locked").chmod(0o555)
    tree.chmod(0o500)
    remove_tree(tree)
    assert not tree.exists()


def test_removal_never_follows_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "keep").write_text("x")
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "to-directory").symlink_to(outside)
    (tree / "deep" / "to-directory").symlink_to(outside)
    (tree / "to-file").symlink_to(outside / "keep")
    remove_tree(tree)
    assert (outside / "keep").read_text() == "x"
    assert outside.stat().st_mode & 0o777 == 0o755


def test_removal_refuses_a_link_in_the_place_of_the_tree(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    (tmp_path / "tree").symlink_to(outside)
    with pytest.raises(OSError):
        remove_tree(tmp_path / "tree")
    assert (outside / "keep").exists()


def test_removal_copes_with_a_tree_deeper_than_a_path_can_be_long(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    dig = "import os\nfor _ in range(1000): os.mkdir('d' * 8); os.chdir('d' * 8)"
    subprocess.run([sys.executable, "-c", dig], cwd=tree, check=True)
    remove_tree(tree)
    assert not tree.exists()


def test_what_a_killed_caller_left_is_removed_later(tmp_path: Path) -> None:
    abandoned = tmp_path / "agent-sandbox-abandoned"
    (abandoned / "inner").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    in_use = PrivateDirectory(tmp_path)
    later = PrivateDirectory(tmp_path, now=lambda: time.time() + 120)
    assert not abandoned.exists()
    assert in_use.path.is_dir()
    just_made = tmp_path / "agent-sandbox-just-made"
    just_made.mkdir()
    PrivateDirectory(tmp_path).remove()
    assert just_made.is_dir()
    for each in (in_use, later):
        each.remove()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["agent-sandbox-just-made", "other"]


def test_a_private_directory_can_be_passed_but_not_listed_by_others(tmp_path: Path) -> None:
    private = PrivateDirectory(tmp_path)
    assert private.path.stat().st_mode & 0o777 == 0o711
    private.remove()
