"""The gate's reference as the journal keeps it, so that an old run is judged as it was then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any, cast

from bfcl_gate.references import Floor, Reference, ToolGrammar
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.measure.fields import Fields


def reference_to_json(reference: Reference | Floor) -> JsonObject:
    """The JSON object of a reference or a floor, told apart by `kind`; scores are numbers."""
    kind = "reference" if isinstance(reference, Reference) else "floor"
    values = {
        name: float(value) if isinstance(value, Decimal) else value
        for name, value in asdict(reference).items()
    }
    return {"kind": kind, **values}


def reference_from_json(values: Mapping[str, Any], where: str) -> Reference | Floor:
    """The reference or floor that `reference_to_json` wrote; `where` starts each complaint.

    Raises:
        BadInputError: a field is missing or of the wrong type.
        ValueError: a value that no reference can have.
    """
    fields = Fields(values, where)
    kind = fields.text("kind")
    if kind == "floor":
        return Floor(
            dataset=fields.text("dataset"),
            selection=fields.text("selection"),
            overall=_decimal(fields, "overall"),
            reason=fields.text("reason"),
        )
    if kind != "reference":
        raise fields.error("'kind' must be 'reference' or 'floor'")
    return Reference(
        id=fields.text("id"),
        name=fields.text("name"),
        gguf_sha256=fields.texts("gguf_sha256"),
        gguf_names=fields.texts("gguf_names"),
        quantisation=fields.text("quantisation"),
        dataset=fields.text("dataset"),
        selection=fields.text("selection"),
        overall=_decimal(fields, "overall"),
        normalized=_decimal(fields, "normalized"),
        factor=_decimal(fields, "factor"),
        # The constructor refuses any other word.
        tool_grammar=cast(ToolGrammar, fields.text("tool_grammar")),
        provenance=fields.text("provenance"),
    )


def _decimal(fields: Fields, name: str) -> Decimal:
    """The decimal that was written: thresholds are exact products of what a person reads."""
    return Decimal(str(fields.number(name)))
