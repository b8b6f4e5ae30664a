"""The journal is append-only, whole lines, durable; a power cut costs at most the last event."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edge_agentic.core.errors import BadInputError, StorageError
from edge_agentic.run.directory import RunDirectory
from edge_agentic.run.journal import JournalWriter, read_events


def test_events_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path) as journal:
        journal.write("first", value=1, text="ü\n\u2028 \x1b[31m")
        journal.write("second")
    assert read_events(path) == [
        {"event": "first", "value": 1, "text": "ü\n\u2028 \x1b[31m"},
        {"event": "second"},
    ]
    assert path.read_bytes().count(b"\n") == 2


def test_each_event_is_on_disk_when_write_returns(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path) as journal:
        journal.write("first")
        assert json.loads(path.read_text()) == {"event": "first"}


def test_text_that_utf8_cannot_hold_does_not_lose_the_event(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path) as journal:
        journal.write("turn", text="a\ud800b")
    assert read_events(path)[0]["text"] == "a?b"


def test_a_torn_last_line_is_no_event(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"event":"a"}\n{"event":"b","te')
    assert read_events(path) == [{"event": "a"}]


def test_damage_before_the_end_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"event":"a"}\n{"event":"b","te\n{"event":"c"}\n')
    with pytest.raises(BadInputError, match=r"journal\.jsonl:2: not valid JSON"):
        read_events(path)


def test_an_existing_journal_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text("precious\n")
    with pytest.raises(StorageError, match="File exists"):
        JournalWriter(path)
    assert path.read_text() == "precious\n"


def test_an_empty_journal_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text("")
    assert read_events(path) == []
    with pytest.raises(BadInputError, match="holds no event"):
        RunDirectory(tmp_path).events()


def test_an_append_cuts_off_what_a_power_cut_left_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path) as journal:
        journal.write("first")
    with path.open("a") as file:
        file.write('{"event":"seco')
    with JournalWriter(path, append=True) as journal:
        journal.write("third")
    assert [event["event"] for event in read_events(path)] == ["first", "third"]


def test_a_run_directory_has_one_run_at_work(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    with (
        directory.locked(),
        pytest.raises(BadInputError, match="another run is at work"),
        RunDirectory(tmp_path).locked(),
    ):
        raise AssertionError
    with directory.locked():
        pass
