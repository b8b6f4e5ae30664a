"""Load the cases of a data set directory in BFCL's own shape."""

import hashlib
import json
import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bfcl_gate.errors import GateDataError
from bfcl_gate.languages import LANGUAGES
from bfcl_gate.nesting import MAX_DEPTH, too_deep
from bfcl_gate.shapes import JsonObject, read_functions, read_ground_truth, read_messages
from bfcl_gate.subsets import SUBSETS, Rule, Subset, subset_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PREFIX: Final = "BFCL_v4_"
_ANSWERS: Final = "possible_answer"
_ABOUT: Final = "dataset.toml"
_ID: Final = re.compile(r"[!-~]{1,256}")
_MAX_FILE_BYTES: Final = 1 << 28
_MINI: Final = Path(__file__).parent / "data" / "gate-mini"


@dataclass(frozen=True)
class Case:
    """One question: the messages of its single turn, the functions offered, the expected calls.

    `ground_truth` is None where the right answer is decided by whether there is a call at all.

    Raises:
        ValueError: The id is not of the subset, there is no message, or the expected calls are
            missing where the subset needs them, present where it does not, or too many.
    """

    id: str
    subset: str
    messages: tuple[JsonObject, ...]
    functions: tuple[JsonObject, ...]
    ground_truth: tuple[JsonObject, ...] | None = None

    def __post_init__(self) -> None:
        found = subset_of(self.id)
        if found.name != self.subset:
            raise ValueError(f"the id belongs to subset {found.name}, not to {self.subset}")
        if not self.messages:
            raise ValueError("a case needs at least one message")
        if found.rule.has_ground_truth != (self.ground_truth is not None):
            needs = "needs" if found.rule.has_ground_truth else "takes no"
            raise ValueError(f"a case of {self.subset} {needs} expected calls")
        if found.rule in (Rule.SIMPLE, Rule.MULTIPLE) and len(self.ground_truth or ()) != 1:
            raise ValueError(f"a case of {self.subset} needs exactly one expected call")


@dataclass(frozen=True)
class Dataset:
    """The cases of one directory, in file order.

    `sha256` covers the name, length and bytes of every file that was read, in the order of the
    sorted relative names: two directories with the same cases have the same digest.
    """

    name: str
    sha256: str
    cases: tuple[Case, ...]

    def __post_init__(self) -> None:
        if not self.cases:
            raise ValueError("a data set needs at least one case")


def load_dataset(
    root: Path, *, name: str | None = None, subsets: Collection[str] | None = None
) -> Dataset:
    """Load `BFCL_v4_<subset>.json` and `possible_answer/BFCL_v4_<subset>.json` under `root`.

    The official BFCL v4 files load unchanged; files of other benchmarks beside them are left alone.

    Args:
        root: The directory.
        name: The data set's name; by default the one in `dataset.toml`, else the directory's.
        subsets: The subsets to load; by default every one that has a file.

    Raises:
        GateDataError: A file is missing or cannot be read as cases, an id comes twice, or a
            question and its expected calls are not both there.
    """
    unknown = sorted(set(subsets or ()) - SUBSETS.keys())
    if unknown:
        raise GateDataError(f"{root}: unknown subset {unknown[0]!r}; use {', '.join(SUBSETS)}")
    present = [subset for subset in SUBSETS.values() if _is_there(_file(root, subset))]
    wanted = [SUBSETS[key] for key in SUBSETS if key in subsets] if subsets is not None else present
    if not wanted:
        raise GateDataError(f"{root}: no {_PREFIX}<subset>.json file; give a BFCL v4 directory")
    files = _Files(root)
    if name is None:
        name = _name(files)
    cases = tuple(case for subset in wanted for case in _read_subset(files, subset))
    if not cases:
        raise GateDataError(f"{root}: the files hold no case; fetch the data set again")
    return Dataset(name, files.sha256(), cases)


def gate_mini() -> Dataset:
    """Load the small data set that comes with the package."""
    return load_dataset(_MINI)


class _Files:
    """Reads files under a root and remembers their bytes for the digest."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._read: dict[str, bytes] = {}

    def read(self, path: Path) -> bytes:
        try:
            # A pipe or a device could wait or last for ever.
            if path.exists() and not path.is_file():
                raise GateDataError(f"{path}: is no regular file; fetch the data set again")
            if path.stat().st_size > _MAX_FILE_BYTES:
                raise GateDataError(f"{path}: has more than {_MAX_FILE_BYTES} bytes; split the set")
            data = path.read_bytes()
        except OSError as error:
            raise GateDataError(
                f"{path}: cannot be read ({error.strerror}); fetch the data set again"
            ) from None
        self._read[path.relative_to(self.root).as_posix()] = data
        return data

    def sha256(self) -> str:
        digest = hashlib.sha256()
        for name in sorted(self._read):
            # The length keeps a byte moved from one file to the next from going unnoticed.
            digest.update(f"{name}\0{len(self._read[name])}\0".encode())
            digest.update(self._read[name])
        return digest.hexdigest()


def _is_there(path: Path) -> bool:
    """Whether anything has this name; a link that leads nowhere is there, and no file."""
    return path.exists() or path.is_symlink()


def _file(root: Path, subset: Subset) -> Path:
    return root / f"{_PREFIX}{subset.name}.json"


def _name(files: _Files) -> str:
    path = files.root / _ABOUT
    if not _is_there(path):
        return files.root.resolve().name.encode("utf-8", "replace").decode()
    try:
        name = tomllib.loads(files.read(path).decode()).get("name")
    except GateDataError:
        raise
    except (ValueError, RecursionError) as error:
        raise GateDataError(f"{path}: not valid TOML: {error}; mend or remove the file") from None
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise GateDataError(
            f"{path}: 'name' must be 1 to 256 ASCII characters without spaces; add or mend it"
        )
    return name


def _read_subset(files: _Files, subset: Subset) -> Iterator[Case]:
    path = _file(files.root, subset)
    language = LANGUAGES[subset.language]
    answers = path.parent / _ANSWERS / path.name
    expected = dict(_rows(files, answers)) if subset.rule.has_ground_truth else {}
    for case_id, (line, row) in _rows(files, path):
        where = f"{path}:{line}: id {case_id!r}"
        truth = None
        try:
            functions = read_functions(row.get("function"), language)
            if subset.rule.has_ground_truth:
                if case_id not in expected:
                    raise GateDataError(f"{where}: no answer in {answers}; add it there")
                answer_line, answer = expected.pop(case_id)
                where = f"{answers}:{answer_line}: id {case_id!r}"
                truth = read_ground_truth(answer.get("ground_truth"), functions)
                where = f"{path}:{line}: id {case_id!r}"
            yield Case(case_id, subset.name, read_messages(row.get("question")), functions, truth)
        except GateDataError:
            raise
        except ValueError as error:
            raise GateDataError(f"{where}: {error}; mend the line") from None
    for case_id, (line, _) in expected.items():
        raise GateDataError(f"{answers}:{line}: id {case_id!r}: no question in {path}; remove it")


def _rows(files: _Files, path: Path) -> Iterator[tuple[str, tuple[int, dict[str, Any]]]]:
    """Yield (id, (line number, row)) for each line of a JSON lines file; ids come once."""
    seen: dict[str, int] = {}
    for line, data in enumerate(files.read(path).split(b"\n"), start=1):
        if not data.strip():
            continue
        try:
            text = data.decode()
            if too_deep(text):
                raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
            row = json.loads(text)
        except UnicodeDecodeError as error:
            raise GateDataError(
                f"{path}:{line}: not UTF-8 at byte {error.start + 1} of the line; save it as UTF-8"
            ) from None
        except (ValueError, RecursionError) as error:
            raise GateDataError(
                f"{path}:{line}: not a whole JSON object ({error}); fetch the file again"
            ) from None
        case_id = row.get("id") if isinstance(row, dict) else None
        if not isinstance(case_id, str):
            raise GateDataError(f"{path}:{line}: not an object with an 'id' string; mend the line")
        if not _ID.fullmatch(case_id):
            raise GateDataError(
                f"{path}:{line}: an id must be 1 to 256 ASCII characters without spaces; mend it"
            )
        if case_id in seen:
            raise GateDataError(
                f"{path}:{line}: id {case_id!r} is also on line {seen[case_id]}; keep one of them"
            )
        seen[case_id] = line
        yield case_id, (line, row)
