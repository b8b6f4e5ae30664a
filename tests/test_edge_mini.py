"""The bundled pack `edge-mini`: its commands do today what they did when it was recorded."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edge_agentic.core.messages import text_content
from edge_agentic.replay.inline_score import actions
from edge_agentic.trace.bash_call import bash_command
from edge_agentic.trace.conversation import Conversation, request_messages
from edge_agentic.trace.pack import TracePack, load_pack
from edge_agentic.trace.tool_output import render
from tools_sandbox.errors import SandboxUnavailable
from tools_sandbox.result import Tier
from tools_sandbox.sandbox import Sandbox, open_view
from tools_sandbox.store import Store

PACK = load_pack("edge-mini")
each_conversation = pytest.mark.parametrize("conversation", PACK.conversations, ids=lambda c: c.id)
each_tier = pytest.mark.parametrize("tier", Tier)


@contextmanager
def opened(pack: TracePack, conversation: Conversation, tier: Tier) -> Iterator[Sandbox]:
    with tempfile.TemporaryDirectory() as directory:
        pristine = Store(Path(directory)).add_directory(pack.workspaces[conversation.id])
        try:
            sandbox = open_view(pristine, tier=tier)
        except SandboxUnavailable as error:
            pytest.skip(str(error))
        with sandbox:
            yield sandbox


def outputs(conversation: Conversation, sandbox: Sandbox) -> list[str]:
    commands = [bash_command(c) for turn in conversation.turns for c in turn.expected_calls]
    timeout_s = PACK.tool_timeout_s
    return [
        render(sandbox.run(command or "", timeout_s=timeout_s), timeout_s) for command in commands
    ]


@each_tier
@each_conversation
def test_the_commands_give_the_recorded_results_byte_for_byte(
    conversation: Conversation, tier: Tier
) -> None:
    recorded = [r["content"] for turn in conversation.turns for r in turn.recorded_results]
    for _ in range(2):
        with opened(PACK, conversation, tier) as sandbox:
            assert outputs(conversation, sandbox) == recorded


@each_conversation
def test_the_check_fails_on_the_pristine_workspace_and_passes_after_the_commands(
    conversation: Conversation,
) -> None:
    check = PACK.checks[conversation.id]
    with opened(PACK, conversation, Tier.NONE) as sandbox:
        before = sandbox.run(check, timeout_s=PACK.tool_timeout_s)
        outputs(conversation, sandbox)
        after = sandbox.run(check, timeout_s=PACK.tool_timeout_s)
    assert (before.exit_code, after.exit_code) == (1, 0)


@each_conversation
def test_a_conversation_is_long_enough_to_tell_and_short_enough_for_a_first_run(
    conversation: Conversation,
) -> None:
    assert len(conversation.turns) >= 6
    longest = request_messages(conversation, conversation.turns[-1])
    characters = sum(len(str(message)) for message in longest) + len(str(conversation.tools))
    assert characters / 2.9 < 3_600


@each_conversation
def test_every_turn_can_be_scored_but_the_last_which_is_text(conversation: Conversation) -> None:
    *working, last = conversation.turns
    assert all(actions(turn.expected_calls) for turn in working)
    assert last.expected_calls == ()
    assert text_content(conversation.rows[-1])


@each_conversation
def test_something_goes_wrong_on_the_way(conversation: Conversation) -> None:
    results = [r["content"] for turn in conversation.turns for r in turn.recorded_results]
    assert any(not text.startswith("<returncode>0<") for text in results)


def test_nothing_in_the_pack_names_a_place_of_the_machine_it_was_recorded_on() -> None:
    for path in sorted(PACK.path.rglob("*")):
        if path.is_file():
            text = path.read_text("utf-8")
            assert not [word for word in ("/tmp", "/root", "/home", "Traceback") if word in text]


def test_the_pack_states_its_origin_and_limits() -> None:
    assert (PACK.name, PACK.licence) == ("edge-mini", "Apache-2.0")
    assert (PACK.max_output_tokens, PACK.tool_timeout_s) == (128, 20)
    assert set(PACK.checks) == set(PACK.workspaces) == {c.id for c in PACK.conversations}
    assert all(isinstance(workspace, Path) for workspace in PACK.workspaces.values())
