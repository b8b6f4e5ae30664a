"""Name the official data set and the samples of it that MLPerf's gate asks."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from bfcl_gate.cases import Case
from bfcl_gate.subsets import SUBSETS, Category

NAME: Final = "bfcl-v4"
"""The data set: the single-turn data of BFCL v4 as the package bfcl-eval 2026.3.23 has it."""

DATASET_SHA256: Final = "c11f4d15256b9a5089064bd3cdad9dcd157130b8250fa17e02f78832e1e11015"
"""`Dataset.sha256` of all thirteen subsets."""

SELECTION: Final = "official"

SELECTION_SHA256: Final = "967e01da0aa09c9e1dfea71e7bca24e8f145d2a463eea152b2964f098a3b5ce8"
"""Of the bundled list of the selected ids, one a line, in the order of the subsets and files."""

_PERCENT: Final[Mapping[Category, int]] = {
    Category.NON_LIVE: 62,
    Category.LIVE: 10,
    Category.HALLUCINATION: 10,
}
_ALWAYS_WHOLE: Final = 25
"""A subset of at most so many cases is taken whole."""

_IDS: Final = Path(__file__).parent / "data" / "official_ids.txt"


def official_selection(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Return the cases that the official gate asks: the first of each subset, 995 of BFCL v4.

    Of a subset of more than 25 cases the first int(total x percent / 100) are taken, in file
    order, with 62 % of non_live, 10 % of live and 10 % of hallucination; a smaller subset is taken
    whole, one without a category not at all. Source: MLPerf Inference v6.1 edge-agentic, whose
    code decides where its text gives other numbers.
    """
    cases = tuple(cases)
    left = {name: _quota(name, total) for name, total in Counter(c.subset for c in cases).items()}
    chosen = []
    for case in cases:
        if left[case.subset] > 0:
            left[case.subset] -= 1
            chosen.append(case)
    return tuple(chosen)


@cache
def official_ids() -> tuple[str, ...]:
    """Return the ids of the official selection; needs no data set.

    Raises:
        RuntimeError: The bundled list was changed.
    """
    raw = _IDS.read_bytes()
    if hashlib.sha256(raw).hexdigest() != SELECTION_SHA256:
        raise RuntimeError(f"{_IDS}: is not the list that comes with this version")
    return tuple(raw.decode().split())


def _quota(subset: str, total: int) -> int:
    category = SUBSETS[subset].category
    if category is None:
        return 0
    if total <= _ALWAYS_WHOLE:
        return total
    return total * _PERCENT[category] // 100
