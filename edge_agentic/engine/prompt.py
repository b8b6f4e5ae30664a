"""A rendered and tokenised conversation, and where its stable prefix ends.

The stable prefix is the conversation without the prompt to answer: what the next turn's prompt
starts with, whatever the model answers now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from edge_agentic.chat.template import ChatTemplate
from edge_agentic.core.clock import Clock, monotonic_ns
from edge_agentic.core.messages import Message, ToolSpec
from edge_agentic.engine.gguf import GgufInfo
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.prefix_cache import common_prefix

_MARGIN_TOKENS: Final = 4


@dataclass(frozen=True)
class Prompt:
    """A prompt: its text, its tokens, and how much of both is stable.

    stable_characters is only None, and stable_tokens is all tokens, if it was not asked for.
    """

    text: str
    tokens: Sequence[int]
    stable_characters: int | None
    stable_tokens: int


def model_template(
    info: GgufInfo, model: LlamaModel, *, reasoning: bool, clock: Clock = monotonic_ns
) -> ChatTemplate:
    """A model's own chat template, or ChatML for a file without one.

    Raises:
        BadInputError: the template is not valid Jinja.
    """
    return ChatTemplate(
        info.chat_template,
        reasoning=reasoning,
        bos_token=model.bos_token,
        eos_token=model.eos_token,
        clock=clock,
    )


def build_prompt(
    template: ChatTemplate,
    model: LlamaModel,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    *,
    find_stable: bool,
) -> Prompt:
    """Render and tokenise a conversation.

    Args:
        template: its chat template.
        model: whose vocabulary the tokens are of.
        messages: the conversation.
        tools: the offered tools.
        find_stable: also find the stable prefix, which renders the conversation once more.

    Raises:
        BadInputError: the template fails on the conversation.
    """
    text = template.render(messages, tools)
    tokens = model.tokenize(text)
    if not find_stable:
        return Prompt(text, tokens, None, len(tokens))
    stable_text = template.render(messages, tools, add_generation_prompt=False)
    characters = _common_characters(text, stable_text)
    return Prompt(text, tokens, characters, _stable_tokens(model, tokens, text, characters))


def _common_characters(text: str, stable_text: str) -> int:
    if text.startswith(stable_text):
        return len(stable_text)
    pairs = zip(text, stable_text, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(text), len(stable_text)))


def _stable_tokens(
    model: LlamaModel, tokens: Sequence[int], text: str, stable_characters: int
) -> int:
    """How many tokens the next prompt will share, whatever text follows the stable prefix.

    A token that stands alone keeps merges on its own side. At any other place the text that
    follows may be merged with the last tokens, so the boundary steps back a little.
    """
    rest = model.tokenize_part(text[stable_characters:])
    if rest and model.stands_alone(rest[0]) and list(tokens[-len(rest) :]) == rest:
        return len(tokens) - len(rest)
    boundary = common_prefix(tokens, model.tokenize(text[:stable_characters]))
    if boundary > 0 and model.stands_alone(tokens[boundary - 1]):
        return boundary
    return max(boundary - _MARGIN_TOKENS, 0)
