"""Choose which cases of a data set are asked."""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Final

from bfcl_gate import official
from bfcl_gate.cases import Case, Dataset
from bfcl_gate.errors import GateDataError

ALL: Final = "all"
PART: Final = "part"
"""The name of every selection that the user made up: it has no reference, so no verdict."""


@dataclass(frozen=True)
class Selection:
    """The cases to ask, in order.

    `base` names the whole that they were taken from, `name` is `base` or `part`. A part is asked
    in the manner of its whole (its reference says how calls are decoded), and never judged.
    """

    dataset: Dataset
    base: str
    name: str
    cases: tuple[Case, ...]

    def __post_init__(self) -> None:
        if not self.cases:
            raise ValueError("a selection needs at least one case")
        if self.name not in (self.base, PART):
            raise ValueError(f"a selection from {self.base!r} can't be called {self.name!r}")

    @property
    def sample_ids(self) -> tuple[str, ...]:
        """The ids of the cases, in order."""
        return tuple(case.id for case in self.cases)

    @property
    def sha256(self) -> str:
        """The digest of the ids, one a line, in order."""
        return ids_sha256(self.sample_ids)


def ids_sha256(sample_ids: Iterable[str]) -> str:
    """Return the SHA-256 of ids, one a line, in order."""
    return hashlib.sha256("".join(f"{id_}\n" for id_ in sample_ids).encode()).hexdigest()


def select(
    dataset: Dataset,
    base: str | None = None,
    *,
    subsets: Collection[str] = (),
    limit: int | None = None,
) -> Selection:
    """Choose cases of `dataset`, in its own order.

    Args:
        dataset: The cases to choose from.
        base: `official` or `all`; by default `official` of BFCL v4, `all` of any other set.
        subsets: Of these subsets only; of all where there is none.
        limit: At most so many cases, taken from the subsets in turn.

    Raises:
        GateDataError: `base` does not exist for the data set, a subset is unknown or has no case
            there, or the limit is below 1.
    """
    if base is None:
        base = official.SELECTION if dataset.name == official.NAME else ALL
    cases = _base(dataset, base)
    chosen = cases
    if subsets:
        present = dict.fromkeys(case.subset for case in cases)
        for name in subsets:
            if name not in present:
                raise GateDataError(
                    f"subset {name!r} has no case in {dataset.name}, {base}; "
                    f"there are: {', '.join(present)}"
                )
        chosen = tuple(case for case in cases if case.subset in subsets)
    if limit is not None:
        if limit < 1:
            raise GateDataError(f"the limit must be at least 1, got {limit}")
        ids = {case.id for case in islice(_in_turn(chosen), min(limit, len(chosen)))}
        chosen = tuple(case for case in chosen if case.id in ids)
    return Selection(dataset, base, base if chosen == cases else PART, chosen)


def _base(dataset: Dataset, base: str) -> tuple[Case, ...]:
    if base == ALL:
        return dataset.cases
    if base != official.SELECTION:
        raise GateDataError(f"no selection {base!r}; use {ALL} or {official.SELECTION}")
    if dataset.name != official.NAME:
        raise GateDataError(
            f"the selection {base!r} is one of {official.NAME}, not of {dataset.name!r}; use {ALL}"
        )
    return official.official_selection(dataset.cases)


def _in_turn(cases: Collection[Case]) -> Iterator[Case]:
    """Yield the first case of each subset, then the second of each, and so on."""
    by_subset: dict[str, list[Case]] = {}
    for case in cases:
        by_subset.setdefault(case.subset, []).append(case)
    for row in zip_longest(*by_subset.values()):
        yield from (case for case in row if case is not None)
