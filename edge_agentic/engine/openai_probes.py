"""Tries out before a run what a server does with a request, so that no run measures a mistake."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from edge_agentic.core.errors import RequirementError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import ToolSpec
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import ChatRequest, Completion
from edge_agentic.engine.openai import OpenAIEngine, ServedModel
from edge_agentic.engine.openai_faults import Failure, Fault
from edge_agentic.engine.openai_identify import unusable
from edge_agentic.engine.server_kinds import Cause, remedy

_DEADLINE_S: Final = 300.0
_EXACT_TOKENS: Final = 24
_SHORT_TOKENS: Final = 8
_CALL_TOKENS: Final = 160
_LEAST_TO_STREAM: Final = 12
"""Output tokens of a call that a server can be seen to hold back."""
_PARAGRAPH: Final = (
    "A lighthouse keeper writes down each evening how many ships have passed, which way the "
    "wind blew, and whether the lamp needed oil. "
)
_LONG: Final = _PARAGRAPH * 12
"""Longer than the blocks in which servers keep prompts."""
CALL_QUESTION: Final = (
    "Call write_note with the numbers from one to fifteen, in words, as its text."
)
NOTE_TOOL: Final[ToolSpec] = {
    "type": "function",
    "function": {
        "name": "write_note",
        "description": "Writes a note into the keeper's book.",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "What the note says."}},
            "required": ["text"],
        },
    },
}


@dataclass(frozen=True)
class Probe:
    """The result of one probe. `found` is None where the server gave nothing to tell by."""

    name: str
    found: bool | None
    detail: str

    def to_json(self) -> JsonObject:
        """The result as the manifest holds it."""
        return {"found": self.found, "detail": self.detail}


@dataclass(frozen=True)
class ProbeReport:
    """All results, in the order in which they were asked."""

    served: ServedModel
    probes: tuple[Probe, ...]

    def to_json(self) -> JsonObject:
        """The results by name, for the manifest."""
        return {probe.name: probe.to_json() for probe in self.probes}

    def found(self, name: str) -> bool | None:
        """The result of the probe of that name."""
        return self._probe(name).found

    @property
    def can_force_length(self) -> bool:
        """Whether the server was seen to give exactly as many tokens as it was asked for."""
        return self.found("exact_length") is True

    @property
    def notes(self) -> list[str]:
        """What the user should know before the run, one line each."""
        kind = self.served.kind
        lines = []
        if self.found("usage") is False:
            lines.append("the server reports no token counts: speeds per token stay unknown")
        elif self.found("cached_tokens") is False:
            told = remedy(kind, Cause.CACHE_REPORT)
            lines.append(f"the server does not count the prompt tokens that it reuses: {told}")
        if self.found("reasoning_off") is False:
            lines.append(f"the model reasons before it answers: {remedy(kind, Cause.REASONING)}")
        if self.found("streams_calls") is False:
            lines.append("the server holds calls back: turns that call a tool tell no decode speed")
        if self.found("repeatable") is False:
            lines.append("the same request gave two answers at temperature 0")
        return lines

    def require(self, *, force_length: bool = False) -> None:
        """Refuse a run that this server would spoil. Every gate case offers tools.

        Args:
            force_length: whether the run's policy fixes the length of answers.

        Raises:
            RequirementError: says what to change on the server.
        """
        url, kind = self.served.endpoint.url, self.served.kind
        if self.found("tools_reach_model") is False:
            detail = self._probe("tools_reach_model").detail
            raise RequirementError(
                f"{url}: tools don't reach the model ({detail}); {remedy(kind, Cause.TOOLS)}"
            )
        if force_length and not self.can_force_length:
            detail = self._probe("exact_length").detail
            raise RequirementError(
                f"{url}: can't fix the length of answers ({detail}); {remedy(kind, Cause.EXACT)}"
            )

    def _probe(self, name: str) -> Probe:
        return next(probe for probe in self.probes if probe.name == name)


def run_probes(served: ServedModel) -> ProbeReport:
    """Ask the server a few short questions; seconds on a slow board.

    Raises:
        RequirementError: it does not answer a plain question; says why.
    """
    plain = OpenAIEngine(replace(served, constrained=False))
    try:
        first = _ask(plain, "Answer with one word: yes.", _SHORT_TOKENS)
        if first.outcome is not Outcome.OK:
            raise unusable(served.endpoint, _failure_of(first), served.key)
        exact, again = (
            _ask(
                plain,
                f"{_LONG}\nAnswer with one word: yes.",
                _EXACT_TOKENS,
                force_length=served.dialect.exact is not None,
            )
            for _ in range(2)
        )
        offered = _ask(plain, "Answer with one word: yes.", _SHORT_TOKENS, (NOTE_TOOL,))
        call = _ask(plain, CALL_QUESTION, _CALL_TOKENS, (NOTE_TOOL,))
    finally:
        plain.close()
    # What a model writes when it is kept from ending is no sign of how it answers.
    ended_freely = (first, offered, call)
    return ProbeReport(
        served,
        (
            _usage(first),
            _cached_tokens(again),
            _tools_reach_model(served, first, offered, call),
            _streams_calls(call),
            _exact_length(served, exact),
            _repeatable(exact, again),
            _reasoning_off(ended_freely),
        ),
    )


def _ask(
    engine: OpenAIEngine,
    question: str,
    tokens: int,
    tools: tuple[ToolSpec, ...] = (),
    *,
    force_length: bool = False,
) -> Completion:
    return engine.generate(
        ChatRequest(
            request_id="probe",
            conversation_id="probe",
            messages=[{"role": "user", "content": question}],
            tools=tools,
            max_output_tokens=tokens,
            deadline_s=_DEADLINE_S,
            force_length=force_length,
        )
    )


def _failure_of(completion: Completion) -> Failure:
    word, _, detail = (completion.error or "").partition(": ")
    return Failure(Fault(word), detail)


def _usage(first: Completion) -> Probe:
    counts = (first.tokens.prompt, first.tokens.output)
    return Probe("usage", None not in counts, "prompt {}, output {} tokens".format(*counts))


def _cached_tokens(again: Completion) -> Probe:
    cached, prompt = again.tokens.cached, again.tokens.prompt
    if again.outcome is not Outcome.OK:
        return Probe("cached_tokens", None, again.error or "")
    if cached is None:
        return Probe("cached_tokens", False, "not reported")
    return Probe("cached_tokens", True, f"{cached} of {prompt} when the same prompt came again")


def _tools_reach_model(
    served: ServedModel, first: Completion, offered: Completion, call: Completion
) -> Probe:
    name = "tools_reach_model"
    if served.constrained:
        return Probe(name, True, "they are part of the messages (--tool-grammar on)")
    if offered.outcome is not Outcome.OK:
        return Probe(name, False, f"a request with tools fails: {offered.error}")
    if call.tool_calls:
        return Probe(name, True, "the model called one")
    if call.malformed:
        return Probe(name, False, "the model's call came back as text")
    without, with_tools = first.tokens.prompt, offered.tokens.prompt
    if without is None or with_tools is None:
        return Probe(name, None, "the server counts no prompt tokens, and the model called none")
    found = f"{without} prompt tokens without, {with_tools} with tools"
    return Probe(name, with_tools > without, found)


def _streams_calls(call: Completion) -> Probe:
    name, times, output = "streams_calls", call.times.arrivals_ns, call.tokens.output
    if not call.tool_calls:
        return Probe(name, None, "the model called no tool")
    if output is None or output < _LEAST_TO_STREAM:
        return Probe(name, None, "too few tokens, or an unknown number")
    # Held back, a call comes as one delta, or as a name and one more.
    return Probe(name, len(times) > 2, f"{output} tokens in {len(times)} deltas")


def _exact_length(served: ServedModel, exact: Completion) -> Probe:
    if served.dialect.exact is None:
        return Probe("exact_length", False, "this kind of server has no way to ask for it")
    if exact.outcome is not Outcome.OK:
        return Probe("exact_length", False, exact.error or "")
    return Probe("exact_length", True, f"{_EXACT_TOKENS} of {_EXACT_TOKENS} tokens")


def _repeatable(before: Completion, again: Completion) -> Probe:
    if not before.text or not again.text:
        return Probe("repeatable", None, "the model said nothing")
    same = before.text == again.text
    return Probe("repeatable", same, "the same answer twice" if same else "two different answers")


def _reasoning_off(answers: tuple[Completion, ...]) -> Probe:
    count = sum(completion.reasoning is not None for completion in answers)
    detail = f"reasoning in {count} of {len(answers)} answers"
    return Probe("reasoning_off", count == 0, detail)
