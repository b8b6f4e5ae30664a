"""Puts together what a model is given at one turn of a recorded conversation."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from edge_agentic.chat.template import ChatTemplate
from edge_agentic.chat.tool_calls import detect_format
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.text import one_line, printable
from edge_agentic.engine.gguf import read_gguf
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.prefix_cache import common_prefix
from edge_agentic.engine.prompt import Prompt, build_prompt, model_template
from edge_agentic.trace.conversation import Conversation, request_messages
from edge_agentic.trace.pack import TracePack

PROMPT_REPORT_SCHEMA: Final = "edge-agentic/prompt/1"

_MAX_NAMED: Final = 5
_NO_TOKENIZER: Final = (None, "none", "no_vocab")


def prompt_report(
    path: Path, pack: TracePack, conversation_id: str, turn: int, *, reasoning: bool = False
) -> JsonObject:
    """The prompt of a turn, its tokens, and how much of it the turns around it share.

    `stable_tokens` and `stable_characters` are the stable prefix, with which the next prompt
    will start. `new_tokens` is the ideal prefill: what this prompt has beyond its common prefix
    with the prompt of the turn before; all of it in the first turn.

    Args:
        path: a GGUF file; only its vocabulary is loaded.
        pack: where the conversation is.
        conversation_id: its id.
        turn: the generated turn, from 1.
        reasoning: ask the template for reasoning.

    Raises:
        BadInputError: no such conversation or turn, a file that is no model, a model without a
            tokenizer, or a template that fails on the conversation.
    """
    conversation = _conversation(pack, conversation_id)
    if not 1 <= turn <= len(conversation.turns):
        raise BadInputError(
            f"{pack.name}: conversation {conversation_id!r} has turns 1 to "
            f"{len(conversation.turns)}, got --turn {turn}"
        )
    info = read_gguf(path)
    # llama.cpp would end the process on a text for a model without a vocabulary.
    if info.metadata.get("tokenizer.ggml.model") in _NO_TOKENIZER:
        raise BadInputError(f"{path}: the file has no tokenizer; take one that has it")
    model = LlamaModel(path, vocabulary_only=True)
    try:
        template = model_template(info, model, reasoning=reasoning)
        prompt = _prompt(model, template, conversation, turn)
        before: Sequence[int] = []
        if turn > 1:
            before = _prompt(model, template, conversation, turn - 1).tokens
    finally:
        model.close()
    found = detect_format(info.chat_template)
    return {
        "schema": PROMPT_REPORT_SCHEMA,
        "model": printable(path.name),
        "pack": pack.name,
        "conversation": conversation_id,
        "turn": turn,
        "text": prompt.text,
        "stable_characters": prompt.stable_characters,
        "prompt_tokens": len(prompt.tokens),
        "stable_tokens": prompt.stable_tokens,
        "new_tokens": len(prompt.tokens) - common_prefix(prompt.tokens, before),
        "tool_format": None if found is None else found.value,
        "template": "own" if info.chat_template else "chatml",
        "template_changes": template.changes,
    }


def _prompt(
    model: LlamaModel, template: ChatTemplate, conversation: Conversation, turn: int
) -> Prompt:
    messages = request_messages(conversation, conversation.turns[turn - 1])
    return build_prompt(template, model, messages, conversation.tools, find_stable=True)


def _conversation(pack: TracePack, id_: str) -> Conversation:
    found = next((one for one in pack.conversations if one.id == id_), None)
    if found is not None:
        return found
    ids = [one.id for one in pack.conversations]
    close = difflib.get_close_matches(id_, ids, n=_MAX_NAMED, cutoff=0.0)
    rest = len(ids) - len(close)
    named = ", ".join(map(repr, close)) + (f" and {rest} more" if rest else "")
    raise BadInputError(f"{one_line(pack.name)}: no conversation {id_!r}; there are {named}")
