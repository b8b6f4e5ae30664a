"""Decide whether a run passes the gate: references and floors are data, in `references.toml`."""

import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args

from bfcl_gate.aggregate import NORMALIZED, OVERALL, Scores
from bfcl_gate.errors import GateDataError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ToolGrammar = Literal["on", "off", "server"]

_Entry = TypeVar("_Entry", "Reference", "Floor")

ANY_DATASET: Final = "*"
"""In a floor: every data set that has no floor of its own."""

_BUNDLED: Final = Path(__file__).parent / "references.toml"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Reference:
    """A model's published or measured scores on a selection of a data set, in percent.

    A run of the same model passes when each score is at least `factor` times the one here.
    """

    id: str
    name: str
    gguf_sha256: tuple[str, ...]
    """Digests of the model files that this is the reference of."""
    gguf_names: tuple[str, ...]
    """Names (GGUF `general.name`) of the models that this is the reference of."""
    quantisation: str
    """That of the measured model; a run may use another."""
    dataset: str
    selection: str
    overall: Decimal
    normalized: Decimal
    factor: Decimal
    tool_grammar: ToolGrammar
    """How tool calls were decoded: by a grammar, freely, or as the server chose."""
    provenance: str
    """How the scores were measured."""

    def __post_init__(self) -> None:
        _need(bool(self.gguf_sha256 or self.gguf_names), "'gguf_sha256' or 'gguf_names' is needed")
        _need(
            all(_SHA256.fullmatch(digest) for digest in self.gguf_sha256),
            "'gguf_sha256' must hold digests of 64 lower-case hexadecimal digits",
        )
        _need(0 < self.overall <= 100, "'overall' must be in percent, above 0")
        _need(0 < self.normalized <= 100, "'normalized' must be in percent, above 0")
        _need(0 < self.factor <= 1, "'factor' must be above 0 and at most 1")
        _need(
            self.tool_grammar in get_args(ToolGrammar),
            f"'tool_grammar' must be one of {', '.join(get_args(ToolGrammar))}",
        )

    def thresholds(self) -> dict[str, Decimal]:
        """Return the least score that passes, in percent, by the score's name; exact products."""
        return {OVERALL: self.factor * self.overall, NORMALIZED: self.factor * self.normalized}


@dataclass(frozen=True)
class Floor:
    """What a model without a reference must reach on a data set, in percent, and why."""

    dataset: str
    selection: str
    overall: Decimal
    reason: str

    def __post_init__(self) -> None:
        _need(0 < self.overall <= 100, "'overall' must be in percent, above 0")

    def thresholds(self) -> dict[str, Decimal]:
        """Return the least score that passes, in percent, by the score's name."""
        return {OVERALL: self.overall}


@dataclass(frozen=True)
class References:
    """All references and floors of one file."""

    references: tuple[Reference, ...]
    floors: tuple[Floor, ...]

    def find(
        self, dataset: str, selection: str, *, gguf_sha256: str | None, gguf_name: str | None
    ) -> Reference | Floor | None:
        """Return what a run of the model on the selection is compared with.

        The model's file decides before its name; names compare without case and separators. A
        model that no reference is for gets the set's floor, else the floor of every set (`*`);
        None means that the run cannot be judged.
        """
        there = [r for r in self.references if (r.dataset, r.selection) == (dataset, selection)]
        for reference in there:
            if gguf_sha256 is not None and gguf_sha256.lower() in reference.gguf_sha256:
                return reference
        for reference in there:
            if gguf_name is not None and _plain(gguf_name) in map(_plain, reference.gguf_names):
                return reference
        for wanted in (dataset, ANY_DATASET):
            for floor in self.floors:
                if (floor.dataset, floor.selection) == (wanted, selection):
                    return floor
        return None


@dataclass(frozen=True)
class GateDecision:
    """Whether a run passes; thresholds in percent, and a line for each score that falls short."""

    passed: bool
    thresholds: Mapping[str, float]
    shortfalls: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.passed == bool(self.shortfalls):
            raise ValueError("a run passes if and only if no score falls short")


def load_references(path: Path = _BUNDLED) -> References:
    """Read a references file; by default the one that comes with the package.

    Raises:
        GateDataError: The file is no TOML, or an entry lacks a key, has an unknown one, a value of
            the wrong type or an impossible one, or judges the same models as another.
    """
    try:
        tables = tomllib.loads(path.read_bytes().decode(), parse_float=Decimal)
    except OSError as error:
        raise GateDataError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GateDataError(f"{path}: not valid TOML: {error}; mend the file") from None
    unknown = sorted(tables.keys() - {"reference", "floor"})
    if unknown:
        raise GateDataError(f"{path}: unknown key {unknown[0]!r}; use [[reference]] and [[floor]]")
    references = _entries(path, tables, "reference", Reference)
    floors = _entries(path, tables, "floor", Floor)
    _check_unambiguous(path, references, floors)
    return References(references, floors)


def decide(scores: Scores, reference: Reference | Floor) -> GateDecision:
    """Compare the scores, in percent with two decimals, with the thresholds.

    Every threshold must be reached, and there is no upper bound. Source: MLPerf Inference v6.1
    edge-agentic rules.
    """
    found = {
        OVERALL: scores.overall_accuracy,
        NORMALIZED: scores.normalized_single_turn_score,
    }
    thresholds = reference.thresholds()
    shortfalls = tuple(
        _shortfall(name, found[name], threshold)
        for name, threshold in thresholds.items()
        if not reaches(found[name], threshold)
    )
    return GateDecision(
        not shortfalls, {name: float(value) for name, value in thresholds.items()}, shortfalls
    )


def reaches(score: float | None, threshold: Decimal) -> bool:
    """Return whether a score, in percent with two decimals, is at least the threshold.

    Both sides are decimal numbers, so 83.64 does not reach 0.97 x 86.23 = 83.6431. A score that is
    None reaches nothing.
    """
    return score is not None and Decimal(str(score)) >= threshold


def _shortfall(name: str, score: float | None, threshold: Decimal) -> str:
    if score is None:
        return f"{name}: no score, the threshold is {threshold} %"
    points = threshold - Decimal(str(score))
    return f"{name}: {score} % is {points} points below the threshold of {threshold} %"


def _entries(
    path: Path, tables: Mapping[str, Any], key: str, kind: type[_Entry]
) -> tuple[_Entry, ...]:
    rows = tables.get(key, [])
    if not isinstance(rows, list):
        raise GateDataError(f"{path}: write [[{key}]], in double brackets")
    found = []
    for number, row in enumerate(rows, start=1):
        try:
            found.append(kind(**_values(row, kind)))
        except ValueError as error:
            raise GateDataError(f"{path}: [[{key}]] number {number}: {error}") from None
    return tuple(found)


def _values(row: object, kind: type[_Entry]) -> dict[str, Any]:
    """Return the constructor's arguments from a table, each key of it checked."""
    _need(isinstance(row, dict), "it must be a table")
    assert isinstance(row, dict)
    wanted = {field.name: field.type for field in fields(kind)}
    for name in row:
        _need(name in wanted, f"unknown key {name!r}; remove it")
    for name in wanted:
        _need(name in row, f"{name!r} is missing; add it")
    return {name: _typed(name, row[name], wanted[name]) for name in wanted}


def _typed(name: str, value: object, wanted: object) -> object:
    if wanted is Decimal:
        # A TOML integer is as good as a decimal number; true is no number, and nan no score.
        number = Decimal(value) if type(value) is int else value
        _need(isinstance(number, Decimal) and number.is_finite(), f"{name!r} must be a number")
        return number
    if wanted == tuple[str, ...]:
        strings = isinstance(value, list) and all(isinstance(item, str) for item in value)
        _need(strings, f"{name!r} must be a list of strings")
        return tuple(value) if isinstance(value, list) else ()
    _need(isinstance(value, str) and value.strip() != "", f"{name!r} must be a string of text")
    return value


def _check_unambiguous(
    path: Path, references: tuple[Reference, ...], floors: tuple[Floor, ...]
) -> None:
    claims = [(f.dataset, f.selection, "any other model") for f in floors]
    for reference in references:
        models = {reference.id, *reference.gguf_sha256, *map(_plain, reference.gguf_names)}
        claims += [(reference.dataset, reference.selection, model) for model in models]
    for claim, count in Counter(claims).items():
        if count > 1:
            raise GateDataError(f"{path}: {count} entries for {' / '.join(claim)}; keep one")


def _plain(name: str) -> str:
    """Drop what model names differ in for the same model: case, spaces, `-` and `_`."""
    return re.sub(r"[\s_-]+", "", name).casefold()


def _need(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
