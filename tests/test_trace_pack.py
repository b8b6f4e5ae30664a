"""A pack is what its pack.json says, file by file, and stays inside its directory."""

import hashlib
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.trace.pack import DEFAULT_TOOL_TIMEOUT_S, bundled_packs, load_pack
from tests.trace_samples import make_pack, nested, repack, says, user, write
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import open_sandbox


def test_a_pack_is_its_trace_with_workspaces_checks_and_limits(tmp_path: Path) -> None:
    directory = make_pack(tmp_path / "p")
    pack = load_pack(directory)
    manifest = (directory / "pack.json").read_bytes()
    assert (pack.name, pack.version, pack.licence) == ("small", "1", "Apache-2.0")
    assert pack.sha256 == hashlib.sha256(manifest).hexdigest()
    assert [c.id for c in pack.conversations] == ["c"]
    assert pack.workspaces == {"c": directory / "work"}
    assert pack.checks == {"c": "test -e done"}
    assert pack.required_tools == ("bash", "cat")
    assert (pack.max_output_tokens, pack.tool_timeout_s) == (64, 5.0)


def test_bytecode_that_an_installer_left_is_no_part_of_a_pack(tmp_path: Path) -> None:
    directory = make_pack(tmp_path / "p")
    (directory / "work" / "__pycache__").mkdir()
    (directory / "work" / "__pycache__" / "a.cpython-311.pyc").touch()
    assert load_pack(directory).name == "small"


def test_a_bare_trace_is_a_pack_without_workspaces(tmp_path: Path) -> None:
    path = write(tmp_path / "some.trace.jsonl", user(1), says(2))
    pack = load_pack(path)
    assert pack.name == "some.trace"
    assert pack.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (pack.version, pack.licence, pack.max_output_tokens) == (None, None, None)
    assert (pack.workspaces, pack.checks) == ({}, {})
    assert pack.tool_timeout_s == DEFAULT_TOOL_TIMEOUT_S


def test_a_pack_without_limits_has_the_default_time_limit(tmp_path: Path) -> None:
    pack = load_pack(make_pack(tmp_path / "p", limits={}))
    assert (pack.max_output_tokens, pack.tool_timeout_s) == (None, DEFAULT_TOOL_TIMEOUT_S)


def test_an_unknown_name_is_told_the_bundled_ones() -> None:
    with pytest.raises(BadInputError, match=r"no-such-pack: no such trace; .*edge-mini"):
        load_pack("no-such-pack")


def test_a_limit_of_whole_tokens_is_an_integer_however_it_is_written(tmp_path: Path) -> None:
    pack = load_pack(make_pack(tmp_path / "p", limits={"max_output_tokens": 64.0}))
    assert pack.max_output_tokens == 64
    assert isinstance(pack.max_output_tokens, int)


def test_the_longest_check_that_a_kernel_takes_is_accepted_and_runs(tmp_path: Path) -> None:
    check = f"true {'x' * (131_071 - len('true '))}"
    conversations = {"c": {"workspace": "work", "check": check}}
    pack = load_pack(make_pack(tmp_path / "p", conversations=conversations))
    with open_sandbox(tmp_path, tier=Tier.NONE) as sandbox:
        assert sandbox.run(pack.checks["c"], timeout_s=30).exit_code == 0


def test_paths_of_a_manifest_may_be_written_at_length(tmp_path: Path) -> None:
    conversations = {"c": {"workspace": "./work/", "check": None}}
    directory = make_pack(tmp_path / "p", trace=".//t.jsonl", conversations=conversations)
    assert load_pack(directory).workspaces == {"c": directory / "work"}


def test_a_link_among_the_bytecode_can_not_lead_a_workspace_out(tmp_path: Path) -> None:
    conversations = {"c": {"workspace": "__pycache__/etc", "check": None}}
    directory = make_pack(tmp_path / "p", conversations=conversations)
    (directory / "__pycache__").mkdir()
    (directory / "__pycache__" / "etc").symlink_to("/etc")
    with pytest.raises(BadInputError, match="'__pycache__/etc' is no directory of the pack"):
        load_pack(directory)


def test_a_name_that_no_file_system_takes_is_told_so() -> None:
    with pytest.raises(BadInputError, match=r"a{300}: can't be read \(File name too long\)"):
        load_pack("a" * 300)


CHECKED = {"workspace": "work", "check": "cat a.txt", "check_files": ["./a.txt"]}


def test_files_that_a_check_rests_on_are_loaded_with_the_pack(tmp_path: Path) -> None:
    pack = load_pack(make_pack(tmp_path / "p", conversations={"c": CHECKED}))
    assert pack.check_files == {"c": {"a.txt": "hello\n"}}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"check_files": ["b.txt"]}, "check file 'b.txt' is no file of its workspace; name one"),
        ({"check_files": ["../t.jsonl"]}, r"path '\.\./t\.jsonl' leaves the pack"),
        ({"check_files": ["/etc/passwd"]}, "path '/etc/passwd' leaves the pack"),
        ({"check": None}, "'check_files' needs a workspace and a check"),
        ({"workspace": None}, "'check_files' needs a workspace and a check"),
        ({"check_files": [3]}, "check_files"),
    ],
)
def test_a_check_rests_on_files_of_its_own_workspace(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInputError, match=said):
        load_pack(make_pack(tmp_path / "p", conversations={"c": {**CHECKED, **changed}}))


def test_a_check_file_is_text(tmp_path: Path) -> None:
    directory = make_pack(tmp_path / "p", conversations={"c": CHECKED})
    (directory / "work" / "a.txt").write_bytes(b"\xff")
    with pytest.raises(BadInputError, match=r"work/a\.txt: is a check file, which must be UTF-8"):
        load_pack(repack(directory))


@pytest.mark.parametrize("name", bundled_packs())
def test_every_bundled_pack_loads_by_its_name(name: str) -> None:
    assert load_pack(name).name == name


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "changed": (lambda p: (p / "work/a.txt").write_text("hallo\n"), "a.txt: differs from its SHA"),
    "missing": (lambda p: (p / "work/a.txt").unlink(), "a.txt: is missing from the pack"),
    "additional": (lambda p: (p / "work/b").write_text(""), "work/b: is not listed in pack.json"),
    "hidden in a workspace": (
        lambda p: (p / "work/pack.json").write_text("{}"),
        "work/pack.json: is not listed in pack.json",
    ),
    "pipe": (lambda p: os.mkfifo(p / "work/pipe"), "work/pipe: is no plain file"),
    "link": (lambda p: (p / "work/l").symlink_to("/etc/hostname"), "work/l: is no plain file"),
    "linked directory": (lambda p: (p / "work/l").symlink_to("/etc"), "work/l: is no plain file"),
    "linked manifest": (
        lambda p: (p / "pack.json").rename(p / "x") and (p / "pack.json").symlink_to("x"),
        "pack.json: is no plain file",
    ),
    "name that is not UTF-8": (
        lambda p: Path(os.fsdecode(bytes(p / "work") + b"/\xff")).touch(),
        r"work/\\udcff: its name holds control characters, or bytes that are not UTF-8",
    ),
    "directory name that is not UTF-8": (
        lambda p: Path(os.fsdecode(bytes(p / "work") + b"/\xff")).mkdir(),
        r"work/\\udcff: its name holds",
    ),
    "name that drives a terminal": (
        lambda p: (p / "work" / "\x1b[2J").touch(),
        r"work/\\u001b\[2J: its name holds control characters",
    ),
    "no manifest": (lambda p: (p / "pack.json").unlink(), "pack.json: no such file"),
    "broken manifest": (lambda p: (p / "pack.json").write_text("{"), "not valid JSON"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_pack_is_refused_and_the_file_named(case: str, tmp_path: Path) -> None:
    damage, message = DAMAGE[case]
    directory = make_pack(tmp_path / "p")
    damage(directory)
    with pytest.raises(BadInputError, match=message):
        load_pack(directory)


WRONG_MANIFESTS: dict[str, tuple[dict[str, Any], str]] = {
    "another schema": ({"schema": "x"}, "'schema' must be \"edge-agentic/pack/1\""),
    "name with a slash": ({"name": "a/b"}, "'name' must match"),
    "short hash": ({"files": {"t.jsonl": "12"}}, "'files.t.jsonl' must match"),
    "trace outside": ({"trace": "../t.jsonl"}, "path '../t.jsonl' leaves the pack"),
    "absolute trace": ({"trace": "/etc/passwd"}, "path '/etc/passwd' leaves the pack"),
    "file outside": ({"files": {"../x": "0" * 64}}, "path '../x' leaves the pack"),
    "workspace outside": (
        {"conversations": {"c": {"workspace": "a/../..", "check": None}}},
        "path 'a/../..' leaves the pack",
    ),
    "no such workspace": (
        {"conversations": {"c": {"workspace": "nowhere", "check": None}}},
        "conversation 'c': workspace 'nowhere' is no directory of the pack",
    ),
    "workspace with an endless name": (
        {"conversations": {"c": {"workspace": "a" * 300, "check": None}}},
        "conversation 'c': workspace 'a{300}' is no directory of the pack",
    ),
    "workspace among the bytecode": (
        {"conversations": {"c": {"workspace": "__pycache__", "check": None}}},
        "conversation 'c': workspace '__pycache__' is no directory of the pack",
    ),
    "workspace a file": (
        {"conversations": {"c": {"workspace": "work/a.txt", "check": None}}},
        "conversation 'c': workspace 'work/a.txt' is no directory of the pack",
    ),
    "no such trace": ({"trace": "u.jsonl"}, "trace 'u.jsonl' is no file of the pack"),
    "trace with an endless name": ({"trace": "a" * 300}, "trace 'a{300}' is no file of the pack"),
    "trace a directory": ({"trace": "work"}, "trace 'work' is no file of the pack"),
    "trace the manifest": ({"trace": "pack.json"}, "trace 'pack.json' is no file of the pack"),
    "trace half a character": ({"trace": "\ud800"}, "holds half of a surrogate pair"),
    "file half a character": ({"files": {"\ud800": "0" * 64}}, "holds half of a surrogate pair"),
    "check with a NUL": (
        {"conversations": {"c": {"workspace": "work", "check": "true\0"}}},
        "conversation 'c': its check holds a NUL character",
    ),
    "check too long": (
        {"conversations": {"c": {"workspace": "work", "check": "é" * 65_536}}},
        "conversation 'c': its check has 131072 bytes, the kernel takes 131071",
    ),
    "check half a character": (
        {"conversations": {"c": {"workspace": "work", "check": "echo \ud800"}}},
        "holds half of a surrogate pair",
    ),
    "conversation unlisted": ({"conversations": {}}, "conversation 'c' is missing in pack.json"),
    "conversation too many": (
        {
            "conversations": {
                "c": {"workspace": None, "check": None},
                "d": {"workspace": None, "check": None},
            }
        },
        "conversation 'd' is missing in t.jsonl",
    ),
    "misspelt field": (
        {"conversations": {"c": {"workspace": None, "check": None, "cheque": "x"}}},
        "'conversations.c' has an unknown field 'cheque'",
    ),
    "no check": ({"conversations": {"c": {"workspace": None}}}, "'conversations.c.check' is miss"),
    "time limit NaN": (
        {"limits": {"tool_timeout_s": math.nan}},
        "not usable JSON .NaN is no JSON number",
    ),
    "time limit infinite": (
        {"limits": {"tool_timeout_s": math.inf}},
        "not usable JSON .Infinity is no JSON number",
    ),
    "time limit absurd": (
        {"limits": {"tool_timeout_s": 1e300}},
        "'limits.tool_timeout_s' must be at most 86400",
    ),
    "time limit above a day": (
        {"limits": {"tool_timeout_s": 86_401}},
        "'limits.tool_timeout_s' must be at most 86400",
    ),
    "limit absurd": (
        {"limits": {"max_output_tokens": 1e300}},
        "'limits.max_output_tokens' must be at most 1048576",
    ),
    "limit half a token": (
        {"limits": {"max_output_tokens": 1.5}},
        "'limits.max_output_tokens' must be integer or null",
    ),
    "nested without end": ({"note": nested(64)}, "is nested more than 64 levels deep"),
    "tools without end": ({"tools": ["ls"] * 101}, "'tools' must have at most 100 entries"),
    "tool with an endless name": ({"tools": ["l" * 256]}, "must have at most 255 characters"),
    "limit zero": ({"limits": {"max_output_tokens": 0}}, "must be at least 1"),
    "tool with a space": ({"tools": ["rm -rf"]}, r"'tools\[0\]' must match"),
}


@pytest.mark.parametrize("case", WRONG_MANIFESTS)
def test_a_wrong_manifest_is_refused_and_the_field_named(case: str, tmp_path: Path) -> None:
    changes, message = WRONG_MANIFESTS[case]
    directory = make_pack(tmp_path / "p", **changes)
    with pytest.raises(BadInputError, match=message) as error:
        load_pack(directory)
    assert str(error.value).startswith(f"{directory}/pack.json:")
    assert str(error.value).isprintable()
