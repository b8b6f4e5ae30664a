from __future__ import annotations

import json

import pytest

from bfcl_gate.references import Floor, Reference, load_references
from edge_agentic.measure.gate_reference import reference_from_json, reference_to_json

_BUNDLED = load_references()


@pytest.mark.parametrize("reference", [*_BUNDLED.references, *_BUNDLED.floors], ids=repr)
def test_a_reference_read_from_a_journal_has_the_same_exact_thresholds(
    reference: Reference | Floor,
) -> None:
    kept = json.loads(json.dumps(reference_to_json(reference)))
    again = reference_from_json(kept, "journal.jsonl:2")
    assert again == reference
    assert again.thresholds() == reference.thresholds()
