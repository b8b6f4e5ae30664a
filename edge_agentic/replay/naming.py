"""Names the requests of a replay."""

from __future__ import annotations

from edge_agentic.trace.conversation import Conversation


def request_id(conversation: Conversation, number: int) -> str:
    """The name of the request for one generated turn, counted from 1."""
    return f"replay/{conversation.id}/{number}"
