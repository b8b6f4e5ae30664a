"""What a model's chat template can do, as far as it shows without a conversation."""

from __future__ import annotations

from dataclasses import dataclass

from edge_agentic.chat.tool_calls import detect_format
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.errors import BadInputError


@dataclass(frozen=True)
class TemplateFacts:
    """Facts of a template; `characters` is None for a file without one.

    `tool_format` is None for calls of a form that can't be read. `knows_tools` is None where it
    can't be told; `problem` says why, and `broken` whether the template is to blame.
    """

    characters: int | None
    tool_format: ToolFormat | None
    knows_tools: bool | None
    problem: str | None = None
    broken: bool = False


def template_facts(source: str | None) -> TemplateFacts:
    """The facts of this template; None stands for a file without one."""
    tool_format = detect_format(source)
    if source is None:
        return TemplateFacts(None, tool_format, knows_tools=False)
    try:
        # Imported here: Jinja comes with the in-process engine, and may be absent.
        from edge_agentic.chat.template import ChatTemplate

        knows_tools = ChatTemplate(source).knows_tools
    except ImportError:
        remedy = "Jinja is not installed; run: pip install 'edge-agentic[llamacpp]'"
        return TemplateFacts(len(source), tool_format, None, remedy)
    except BadInputError as error:
        return TemplateFacts(len(source), tool_format, None, str(error), broken=True)
    return TemplateFacts(len(source), tool_format, knows_tools)
