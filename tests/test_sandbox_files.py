"""The file tools do what a model asks inside the workspace, and nothing outside of it."""

import os
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools_sandbox.errors import SandboxUnavailable
from tools_sandbox.limits import Limits
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import Sandbox, open_sandbox

LIMITS = Limits(output_head_bytes=64, output_tail_bytes=16)


@pytest.fixture
def outside() -> Iterator[Path]:
    """A directory that every user can reach, with a file that nobody inside may touch."""
    with tempfile.TemporaryDirectory(prefix="test-files-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        (directory / "secret").write_text("secret")
        (directory / "workspace").mkdir()
        yield directory


@pytest.fixture(params=list(Tier))
def sandbox(request: pytest.FixtureRequest, outside: Path) -> Iterator[Sandbox]:
    try:
        opened = open_sandbox(outside / "workspace", tier=request.param, limits=LIMITS)
    except SandboxUnavailable as reason:
        pytest.skip(str(reason))
    with opened:
        yield opened


def test_a_file_is_written_read_and_changed(sandbox: Sandbox) -> None:
    files = sandbox.files
    assert files.write_file("a/b/new.txt", "one\ntwo\nthrée\n").output == "wrote 15 bytes"
    assert files.read_file("a/b/new.txt").output == "one\ntwo\nthrée\n"
    assert files.read_file("./a/../a/b/new.txt", first_line=2, last_line=2).output == "two\n"
    assert files.str_replace("a/b/new.txt", "two", "2").ok
    assert sandbox.run("cat a/b/new.txt", timeout_s=30).output == "one\n2\nthrée\n"


def test_what_the_tools_write_belongs_to_the_user_of_commands(sandbox: Sandbox) -> None:
    sandbox.files.write_file("made/file", "x")
    changed = sandbox.run("echo y >> made/file && touch made/other && rm -r made", timeout_s=30)
    assert changed.exit_code == 0, changed.output


def test_a_written_file_keeps_its_mode_and_has_an_ordinary_one_at_first(sandbox: Sandbox) -> None:
    sandbox.run("echo x > tool.sh; chmod 750 tool.sh", timeout_s=30)
    sandbox.files.write_file("tool.sh", "echo y\n")
    sandbox.files.write_file("plain", "x")
    assert sandbox.run("stat -c %a tool.sh plain", timeout_s=30).output == "750\n644\n"


def test_a_path_may_be_given_as_commands_see_it(sandbox: Sandbox) -> None:
    there = sandbox.run("echo x > file; pwd", timeout_s=30).output.strip()
    assert sandbox.files.read_file(f"{there}/file").output == "x\n"
    assert sandbox.files.list_dir(there).output == "file\n"


def test_a_listing_is_sorted_marks_kinds_and_gives_every_name_one_line(sandbox: Sandbox) -> None:
    sandbox.run("mkdir b; touch a $'new\\nline' $'\\xff'; ln -s a c; mkfifo d", timeout_s=30)
    shown = sandbox.files.list_dir().output
    assert shown.splitlines() == sorted(["a", "b/", "c@", "d", "'new\\nline'", "'\\udcff'"])


def test_a_long_text_is_cut_in_the_middle(sandbox: Sandbox) -> None:
    sandbox.run("seq 1 1000 > long", timeout_s=30)
    outcome = sandbox.files.read_file("long")
    assert outcome.truncated
    assert outcome.output.startswith("1\n2\n")
    assert "bytes dropped" in outcome.output
    assert outcome.output.endswith("\n999\n1000\n")


def test_some_lines_of_a_file_that_is_nothing_but_lines(sandbox: Sandbox) -> None:
    most = 64 * 1024 * 1024
    sandbox.run(f"(yes '' | head -c {most}; echo last) > lines", timeout_s=60)
    start_s = time.monotonic()
    assert sandbox.files.read_file("lines").output.endswith("\nlast\n")
    assert sandbox.files.read_file("lines", first_line=most).output == "\nlast\n"
    assert sandbox.files.read_file("lines", first_line=most - 1, last_line=most).output == "\n\n"
    assert sandbox.files.read_file("lines", first_line=3, last_line=2).output == ""
    assert time.monotonic() - start_s < 20


def test_a_path_may_have_more_parts_than_a_program_has_levels(sandbox: Sandbox) -> None:
    path = "d/" * 1100 + "file"
    assert sandbox.files.write_file(path, "x").ok
    assert sandbox.files.read_file(path).output == "x"
    sandbox.run("rm -r d", timeout_s=30)


def test_a_refused_path_leaves_no_descriptor_open(sandbox: Sandbox) -> None:
    before = sorted(p.name for p in Path("/proc/self/fd").iterdir())
    for path in ("file\ud800", "new/file\ud800", "x" * 300, "..", "none/file"):
        assert not sandbox.files.str_replace(path, "a", "b").ok
        assert not sandbox.files.write_file(path + "\ud800", "x").ok
    assert sorted(p.name for p in Path("/proc/self/fd").iterdir()) == before


def test_a_search_gives_file_line_and_text(sandbox: Sandbox) -> None:
    sandbox.run("mkdir s; printf 'a\\nfoo 1\\n' > s/x; echo bar > y", timeout_s=30)
    assert sandbox.files.grep("fo+ [0-9]", timeout_s=30).output == "s/x:2:foo 1\n" or (
        sandbox.files.grep("fo+ [0-9]", timeout_s=30).output == "./s/x:2:foo 1\n"
    )
    assert sandbox.files.grep("absent", timeout_s=30).output == "no line matches"
    assert not sandbox.files.grep("[", timeout_s=30).ok
    assert not sandbox.files.grep("x", "nowhere", timeout_s=30).ok


def test_links_within_the_workspace_are_followed(sandbox: Sandbox) -> None:
    sandbox.run(
        "mkdir real; ln -s real alias; ln -s real/file link; ln -s link again", timeout_s=30
    )
    assert sandbox.files.write_file("again", "x").ok
    assert (
        sandbox.run("cat real/file; test -L again && echo link", timeout_s=30).output == "xlink\n"
    )
    assert sandbox.files.read_file("alias/file").output == "x"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../secret", "leads out"),
        ("a/../../secret", "no such file|leads out"),
        ("OUTSIDE/secret", "outside of the workspace"),
        ("to-secret", "leads out|outside of the workspace"),
        ("relative-to-secret", "leads out"),
        ("to-outside/secret", "leads out|no directory"),
        ("chain/secret", "leads out|no directory"),
        ("/proc/self/root/etc/passwd", "outside of the workspace"),
        ("/workspace/../secret", "leads out"),
        ("file\0name", "NUL"),
        ("file\ud800", "Unicode"),
        ("x" * 5000, "too long"),
        ("loop", "too many links"),
    ],
)
def test_no_tool_follows_a_path_that_leads_out(
    sandbox: Sandbox, outside: Path, path: str, reason: str
) -> None:
    links = f"ln -s {outside}/secret to-secret; ln -s ../secret relative-to-secret"
    links += f"; ln -s {outside} to-outside; ln -s to-outside chain; ln -s loop loop"
    sandbox.run(links, timeout_s=30)
    path = path.replace("OUTSIDE", str(outside))
    files = sandbox.files
    read = files.read_file(path)
    assert not read.ok
    assert "\n" not in read.output
    assert any(part in read.output.lower() for part in reason.lower().split("|")), read.output
    assert not files.write_file(path, "x").ok
    assert not files.str_replace(path, "secret", "x").ok
    assert not files.list_dir(path).ok
    assert (outside / "secret").read_text() == "secret"
    assert sorted(p.name for p in outside.iterdir()) == ["secret", "workspace"]


def test_a_dangling_link_out_makes_nothing_there(sandbox: Sandbox, outside: Path) -> None:
    sandbox.run(f"ln -s {outside}/new one; ln -s ../new two; ln -s new-inside three", timeout_s=30)
    assert not sandbox.files.write_file("one", "x").ok
    assert not sandbox.files.write_file("two", "x").ok
    assert sandbox.files.write_file("three", "x").ok
    assert not (outside / "new").exists()
    assert sandbox.run("cat new-inside", timeout_s=30).output == "x"


def test_a_hard_link_to_a_file_outside_is_not_written_through(outside: Path) -> None:
    (outside / "workspace" / "hard").hardlink_to(outside / "secret")
    with open_sandbox(outside / "workspace", tier=Tier.NONE) as sandbox:
        assert sandbox.files.write_file("hard", "x").ok
    assert (outside / "secret").read_text() == "secret"
    assert (outside / "workspace" / "hard").read_text() == "x"


def test_pipes_sockets_and_directories_are_no_files(sandbox: Sandbox) -> None:
    sandbox.run("mkfifo pipe; mkdir directory", timeout_s=30)
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.open(sandbox.workspace, os.O_PATH)
        listening.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
        for name in ("pipe", "socket", "directory"):
            for outcome in (
                sandbox.files.read_file(name),
                sandbox.files.write_file(name, "x"),
                sandbox.files.str_replace(name, "x", "y"),
            ):
                assert not outcome.ok
                assert outcome.output.startswith("error: it is ")


def test_a_replacement_needs_exactly_one_place(sandbox: Sandbox) -> None:
    sandbox.files.write_file("file", "a b a")
    assert "2 times" in sandbox.files.str_replace("file", "a", "x").output
    assert "0 times" in sandbox.files.str_replace("file", "c", "x").output
    assert "empty" in sandbox.files.str_replace("file", "", "x").output
    assert "no such file" in sandbox.files.str_replace("missing", "a", "x").output
    assert sandbox.files.read_file("file").output == "a b a"


def test_bytes_that_are_no_text_survive_a_replacement(sandbox: Sandbox) -> None:
    sandbox.run("printf 'a\\377b' > file", timeout_s=30)
    assert sandbox.files.str_replace("file", "b", "c").ok
    assert sandbox.run("od -An -tx1 file", timeout_s=30).output == " 61 ff 63\n"


def test_a_file_tool_obeys_the_rights_of_the_user_of_commands(sandbox: Sandbox) -> None:
    if sandbox.info.command_uid == 0:
        pytest.skip("root may read everything")
    sandbox.run("echo x > closed; chmod 000 closed; mkdir shut; chmod 500 shut", timeout_s=30)
    assert "permission denied" in sandbox.files.read_file("closed").output
    assert "permission denied" in sandbox.files.write_file("shut/new", "x").output


def test_a_file_larger_than_the_limit_is_not_written(outside: Path) -> None:
    limits = Limits(file_size_bytes=10)
    with open_sandbox(outside / "workspace", tier=Tier.NONE, limits=limits) as sandbox:
        assert sandbox.files.write_file("ten", "x" * 10).ok
        assert "at most 10 bytes" in sandbox.files.write_file("eleven", "x" * 11).output
        assert sandbox.files.list_dir().output == "ten\n"
