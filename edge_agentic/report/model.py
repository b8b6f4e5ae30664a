"""Shows a model's report to a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.text import one_line

_VERDICTS: Final = {True: "pass", False: "FAIL", None: "  ? "}


def render_model(report: JsonObject) -> Iterator[str]:
    """Yield the lines about a model, from what `engine.model_report` made.

    Text that came from the file is printed as plain characters: it can't steer the terminal.
    """
    for line in _lines(report):
        yield one_line(line)


def _lines(report: JsonObject) -> Iterator[str]:
    yield report["file"]
    yield from _pairs(_facts(report))
    yield ""
    yield from _table(
        ("type", "tensors", "parameters", "share", "bytes", "share", "bits/weight"),
        (
            (
                row["type"],
                row["tensors"],
                row["parameters"],
                f"{row['share_of_parameters']:.1%}",
                _size(row["bytes"]),
                f"{row['share_of_bytes']:.1%}",
                f"{row['bits_per_weight']:.2f}",
            )
            for row in report["quantisation"]["types"]
        ),
    )
    yield ""
    yield from _memory(report)
    yield ""
    yield from _closed(report["closed"])


def _facts(report: JsonObject) -> Iterator[tuple[str, str]]:
    reasons = report["null_reasons"]
    quantisation, template = report["quantisation"], report["template"]
    yield "architecture", _known(report["architecture"], "architecture", reasons)
    yield "name", _known(report["name"], "name", reasons)
    parameters = f"{_count(report['parameters'])} in {report['tensors']} tensors"
    if report["part"]:
        parameters += " of part {} of {}".format(*report["part"])
    yield "parameters", parameters
    yield "file type", _known(quantisation["file_type"], "quantisation.file_type", reasons)
    mean = quantisation["bits_per_weight"]
    mix = (
        None if mean is None else f"{mean:.2f} bits per weight, mostly {quantisation['main_type']}"
    )
    yield "weights", _known(mix, "quantisation.bits_per_weight", reasons)
    own = report["context_length_tokens"]
    context = None if own is None else f"{own} tokens"
    yield "own context", _known(context, "context_length_tokens", reasons)
    length = template["characters"]
    own_template = None if length is None else f"{length} characters"
    yield "chat template", _known(own_template, "template.characters", reasons)
    knows = {True: "yes", False: "no", None: None}[template["knows_tools"]]
    yield "  knows tools", _known(knows, "template.knows_tools", reasons)
    yield "  tool format", _known(template["tool_format"], "template.tool_format", reasons)


def _memory(report: JsonObject) -> Iterator[str]:
    memory, reasons = report["memory"], report["null_reasons"]
    yield f"Memory with a context of {memory['context_tokens']} tokens"
    facts = [("kind", _known(memory["kind"], "memory.kind", reasons))]
    for label, key in (("weights", "weights_bytes"), ("recurrent state", "recurrent_state_bytes")):
        size = memory[key]
        facts.append(
            (label, _known(None if size is None else _size(size), f"memory.{key}", reasons))
        )
    if memory["window_tokens"] is not None:
        facts.append(("sliding window", f"{memory['window_tokens']} tokens"))
    if memory["next_token_layers"]:
        count = memory["next_token_layers"]
        facts.append(("draft layers", f"{count}, whose own context is not counted"))
    yield from _pairs(facts)
    yield from _caches(memory)


def _caches(memory: JsonObject) -> Iterator[str]:
    if memory["caches"] is None:
        return
    kinds = [("KV cache", memory["caches"])]
    if memory["windowed_caches"] is not None:
        kinds.append(("KV windowed", memory["windowed_caches"]))
    header = ["cache type", *(word for label, _ in kinds for word in (label, "with all"))]
    rows = []
    for cache_type in memory["caches"]:
        row: list[Any] = [cache_type]
        for _, caches in kinds:
            cache = caches[cache_type] or {"kv_bytes": None, "total_bytes": None}
            row += [_size(cache["kv_bytes"]), _size(cache["total_bytes"])]
        rows.append(row)
    yield from _table(header, rows)


def _closed(closed: JsonObject) -> Iterator[str]:
    verdict = "can take this model" if closed["qualifies"] else "can't take this model"
    yield f"The closed division {verdict}"
    for check in closed["checks"]:
        line = f"  {_VERDICTS[check['passed']]}  {check['name']}: {check['found']}"
        yield line if check["passed"] else f"{line} (needed: {check['needed']})"


def _known(value: str | None, place: str, reasons: JsonObject) -> str:
    """The value, or "-" and why it is missing."""
    return f"- ({reasons[place]})" if value is None else value


def _count(number: int) -> str:
    return f"{number / 1e9:.2f} billion" if number >= 1e9 else f"{number / 1e6:.2f} million"


def _size(size_bytes: int | None) -> str:
    if size_bytes is None:
        return "-"
    if size_bytes >= 2**30:
        return f"{size_bytes / 2**30:.2f} GiB"
    return f"{size_bytes / 2**20:.2f} MiB"


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for label, value in pairs:
        yield f"  {label:<16} {value}"


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Columns as wide as they must be; the first is text, the others are figures."""
    lines = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        figures = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([f"  {first:<{widths[0]}}", *figures])
