"""Finds what in a gate's journal does not follow from its answers, or is not what it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bfcl_gate.answers import Answer
from bfcl_gate.cases import Dataset
from bfcl_gate.checker import check
from bfcl_gate.early import shuffled
from bfcl_gate.references import load_references
from bfcl_gate.selection import PART, ids_sha256, select
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.outcome import Outcome
from edge_agentic.measure.gate_reference import reference_from_json
from edge_agentic.run.gate_sets import find_gate_set, named_sha256

_JOURNAL: Final = "journal.jsonl:"


def gate_findings(manifest: Mapping[str, Any], events: Sequence[JsonObject]) -> Iterator[str]:
    """What can be told without the data set: names, reference, order, answers that can't be."""
    started = _started(events)
    if started is None:
        return
    yield from _manifest_findings(manifest, started)
    known = named_sha256(started["dataset"])
    if known is not None and started["dataset_sha256"] != known:
        yield f"{_JOURNAL} the gate's data set is not the '{started['dataset']}' that it is called"
    yield from _reference_findings(manifest, started)
    yield from _order_findings(started, events)
    for event in events:
        if event["event"] == "gate_case":
            yield from _answer_findings(event)


def verdict_findings(events: Sequence[JsonObject]) -> Iterator[str] | None:
    """What the data set tells: its name, the selection, each verdict from the raw answer.

    None where the data set is not on this machine.
    """
    started = _started(events)
    if started is None:
        return iter(())
    dataset = find_gate_set(started["dataset_sha256"])
    return None if dataset is None else _verdict_findings(dataset, started, events)


def dataset_name(events: Sequence[JsonObject]) -> str:
    """What the journal calls the gate's data set."""
    started = _started(events)
    return "" if started is None else str(started["dataset"])


def _started(events: Sequence[JsonObject]) -> JsonObject | None:
    return next((event for event in events if event["event"] == "gate_started"), None)


def _manifest_findings(manifest: Mapping[str, Any], started: JsonObject) -> Iterator[str]:
    """The manifest names the data set, samples and early stop that the journal holds."""
    datasets, settings = manifest.get("datasets"), manifest.get("settings")
    named = datasets.get("gate") if isinstance(datasets, Mapping) else None
    if not isinstance(named, Mapping):
        named = {}
    asked = {
        "name": started["dataset"],
        "sha256": started["dataset_sha256"],
        "selection": started["selection"],
        "samples": len(started["sample_ids"]),
    }
    if any(named.get(key) != value for key, value in asked.items()):
        yield f"{_JOURNAL} the gate used another data set than manifest.json names"
    rate = started.get("early_stop_error_rate")
    # The manifest's digest is of the selection's own order; an early stop shuffles it.
    if rate is None and named.get("samples_sha256") != ids_sha256(started["sample_ids"]):
        yield f"{_JOURNAL} the gate's samples are not those that manifest.json names"
    if not isinstance(settings, Mapping) or settings.get("gate_early_stop_error_rate") != rate:
        yield f"{_JOURNAL} the gate's early stop is not the one that manifest.json names"


def _reference_findings(manifest: Mapping[str, Any], started: JsonObject) -> Iterator[str]:
    model = manifest.get("model")
    facts = model if isinstance(model, Mapping) else {}
    reference = None
    if started["selection"] != PART:
        reference = load_references().find(
            started["dataset"],
            started["selection"],
            gguf_sha256=facts.get("sha256"),
            gguf_name=facts.get("name"),
        )
    recorded = started["reference"]
    if (recorded and reference_from_json(recorded, "journal.jsonl")) != reference:
        yield f"{_JOURNAL} the gate was held to another reference than the bundled one"


def _order_findings(started: JsonObject, events: Sequence[JsonObject]) -> Iterator[str]:
    """Cases come once each, in the order of the samples, before the gate's end."""
    asked = [event["sample_id"] for event in events if event["event"] == "gate_case"]
    if asked != started["sample_ids"][: len(asked)]:
        yield f"{_JOURNAL} the gate's cases are not recorded once each, in the order of its samples"
    kinds = [event["event"] for event in events if event["event"].startswith("gate_")]
    if "gate_finished" in kinds[:-1]:
        yield f"{_JOURNAL} the gate goes on after its end"


def _answer_findings(event: JsonObject) -> Iterator[str]:
    """A request that went well has an answer; any other has none, and is not right."""
    answer = Answer(event.get("tool_calls"), event.get("text"))
    failed = event["outcome"] != Outcome.OK.value
    if answer.missing != failed or (failed and event["valid"]):
        yield (
            f"{_JOURNAL} gate case '{event['sample_id']}': outcome '{event['outcome']}' "
            "does not go with its answer"
        )


def _verdict_findings(
    dataset: Dataset, started: JsonObject, events: Sequence[JsonObject]
) -> Iterator[str]:
    if dataset.name != started["dataset"]:
        yield f"{_JOURNAL} the gate's data set is called '{started['dataset']}', not by its name"
    else:
        yield from _selection_findings(dataset, started)
    cases = {case.id: case for case in dataset.cases}
    for event in events:
        if event["event"] != "gate_case":
            continue
        case = cases.get(event["sample_id"])
        if case is None:
            yield f"{_JOURNAL} gate case '{event['sample_id']}' is not in the data set"
            continue
        verdict = check(case, Answer(event.get("tool_calls"), event.get("text")))
        if (verdict.valid, verdict.error_type) != (event.get("valid"), event.get("error_type")):
            yield (
                f"{_JOURNAL} gate case '{case.id}': recorded valid={event.get('valid')}, "
                f"its answer gives {verdict.valid}"
            )
        if verdict.disputed and not event.get("malformed"):
            yield f"{_JOURNAL} gate case '{case.id}': its malformed call is not marked"


def _selection_findings(dataset: Dataset, started: JsonObject) -> Iterator[str]:
    """The samples are those that the selection's name promises, in one of the two orders."""
    if started["selection"] == PART:
        return
    whole = select(dataset, started["selection"]).sample_ids
    is_shuffled = started.get("early_stop_error_rate") is not None
    if tuple(started["sample_ids"]) != (shuffled(whole) if is_shuffled else whole):
        yield f"{_JOURNAL} the samples are not those of '{started['selection']}'"
