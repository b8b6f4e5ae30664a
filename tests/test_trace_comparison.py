"""A result is compared with the recorded one past what no two runs can have in common."""

from __future__ import annotations

import time

import pytest

from edge_agentic.trace.comparison import Difference, Match, compare, first_difference, normalise

FILE = "-rw-r--r-- 1 agent agent 120 Nov 30 23:45 a.py"
DIRECTORY = "drwxr-xr-x 2 agent agent 4096 Jan  1  2024 src"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("in /tmp/tmp.Ab3dE6gH9x/out", "in /tmp/tmp.zzYY88xx77/out"),
        ("dir=/tmp/tmpk3j_9x0a", "dir=/home/agent/cache/tmpaaaa1111"),
        ("/tmp/pytest-of-agent/pytest-0/test_a0", "/tmp/pytest-of-root/pytest-17/test_a0"),
        ("/tmp/pip-wheel-s_dm6dqi/wheels", "/tmp/pip-wheel-abcdefgh/wheels"),
        ("<A object at 0x7b47920eb610>", "<A object at 0x743f868d07d0>"),
        ("ptr 0x00007ffd12345678", "ptr 0x0000743f868d07d0"),
        ("Ran 3 tests in 0.001s", "Ran 3 tests in 1.2s"),
        ("== 7 passed in 0.12s ==", "== 7 passed in 3.57s =="),
        ("--- PASS: TestA (0.00s)", "--- PASS: TestA (0.13s)"),
        ("ok after (12 ms)", "ok after (9 ms)"),
        ("real\t0m0.003s\nuser\t0m0.001s", "real\t0m1.250s\nuser\t0m0.900s"),
        ("0.01s call     test_a.py::test", "0.25s call     test_a.py::test"),
        ("elapsed: 12.5 ms", "elapsed: 3 ms"),
        ("2024-01-01T10:00:00Z start", "2026-11-30T23:45:39Z start"),
        ("2024-01-01 10:00:00,123 INFO", "2026-11-30 23:45:39,999 INFO"),
        ("Mon Nov 30 23:45:39 UTC 2026", "Tue Dec  1 00:01:02 UTC 2026"),
        (f"total 8\n{FILE}", f"total 4\n{FILE.replace('agent', 'root').replace('30', '29')}"),
        (DIRECTORY, DIRECTORY.replace("4096", "60").replace("2024", "2026")),
        ("server pid 1234 is up", "server pid 77 is up"),
    ],
)  # fmt: skip
def test_what_cannot_repeat_is_no_difference(one: str, other: str) -> None:
    assert compare(one, other) is Match.NORMALISED
    assert compare(one, one) is Match.EXACT
    assert first_difference(one, other) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 passed", "4 passed"),
        ("5 passed in 0.10s", "4 passed in 0.10s"),
        ("parse('250ms') = 0.25", "parse('250ms') = 15000.0"),
        ("0xdeadbeef", "0xdeadbeee"),
        ("2024-05-14T00:05,16.2", "2024-05-14T00:07,16.2"),
        ("size 120", "size 121"),
        (FILE, FILE.replace("120", "121")),
        (FILE, FILE.replace("a.py", "b.py")),
        (FILE, FILE.replace("-rw-r", "-rwxr")),
        ("/tmp/test_fix.py", "/tmp/test_fix2.py"),
        ("/workspace/tmp/notes.txt", "/workspace/tmp/other.txt"),
        ("in 3 files", "in 4 files"),
        ("hello\n", "hello"),
        ("a\r\n", "a\n"),
        ("12 of 12 cases", "11 of 12 cases"),
    ],
)
def test_whatever_else_differs_is_a_difference(one: str, other: str) -> None:
    assert compare(one, other) is Match.DIFFERENT
    assert first_difference(one, other) is not None


def test_the_first_difference_is_shown_as_it_was_written() -> None:
    recorded = "start\n3 passed in 0.1s\nwrong: 2\nend"
    now = "start\n3 passed in 9.9s\nwrong: 5\nend"
    assert first_difference(recorded, now) == Difference(3, "wrong: 2", "wrong: 5")
    assert first_difference("a", "a\nb") == Difference(2, None, "b")
    long = first_difference("x" * 500, "y")
    assert long is not None and long.recorded == "x" * 160 + "…"


@pytest.mark.parametrize(
    "piece", ["/a", "/tmp", "0x", "1 ", "9", "in 1", "d---------", "a.", "\n1"]
)
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    start = time.perf_counter()
    normalise(text)
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize(
    ("one", "other"),
    [("total 15", "total 16"), ("a\ntotal 3\nb", "a\ntotal 4\nb"), ("[1] 42", "[1] 43")],
)
def test_a_result_in_the_form_of_a_listing_or_a_job_is_a_result(one: str, other: str) -> None:
    assert compare(one, other) is Match.DIFFERENT
