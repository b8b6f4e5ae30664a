"""Gate sets by name: whole and unchanged, or an error that names the file and the remedy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bfcl_gate.cases import gate_mini, load_dataset
from bfcl_gate.official import DATASET_SHA256
from bfcl_gate.official_files import official_files
from bfcl_gate.subsets import SUBSETS
from edge_agentic.core.errors import BadInputError
from edge_agentic.run.gate_sets import fetch_gate_set, list_gate_sets, open_gate_set
from edge_agentic.run.official_data import WHEEL, fetch_official, official_path

FIRST = official_files()[0]
ROW = '{"id": "irrelevance_0", "question": [[{"role": "user", "content": "hi"}]], "function": []}'

WHEEL_VARIABLE = "EDGE_AGENTIC_BFCL_WHEEL"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EDGE_AGENTIC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def official_wheel() -> Path:
    """The official wheel; skips where there is none."""
    path = os.environ.get(WHEEL_VARIABLE)
    if not path:
        pytest.skip(f"no official wheel: set {WHEEL_VARIABLE} to the file of {WHEEL.requirement}")
    return Path(path)


@pytest.fixture
def fetched(cache: Path, official_wheel: Path) -> Path:
    """The official data in a cache of its own."""
    return fetch_official(source=official_wheel)


def write_set(root: Path, name: str | None = None) -> Path:
    """A directory with one case, which calls itself `name`."""
    root.mkdir(parents=True)
    (root / "BFCL_v4_irrelevance.json").write_text(ROW)
    if name is not None:
        (root / "dataset.toml").write_text(f'name = "{name}"')
    return root


def test_the_table_names_the_files_that_the_loader_reads() -> None:
    questions = {f"BFCL_v4_{subset}.json" for subset in SUBSETS}
    answers = {
        f"possible_answer/BFCL_v4_{subset.name}.json"
        for subset in SUBSETS.values()
        if subset.rule.has_ground_truth
    }
    assert {file.name for file in official_files()} == questions | answers


def test_the_bundled_set_opens_by_name_and_lies_where_the_list_says(cache: Path) -> None:
    bundled, official = list_gate_sets()
    assert open_gate_set("gate-mini") == gate_mini()
    assert bundled.path is not None
    assert load_dataset(bundled.path) == gate_mini()
    assert bundled.cases == len(gate_mini().cases)
    assert official.path is None


def test_a_set_that_is_not_fetched_names_the_command(cache: Path) -> None:
    with pytest.raises(BadInputError, match=r"not here yet; run: edge-agentic data fetch bfcl-v4$"):
        open_gate_set("bfcl-v4")


def test_an_unknown_name_lists_the_known_ones(cache: Path) -> None:
    with pytest.raises(
        BadInputError, match="absent: no such gate set; give 'gate-mini', 'bfcl-v4'"
    ):
        open_gate_set("absent")
    with pytest.raises(BadInputError, match="named 'absent'; there are: gate-mini, bfcl-v4"):
        fetch_gate_set("absent", say=print)


def test_a_directory_of_ones_own_keeps_its_name(cache: Path, tmp_path: Path) -> None:
    root = write_set(tmp_path / "own")
    assert open_gate_set(str(root)).name == "own"
    assert len(open_gate_set(str(root)).cases) == 1


@pytest.mark.parametrize("name", ["gate-mini", "bfcl-v4"])
@pytest.mark.parametrize("by", ["directory", "dataset.toml"])
def test_no_directory_passes_for_a_named_set(
    cache: Path, tmp_path: Path, name: str, by: str
) -> None:
    root = tmp_path / (name if by == "directory" else "own")
    write_set(root, name if by == "dataset.toml" else None)
    with pytest.raises(BadInputError, match=f"calls itself '{name}' but .*; rename it"):
        open_gate_set(str(root))


def test_a_wheel_with_the_wrong_hash_is_one_line_and_exit_2(
    cache: Path, tmp_path: Path, cli: list[str]
) -> None:
    wheel = tmp_path / "bfcl_eval-2026.3.23-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"bfcl_eval/data/{FIRST.name}", ROW)
    done = subprocess.run(
        [*cli, "data", "fetch", "bfcl-v4", "--from", wheel], capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert f"{wheel.name}: SHA-256 is" in done.stderr
    assert f"expected {WHEEL.sha256}; not used" in done.stderr
    assert not official_path().exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda path: None, "absent: no such file", id="nothing"),
        pytest.param(lambda path: path.mkdir(), "holds no BFCL v4 data; give", id="empty"),
        pytest.param(
            lambda path: (path / "data" / FIRST.name).mkdir(parents=True),
            "holds no BFCL v4 data; give",
            id="folder instead of a file",
        ),
    ],
)
def test_a_source_without_data_is_named(
    cache: Path, tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    make(tmp_path / "absent")
    with pytest.raises(BadInputError, match=message):
        fetch_official(source=tmp_path / "absent")
    assert not official_path().exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is missing"),
        (b"", f"is cut short \\(0 of {FIRST.size_bytes} bytes\\)"),
        (ROW.encode(), f"is cut short \\({len(ROW)} of {FIRST.size_bytes} bytes\\)"),
        (b" " * FIRST.size_bytes, "differs from the official file"),
        (b" " * (FIRST.size_bytes + 1), "differs from the official file"),
    ],
)
def test_a_source_with_a_damaged_file_names_it_and_the_remedy(
    cache: Path, tmp_path: Path, content: bytes | None, message: str
) -> None:
    (tmp_path / official_files()[1].name).write_text(ROW)
    if content is not None:
        (tmp_path / FIRST.name).write_bytes(content)
    with pytest.raises(BadInputError, match=f"{FIRST.name}: {message}; take the data of bfcl-eval"):
        fetch_official(source=tmp_path)
    assert not official_path().exists()


def test_a_pipe_among_the_files_does_not_make_it_wait(cache: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FIRST.name)
    (tmp_path / official_files()[1].name).write_text(ROW)
    with pytest.raises(BadInputError, match=f"{FIRST.name}: is no regular file"):
        fetch_official(source=tmp_path)


def test_the_list_says_what_is_here(cache: Path, cli: list[str]) -> None:
    done = subprocess.run([*cli, "data", "list"], capture_output=True, text=True)
    assert done.returncode == 0
    bundled, official = done.stdout.splitlines()
    assert bundled.startswith(f"gate-mini  Apache-2.0  {len(gate_mini().cases)} cases  bundled  /")
    assert official == f"bfcl-v4  Apache-2.0  3641 cases  {WHEEL.requirement}  not fetched yet"
    done = subprocess.run([*cli, "data", "list", "--json"], capture_output=True, text=True)
    assert json.loads(done.stdout)[1] == {
        "name": "bfcl-v4",
        "licence": "Apache-2.0",
        "source": WHEEL.requirement,
        "cases": 3641,
        "path": None,
    }


def test_the_bundled_set_needs_no_fetch(cache: Path, cli: list[str]) -> None:
    done = subprocess.run([*cli, "data", "fetch", "gate-mini"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "gate-mini is bundled: nothing to fetch\n")
    assert load_dataset(Path(done.stdout.strip())) == gate_mini()
    assert not cache.exists()


def test_the_official_wheel_gives_the_official_set(
    cache: Path, official_wheel: Path, cli: list[str]
) -> None:
    words = [*cli, "data", "fetch", "bfcl-v4", "--from", official_wheel]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    path = official_path()
    assert (done.stdout, done.stderr) == (f"{path}\n", f"bfcl-v4 is ready: {path}\n")
    assert sorted(p.name for p in path.parent.iterdir()) == [".lock", "bfcl-v4"]
    files = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    assert files == {file.name for file in official_files()}

    dataset = open_gate_set("bfcl-v4")
    assert (dataset.name, dataset.sha256) == ("bfcl-v4", DATASET_SHA256)
    listed = list_gate_sets()[1]
    assert (listed.path, listed.cases) == (path, len(dataset.cases))

    again = subprocess.run(words, capture_output=True, text=True)
    assert (again.stdout, again.stderr) == (f"{path}\n", f"bfcl-v4 is here: {path}\n")


@pytest.mark.parametrize(
    "layout",
    [".", "data", "bfcl_eval/data", "berkeley-function-call-leaderboard/bfcl_eval/data"],
)
def test_a_directory_gives_the_official_set_wherever_its_data_lies(
    fetched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    source = tmp_path / "source"
    shutil.copytree(fetched, source / layout)
    (source / layout / "BFCL_v4_memory.json").write_text("of another benchmark")
    monkeypatch.setenv("EDGE_AGENTIC_CACHE", str(tmp_path / "other"))
    path = fetch_official(source=source)
    assert path.is_relative_to(tmp_path / "other")
    assert open_gate_set("bfcl-v4").sha256 == DATASET_SHA256
    assert not (path / "BFCL_v4_memory.json").exists()


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def change_a_byte(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def add_a_line(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("BFCL_v4_live_relevance.json", Path.unlink, "is missing"),
        ("BFCL_v4_simple_python.json", cut_short, "is cut short"),
        ("possible_answer/BFCL_v4_live_simple.json", change_a_byte, "differs from the official"),
        ("possible_answer/BFCL_v4_simple_python.json", add_a_line, "differs from the official"),
    ],
)
def test_damaged_data_in_the_cache_is_named_and_fetched_again(
    fetched: Path,
    official_wheel: Path,
    name: str,
    damage: Callable[[Path], None],
    message: str,
) -> None:
    damage(fetched / name)
    with pytest.raises(BadInputError, match=f"{name}: {message}.*; run: edge-agentic data fetch"):
        open_gate_set("bfcl-v4")
    assert list_gate_sets()[1].path is None
    assert fetch_official(source=official_wheel) == fetched
    assert open_gate_set("bfcl-v4").sha256 == DATASET_SHA256


def test_a_directory_with_the_official_content_is_the_official_set(
    fetched: Path, tmp_path: Path
) -> None:
    root = tmp_path / "downloads"
    fetched.rename(root)
    dataset = open_gate_set(str(root))
    assert (dataset.name, dataset.sha256) == ("bfcl-v4", DATASET_SHA256)
    (root / "dataset.toml").write_text('name = "bfcl-v4"')
    assert open_gate_set(str(root)) == dataset
    (root / "BFCL_v4_multiple.json").unlink()
    with pytest.raises(BadInputError, match=r"BFCL_v4_multiple\.json: is missing.*rename it, or"):
        open_gate_set(str(root))
