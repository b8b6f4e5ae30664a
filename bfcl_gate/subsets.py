"""Name the subsets of BFCL v4 single turn, and how each is judged and counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

LanguageName = Literal["python", "java", "javascript"]


class Category(Enum):
    """A group of subsets that has a score of its own."""

    NON_LIVE = "non_live"
    LIVE = "live"
    HALLUCINATION = "hallucination"


class Rule(Enum):
    """What makes an answer right."""

    SIMPLE = "simple"
    """Exactly one call, of the only function offered."""
    MULTIPLE = "multiple"
    """Exactly one call, of the right function among several."""
    PARALLEL = "parallel"
    """As many calls as expected, in any order."""
    NO_CALL = "no_call"
    """No call: no function offered can help."""
    ANY_CALL = "any_call"
    """At least one call, whatever its arguments."""

    @property
    def has_ground_truth(self) -> bool:
        """Whether a case of this rule lists the expected calls."""
        return self not in (Rule.NO_CALL, Rule.ANY_CALL)


@dataclass(frozen=True)
class Subset:
    """One subset: `category` is None where no aggregate counts it."""

    name: str
    category: Category | None
    rule: Rule
    language: LanguageName = "python"


SUBSETS: Final[Mapping[str, Subset]] = {
    subset.name: subset
    for subset in (
        Subset("simple_python", Category.NON_LIVE, Rule.SIMPLE),
        Subset("simple_java", Category.NON_LIVE, Rule.SIMPLE, "java"),
        Subset("simple_javascript", Category.NON_LIVE, Rule.SIMPLE, "javascript"),
        Subset("multiple", Category.NON_LIVE, Rule.MULTIPLE),
        Subset("parallel", Category.NON_LIVE, Rule.PARALLEL),
        Subset("parallel_multiple", Category.NON_LIVE, Rule.PARALLEL),
        Subset("live_simple", Category.LIVE, Rule.SIMPLE),
        Subset("live_multiple", Category.LIVE, Rule.MULTIPLE),
        Subset("live_parallel", Category.LIVE, Rule.PARALLEL),
        Subset("live_parallel_multiple", Category.LIVE, Rule.PARALLEL),
        Subset("irrelevance", Category.HALLUCINATION, Rule.NO_CALL),
        Subset("live_irrelevance", Category.HALLUCINATION, Rule.NO_CALL),
        Subset("live_relevance", None, Rule.ANY_CALL),
    )
}
"""Every subset by name, in the order of the published tables."""


def subset_of(case_id: str) -> Subset:
    """Return the subset that a case id names: `live_multiple_17-4-9` is of `live_multiple`.

    Raises:
        ValueError: The id starts with the name of no subset.
    """
    # The longest name wins: `parallel` is also how `parallel_multiple_3` starts.
    names = [name for name in SUBSETS if case_id.startswith(f"{name}_")]
    if not names:
        raise ValueError(f"case id {case_id!r} starts with the name of no BFCL subset")
    return SUBSETS[max(names, key=len)]
