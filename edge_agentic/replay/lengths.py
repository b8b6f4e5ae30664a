"""How long each answer has to be under the policy `exact`: as long as the recorded one."""

from __future__ import annotations

from collections.abc import Mapping

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import Message
from edge_agentic.engine.api import Engine
from edge_agentic.trace.conversation import recorded_message
from edge_agentic.trace.pack import TracePack

TurnKey = tuple[str, int]
"""The id of a conversation and the number of one of its generated turns."""


def recorded_lengths(pack: TracePack, engine: Engine) -> Mapping[TurnKey, int]:
    """How many tokens the recorded answer of each turn has in the model's own vocabulary.

    Counted as the model's chat template renders it in history: text, reasoning and calls. The
    role's marks around it do not count.

    Raises:
        BadInputError: the engine can't generate a given number of tokens, or can't count them.
    """
    if not engine.can_force_length:
        raise BadInputError(
            "the policy 'exact' needs an engine that can suppress end tokens; "
            "use --engine llamacpp, or --policy recorded"
        )
    question: Message = {"role": "user", "content": "?"}
    without = engine.count_prompt_tokens([question, {"role": "assistant", "content": ""}], [])
    lengths = {}
    for conversation in pack.conversations:
        for turn in conversation.turns:
            answer = recorded_message(conversation, turn)
            count = engine.count_prompt_tokens([question, answer], [])
            if count is None or without is None:
                raise BadInputError(
                    "the policy 'exact' needs an engine that counts a prompt's tokens: llamacpp, "
                    "or a server of the kind llama-server or vllm"
                )
            lengths[conversation.id, turn.index] = max(count - without, 1)
    return lengths
