"""Strict reading and durable writing of JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import dump_line, iter_objects, read_object, write_atomically


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": 1}\n{"a": ', ":2: not valid JSON"),
        (b'{"a": 1}\n[1]\n', ":2: expected a JSON object, found list"),
        (b'{"a": "\xff"}\n', ":1: not UTF-8"),
        (b'{"a": 1}\n\n\n{"a": nope}\n', ":4: not valid JSON"),
        (b'{"a": ' + b"[" * 100_000 + b"\n", ":1: not"),
        (b'{"a": ' + b"9" * 10_000 + b"}\n", ":1: not usable JSON"),
    ],
)
def test_a_bad_line_is_named_with_its_number(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadInputError) as caught:
        list(iter_objects(path))
    assert str(caught.value).startswith(f"{path}{said}")


def test_line_numbers_count_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('\n{"a":1}\n\n{"a":2}')
    assert [(number, row["a"]) for number, row in iter_objects(path)] == [(2, 1), (4, 2)]


def test_a_torn_tail_is_left_out_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"a":1}\n{"a":')
    assert [row for _, row in iter_objects(path, torn_tail=True)] == [{"a": 1}]
    with pytest.raises(BadInputError):
        list(iter_objects(path))


@pytest.mark.parametrize("kind", ["missing", "directory"])
def test_a_file_that_is_none_is_one_clear_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path if kind == "directory" else tmp_path / "absent.json"
    with pytest.raises(BadInputError, match=f"^{path}: (is a directory|no such file)"):
        read_object(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_nan_and_infinity_never_reach_a_file(value: object) -> None:
    with pytest.raises(ValueError):
        dump_line({"x": value})


def test_an_atomic_write_replaces_the_whole_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text("old and much longer than the new one")
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
