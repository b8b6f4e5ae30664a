"""Builds small traces and packs for tests."""

import json
from pathlib import Path
from typing import Any

from edge_agentic.trace.pack import hash_files

Row = dict[str, Any]


def call(id: str, command: str) -> dict[str, Any]:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {"id": id, "type": "function", "function": function}


def user(turn: int, content: str = "do it", **more: object) -> Row:
    return {"conversation_id": "c", "turn": turn, "role": "user", "content": content, **more}


def calls(turn: int, *ids: str, command: str = "ls", **more: object) -> Row:
    row = {"conversation_id": "c", "turn": turn, "role": "assistant"}
    return {**row, "tool_calls": [call(id, command) for id in ids], **more}


def results(turn: int, *ids: str, **more: object) -> Row:
    row = {"conversation_id": "c", "turn": turn, "role": "tool"}
    return {
        **row,
        "tool_results": [{"tool_call_id": id, "content": f"r{id}"} for id in ids],
        **more,
    }


def says(turn: int, content: str = "done", **more: object) -> Row:
    return {"conversation_id": "c", "turn": turn, "role": "assistant", "content": content, **more}


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def make_pack(directory: Path, **changes: Any) -> Path:
    """A right pack with one conversation, or one with `changes` in its pack.json."""
    (directory / "work").mkdir(parents=True)
    (directory / "work" / "a.txt").write_text("hello\n")
    write(
        directory / "t.jsonl",
        user(1),
        calls(2, "a", command="cat a.txt; touch done"),
        results(3, "a"),
        says(4),
    )
    manifest = {
        "schema": "edge-agentic/pack/1",
        "name": "small",
        "version": "1",
        "licence": "Apache-2.0",
        "provenance": "made for a test",
        "trace": "t.jsonl",
        "files": hash_files(directory),
        "conversations": {"c": {"workspace": "work", "check": "test -e done"}},
        "tools": ["bash", "cat"],
        "limits": {"max_output_tokens": 64, "tool_timeout_s": 5},
    }
    manifest.update(changes)
    (directory / "pack.json").write_text(json.dumps(manifest))
    return directory


def repack(directory: Path) -> Path:
    """Bring the hashes in a pack's pack.json up to date with its files."""
    manifest = json.loads((directory / "pack.json").read_text())
    manifest["files"] = hash_files(directory)
    (directory / "pack.json").write_text(json.dumps(manifest))
    return directory
