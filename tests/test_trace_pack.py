"""A pack is what its pack.json says, file by file, and stays inside its directory."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.trace.pack import DEFAULT_TOOL_TIMEOUT_S, bundled_packs, load_pack
from tests.trace_samples import make_pack, says, user, write


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
        "conversation 'c': workspace .*nowhere is not a directory",
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
    "limit zero": ({"limits": {"max_output_tokens": 0}}, "must be at least 1"),
    "tool with a space": ({"tools": ["rm -rf"]}, r"'tools\[0\]' must match"),
}


@pytest.mark.parametrize("case", WRONG_MANIFESTS)
def test_a_wrong_manifest_is_refused_and_the_field_named(case: str, tmp_path: Path) -> None:
    changes, message = WRONG_MANIFESTS[case]
    directory = make_pack(tmp_path / "p", **changes)
    with pytest.raises(BadInputError, match=message) as error:
        load_pack(directory)
    assert str(error.value).startswith(f"{directory}/pack.json: ")
