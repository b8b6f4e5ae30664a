"""Tool use for models whose chat template has no tools: plain text in, JSON calls out.

Tools go into the system message as JSON. A call is written as one JSON object
`{"name": …, "arguments": {…}}`, several calls as a list of them. A tool's result comes back
as a user message between `<tool_response>` tags.
"""

from __future__ import annotations

from collections.abc import Sequence

from edge_agentic.core.jsonio import JsonObject, dump_line
from edge_agentic.core.messages import Message, ToolSpec, call_arguments, text_content

DECLINE_NAME = "no_suitable_function"
"""Reserved function: a constrained answer calls it to say that no offered function fits.

The instructions don't offer it: small models that read of it decline nearly everything.
"""


def instructions(tools: Sequence[ToolSpec]) -> str:
    """The part of the system message that offers the tools and says how to call them."""
    functions = "\n".join(dump_line(tool.get("function", tool)) for tool in tools)
    return (
        "You can call these functions:\n"
        f"{functions}\n"
        'To call one, answer only with JSON: {"name": "<function>", "arguments": {<arguments>}}\n'
        "To call several, answer with a JSON list of such objects."
    )


def flatten(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Message]:
    """The same conversation with plain `role` and `content` only.

    Args:
        messages: the conversation in the shape of the OpenAI chat API.
        tools: the offered tools; empty leaves the system message as it is.
    """
    flat = [_flatten_one(message) for message in messages]
    if not tools:
        return flat
    offer = instructions(tools)
    if flat and flat[0]["role"] == "system":
        return [{"role": "system", "content": f"{flat[0]['content']}\n\n{offer}"}, *flat[1:]]
    return [{"role": "system", "content": offer}, *flat]


def _flatten_one(message: Message) -> Message:
    role, content = message.get("role"), text_content(message)
    if role == "tool":
        return {"role": "user", "content": f"<tool_response>\n{content}\n</tool_response>"}
    calls = message.get("tool_calls") or []
    if calls:
        rendered = [_render_call(call.get("function") or {}) for call in calls]
        body = dump_line(rendered[0] if len(rendered) == 1 else rendered)
        content = f"{content}\n{body}" if content else body
    return {"role": role, "content": content}


def _render_call(function: JsonObject) -> JsonObject:
    arguments = call_arguments(function)
    return {
        "name": function.get("name"),
        "arguments": function.get("arguments") if arguments is None else dict(arguments),
    }
