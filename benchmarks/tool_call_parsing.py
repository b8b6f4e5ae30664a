"""Whether parsing tool calls takes time in proportion to the text, on texts made to break that.

Each unit is repeated to a text of the given size and to one eight times as long. The ratio of
the times per character is 1 where the time is linear in the length, and 8 where it is quadratic.

    python benchmarks/tool_call_parsing.py [--characters 25000] [--repeats 3] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import TypedDict

from edge_agentic.chat.tool_calls import call_starts, parse
from edge_agentic.chat.tool_format import ToolFormat

FACTOR = 8
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}},
        },
    }
]
XML_CALL = "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>\n"
JSON_CALL = '{"name": "f", "arguments": {"x": 1}}'
COMMON = (
    *(JSON_CALL + between for between in ("\n", "; ", "</tool_call>", "<tool_call>")),
    '{"name": "f", "arguments": {"x": 1} ',
    '{"name": "f", "arguments": {"x": 1,}}, ',
    '{"name":',
    '{"a":[',
    '{"a',
    '[{"',
    "<think>",
    "</think>",
    "```json\n",
    "```json\n{ ",
    " \n",
)
UNITS = {
    ToolFormat.HERMES: (f"<tool_call>{JSON_CALL}</tool_call>", '<tool_call>[",",', "</tool_call>"),
    ToolFormat.QWEN3_XML: (
        XML_CALL,
        "<tool_call>\n<function=f>\n<parameter=x>\n1",
        "<tool_call>\n<function=zz>\n<parameter=x>\n1\n</parameter>\ntext",
        "<function=zz><parameter=zz></parameter>text",
        "<parameter=x>",
        "<parameter=x></parameter>text",
        "<parameter=",
        "<function=f>",
        "<function= ",
        "</parameter>",
    ),
    ToolFormat.GLM: (
        "<tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>",
        "<tool_call>zz<arg_key>x</arg_key><arg_value>1</arg_value>text",
        "<arg_key>x</arg_key><arg_value>",
        "<arg_key>",
    ),
    ToolFormat.GPT_OSS: (
        "<|start|>assistant to=",
        "<|channel|>analysis<|message|>",
        "<|channel|>a",
    ),
    ToolFormat.GEMMA4: ('<|tool_call>call:f{x:<|"|>', "<|tool_call>call:f{x:1}<tool_call|>", ",a "),
    ToolFormat.MISTRAL: ("[TOOL_CALLS]f[ARGS]", f"[TOOL_CALLS]f[ARGS]{JSON_CALL}"),
}


class Row(TypedDict):
    """What one text took."""

    format: str
    unit: str
    ratio: float
    characters_per_s: int


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--characters", type=int, default=25_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [
        _measure(tool_format, unit, arguments.characters, arguments.repeats)
        for tool_format in ToolFormat
        for unit in _units(tool_format)
    ]
    worst = max(rows, key=lambda row: row["ratio"])
    result = {
        "characters": arguments.characters,
        "texts": len(rows),
        "worst_ratio": worst["ratio"],
        "worst_text": f"{worst['format']}: {worst['unit']!r} repeated",
        "slowest_characters_per_s": min(row["characters_per_s"] for row in rows),
        "each": rows,
    }
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    for row in rows:
        print(f"{row['format']:<16} {row['ratio']:5.2f}  {row['unit']!r}")
    for name in ("texts", "worst_ratio", "worst_text", "slowest_characters_per_s"):
        print(f"{name:<26} {result[name]}")


def _units(tool_format: ToolFormat) -> Sequence[str]:
    starts = call_starts(tool_format)
    opened = [start + rest for start in starts for rest in ("", "{", '{"name":', '{"a', JSON_CALL)]
    return tuple(dict.fromkeys((*COMMON, *opened, *UNITS.get(tool_format, ()))))


def _measure(tool_format: ToolFormat, unit: str, characters: int, repeats: int) -> Row:
    short = unit * (characters // len(unit) + 1)
    long = short * FACTOR
    short_s = min(_time_s(tool_format, short) for _ in range(repeats))
    long_s = min(_time_s(tool_format, long) for _ in range(repeats))
    return {
        "format": tool_format.value,
        "unit": unit,
        "ratio": round(long_s / FACTOR / short_s, 2),
        "characters_per_s": round(len(long) / long_s),
    }


def _time_s(tool_format: ToolFormat, text: str) -> float:
    start_ns = time.process_time_ns()
    parse(text, tool_format, id_prefix="call", tools=TOOLS)
    return (time.process_time_ns() - start_ns) / 1e9


if __name__ == "__main__":
    main()
