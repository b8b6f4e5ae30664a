"""Which cases of a set are asked: the official ones, all, or a part that has no verdict."""

from collections import Counter
from pathlib import Path

import pytest

from bfcl_gate.cases import Case, Dataset, gate_mini, load_dataset
from bfcl_gate.errors import GateDataError
from bfcl_gate.official import DATASET_SHA256, NAME, official_ids, official_selection
from bfcl_gate.selection import PART, select
from bfcl_gate.subsets import subset_of


def cases(subset: str, count: int) -> tuple[Case, ...]:
    return tuple(
        Case(f"{subset}_{index}", subset, ({"role": "user", "content": "hi"},), ())
        for index in range(count)
    )


@pytest.mark.parametrize(
    ("subset", "total", "asked"),
    [
        ("irrelevance", 240, 24),
        ("live_irrelevance", 884, 88),
        ("live_irrelevance", 25, 25),
        ("live_irrelevance", 26, 2),
        ("live_relevance", 16, 0),
    ],
)
def test_the_official_selection_takes_the_first_of_each_subset(
    subset: str, total: int, asked: int
) -> None:
    assert official_selection(cases(subset, total)) == cases(subset, total)[:asked]


def test_the_official_selection_has_995_samples_of_every_gated_subset() -> None:
    assert Counter(subset_of(sample_id).name for sample_id in official_ids()) == {
        "simple_python": 248,
        "simple_java": 62,
        "simple_javascript": 31,
        "multiple": 124,
        "parallel": 124,
        "parallel_multiple": 124,
        "live_simple": 25,
        "live_multiple": 105,
        "live_parallel": 16,
        "live_parallel_multiple": 24,
        "irrelevance": 24,
        "live_irrelevance": 88,
    }
    assert len(set(official_ids())) == 995


def test_the_rule_gives_the_bundled_list_on_the_official_data(official_bfcl: Path) -> None:
    dataset = load_dataset(official_bfcl, name=NAME)
    assert (len(dataset.cases), dataset.sha256) == (3641, DATASET_SHA256)
    chosen = select(dataset)
    assert (chosen.name, chosen.sample_ids) == ("official", official_ids())
    assert select(dataset, "all").sample_ids == tuple(case.id for case in dataset.cases)


def test_a_set_of_ones_own_is_asked_whole_in_file_order() -> None:
    mini = gate_mini()
    assert select(mini).name == "all"
    assert select(mini).cases == mini.cases


def test_a_limit_takes_from_the_subsets_in_turn_and_keeps_the_order() -> None:
    dataset = Dataset("own", "0" * 64, cases("irrelevance", 5) + cases("live_irrelevance", 2))
    chosen = select(dataset, limit=5)
    assert chosen.name == PART
    assert chosen.sample_ids == (
        "irrelevance_0",
        "irrelevance_1",
        "irrelevance_2",
        "live_irrelevance_0",
        "live_irrelevance_1",
    )


def test_what_leaves_nothing_out_is_no_part() -> None:
    mini = gate_mini()
    every = {case.subset for case in mini.cases}
    assert select(mini, subsets=every, limit=len(mini.cases)).name == "all"
    assert select(mini, subsets=["irrelevance"]).name == PART
    assert {c.subset for c in select(mini, subsets=["irrelevance"]).cases} == {"irrelevance"}


@pytest.mark.parametrize(
    ("base", "subsets", "limit", "said"),
    [
        ("official", (), None, "'official' is one of bfcl-v4, not of 'gate-mini'; use all"),
        ("half", (), None, "no selection 'half'; use all or official"),
        (None, ("simple",), None, "subset 'simple' has no case in gate-mini, all; there are: "),
        (None, (), 0, "the limit must be at least 1, got 0"),
    ],
)
def test_a_choice_that_cannot_be_names_what_can(
    base: str | None, subsets: tuple[str, ...], limit: int | None, said: str
) -> None:
    with pytest.raises(GateDataError, match=said):
        select(gate_mini(), base, subsets=subsets, limit=limit)
