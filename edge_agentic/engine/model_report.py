"""Puts together what a GGUF header tells a person about a model: sizes, memory, what it can do."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from operator import itemgetter
from typing import Final

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.text import printable
from edge_agentic.engine.choices import MAX_CONTEXT_TOKENS
from edge_agentic.engine.closed_model import REFERENCE_CONTEXT_TOKENS, closed_checks
from edge_agentic.engine.gguf import GgufInfo
from edge_agentic.engine.gguf_types import Tensor
from edge_agentic.engine.memory_report import memory_report
from edge_agentic.engine.template_facts import TemplateFacts, template_facts

MODEL_REPORT_SCHEMA: Final = "edge-agentic/model/1"


def model_report(info: GgufInfo, context_tokens: int | None = None) -> JsonObject:
    """The report on a model, ready for JSON; a value that is not known is null with a reason.

    Args:
        info: its header.
        context_tokens: length of the context whose memory is worked out; None for the model's
            own, at most the reference's.

    Raises:
        BadInputError: a context length that no context can have.
    """
    if context_tokens is not None and not 1 <= context_tokens <= MAX_CONTEXT_TOKENS:
        raise BadInputError(
            f"--context must be from 1 to {MAX_CONTEXT_TOKENS}, got {context_tokens}"
        )
    reasons: dict[str, str] = {}
    template = template_facts(info.chat_template)
    own_context = info.context_length_tokens
    most = REFERENCE_CONTEXT_TOKENS
    context = context_tokens or min(own_context or most, most)
    _note_missing(info, reasons)
    checks = closed_checks(info, template)
    return {
        "schema": MODEL_REPORT_SCHEMA,
        "file": printable(info.path.name),
        "size_bytes": info.size_bytes,
        "gguf_version": info.version,
        "architecture": info.architecture,
        "name": info.name,
        "part": None if info.part is None else list(info.part),
        "parameters": info.parameter_count,
        "tensors": len(info.tensors),
        "quantisation": _quantisation(info, reasons),
        "context_length_tokens": own_context,
        "template": _template(template, reasons),
        "memory": memory_report(info, context, reasons),
        "closed": {
            "qualifies": all(check.passed is not False for check in checks),
            "checks": [asdict(check) for check in checks],
        },
        "null_reasons": reasons,
    }


def _note_missing(info: GgufInfo, reasons: dict[str, str]) -> None:
    for key, value in (
        ("architecture", info.architecture),
        ("name", info.name),
        ("context_length_tokens", info.context_length_tokens),
    ):
        if value is None:
            reasons[key] = "not in the header"
    if info.part is None:
        reasons["part"] = "the file holds the whole model"


def _quantisation(info: GgufInfo, reasons: dict[str, str]) -> JsonObject:
    """The mix that the file says it is, and the types that its tensors are of."""
    by_type: dict[str, list[Tensor]] = defaultdict(list)
    for tensor in info.tensors:
        by_type[tensor.type.name].append(tensor)
    parameters = info.parameter_count
    data_bytes = info.weights_bytes
    types: list[JsonObject] = []
    for name, tensors in by_type.items():
        count = sum(tensor.elements for tensor in tensors)
        size = sum(tensor.size_bytes for tensor in tensors)
        types.append(
            {
                "type": name,
                "tensors": len(tensors),
                "parameters": count,
                "bytes": size,
                "share_of_parameters": count / max(parameters, 1),
                "share_of_bytes": size / max(data_bytes, 1),
                "bits_per_weight": tensors[0].type.bits_per_weight,
            }
        )
    types.sort(key=itemgetter("parameters"), reverse=True)
    if info.quantisation is None:
        reasons["quantisation.file_type"] = "general.file_type is missing or unknown"
    if not parameters:
        reasons["quantisation.main_type"] = "the file has no weights"
        reasons["quantisation.bits_per_weight"] = "the file has no weights"
    return {
        "file_type": info.quantisation,
        "main_type": types[0]["type"] if parameters else None,
        "bits_per_weight": data_bytes * 8 / parameters if parameters else None,
        "types": types,
    }


def _template(facts: TemplateFacts, reasons: dict[str, str]) -> JsonObject:
    if facts.characters is None:
        reasons["template.characters"] = "the file has no chat template; plain ChatML stands in"
    if facts.problem is not None:
        reasons["template.knows_tools"] = facts.problem
    if facts.tool_format is None:
        reasons["template.tool_format"] = "it asks for a form that this version can't read"
    return {
        "characters": facts.characters,
        "knows_tools": facts.knows_tools,
        "tool_format": None if facts.tool_format is None else facts.tool_format.value,
    }
