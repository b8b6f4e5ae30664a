"""The in-process engine: llama.cpp, with prefix reuse between the turns of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edge_agentic.chat.constrain import answer_schema
from edge_agentic.chat.template import ChatTemplate
from edge_agentic.chat.tool_calls import ToolFormat, detect_format, parse
from edge_agentic.core.clock import NS_PER_S, Clock, monotonic_ns
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import Message, ToolSpec
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine.api import (
    ChatRequest,
    Completion,
    FinishReason,
    TokenCounts,
    TokenTimes,
)
from edge_agentic.engine.gguf import GgufInfo, read_gguf
from edge_agentic.engine.llama_runtime import (
    DeadlineError,
    DecodeError,
    LlamaRuntime,
    RuntimeSettings,
    Sampler,
    version,
)


@dataclass(frozen=True)
class _Prefill:
    """What the prompt costs: its tokens, how many stay in memory, how many are new."""

    tokens: list[int]
    kept: int
    ideal: int

    def counts(self, output: int) -> TokenCounts:
        return TokenCounts(
            prompt=len(self.tokens),
            cached=self.kept,
            computed=len(self.tokens) - self.kept,
            ideal=self.ideal,
            output=output,
        )


class LlamaCppEngine:
    """Runs a GGUF model in this process, greedily (temperature 0).

    Between turns of one conversation the prefill state of the common prompt prefix is reused
    on attention models. Generated tokens never stand in for history (MLPerf Inference v6.1
    edge-agentic rule): the memory is cut back to prompt tokens before each turn. Models with
    a sliding window or a recurrent state can't be cut back, so each turn evaluates its whole
    prompt there.
    """

    is_model = True

    def __init__(
        self,
        path: Path,
        settings: RuntimeSettings,
        *,
        constrain_tools: bool,
        clock: Clock = monotonic_ns,
    ) -> None:
        """Load a model.

        Args:
            path: a GGUF file.
            settings: sizes, threads and placement.
            constrain_tools: hold every answer to the schema of the offered functions.
            clock: monotonic nanoseconds.

        Raises:
            BadInputError: the file is damaged, can't be loaded, or writes its tool calls in a
                form that this version can't read.
        """
        self._info: GgufInfo = read_gguf(path)
        self._format = _tool_format(self._info, constrain_tools)
        self._settings, self._constrain, self._clock = settings, constrain_tools, clock
        self._runtime = LlamaRuntime(path, settings)
        self._template = ChatTemplate(
            self._info.chat_template,
            bos_token=self._runtime.bos_token,
            eos_token=self._runtime.eos_token,
            clock=clock,
        )
        self._can_cut_back = self._runtime.memory_kind == "attention"
        self._conversation: str | None = None
        self._previous_prompt: list[int] = []
        self._generations = 0

    @property
    def context_tokens(self) -> int:
        """Size of the context window."""
        return self._runtime.context_tokens

    def describe(self) -> JsonObject:
        """Settings and facts for the manifest."""
        return {
            "kind": "llamacpp",
            "is_model": True,
            "binding": f"llama-cpp-python {version()}",
            "context_tokens": self.context_tokens,
            "batch_tokens": self._runtime.batch_tokens,
            "micro_batch_tokens": self._settings.micro_batch_tokens,
            "threads": self._settings.threads,
            "gpu_layers": self._settings.gpu_layers,
            "memory_kind": self._runtime.memory_kind,
            "prefix_reuse": self._can_cut_back,
            "tool_grammar": "on" if self._constrain else "off",
            "tool_format": self._format.value,
            "template": "own" if self._info.chat_template else "chatml",
            "template_knows_tools": self._template.knows_tools,
            "temperature": 0,
        }

    def count_prompt_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> int | None:
        """Tokens of the rendered prompt, without evaluating it."""
        return len(self._runtime.tokenize(self._template.render(messages, tools)))

    def generate(self, request: ChatRequest) -> Completion:
        """Answer one request; every failure is an outcome."""
        issued_ns = self._clock()
        deadline_ns = (
            None if request.deadline_s is None else issued_ns + int(request.deadline_s * NS_PER_S)
        )
        try:
            prompt = self._template.render(request.messages, request.tools)
            tokens = self._runtime.tokenize(prompt)
            if not tokens:
                raise BadInputError("the model's chat template renders an empty prompt")
            if len(tokens) + request.max_output_tokens > self.context_tokens:
                return _overflow(issued_ns, len(tokens), request, self.context_tokens)
            schema = answer_schema(request.tools) if self._constrain and request.tools else None
            with self._runtime.sampler(schema) as sampler:
                return self._complete(request, tokens, sampler, issued_ns, deadline_ns)
        except BadInputError as error:
            return Completion(
                Outcome.ENGINE_FAILED, TokenTimes(issued_ns, (), None), error=str(error)
            )

    def close(self) -> None:
        """Free the model. Safe to call twice."""
        self._runtime.close()

    def _complete(
        self,
        request: ChatRequest,
        tokens: list[int],
        sampler: Sampler,
        issued_ns: int,
        deadline_ns: int | None,
    ) -> Completion:
        output: list[int] = []
        arrivals_ns: list[int] = []
        outcome, finish, error = Outcome.OK, FinishReason.LENGTH, None
        prefill = self._cut_back(request.conversation_id, tokens)
        runtime, clock = self._runtime, self._clock
        try:
            runtime.evaluate(
                tokens[prefill.kept :],
                lambda: deadline_ns is None or clock() < deadline_ns,
            )
            while True:
                token = sampler.sample()
                now_ns = clock()
                if runtime.is_end(token):
                    finish = FinishReason.STOP
                    break
                arrivals_ns.append(now_ns - issued_ns)
                output.append(token)
                if len(output) >= request.max_output_tokens:
                    break
                if deadline_ns is not None and now_ns >= deadline_ns:
                    raise DeadlineError
                runtime.evaluate_one(token)
        except DeadlineError:
            outcome, error = Outcome.TIMEOUT, f"no answer within {request.deadline_s:g} s"
        except DecodeError as failure:
            outcome, error = Outcome.ENGINE_FAILED, str(failure)
        if outcome is not Outcome.OK:
            self._forget()
        return self._assemble(
            prefill.counts(len(output)),
            output,
            TokenTimes(issued_ns, tuple(arrivals_ns), 1 if arrivals_ns else None),
            (outcome, finish, error),
        )

    def _assemble(
        self,
        counts: TokenCounts,
        output: list[int],
        times: TokenTimes,
        ending: tuple[Outcome, FinishReason, str | None],
    ) -> Completion:
        outcome, finish, error = ending
        self._generations += 1
        raw = b"".join(map(self._runtime.piece, output))
        text = raw.decode("utf-8", "replace")
        parsed = parse(text, self._format, id_prefix=f"call_{self._generations}")
        if finish is FinishReason.STOP and parsed.calls:
            finish = FinishReason.TOOL_CALLS
        return Completion(
            outcome=outcome,
            times=times,
            tokens=counts,
            finish_reason=finish if outcome is Outcome.OK else None,
            text=text,
            content=parsed.content,
            reasoning=parsed.reasoning,
            tool_calls=parsed.calls,
            malformed=parsed.malformed,
            error=error,
        )

    def _cut_back(self, conversation_id: str, tokens: list[int]) -> _Prefill:
        """Leave in memory what this prompt shares with the conversation's previous one."""
        previous = self._previous_prompt if conversation_id == self._conversation else []
        shared = _common_prefix(previous, tokens)
        # The last token is evaluated in any case: its logits choose the first output token.
        kept = min(shared, len(tokens) - 1) if self._can_cut_back else 0
        if kept == 0 or not self._runtime.keep(kept):
            kept = 0
            self._runtime.clear()
        self._conversation, self._previous_prompt = conversation_id, tokens
        return _Prefill(tokens, kept, len(tokens) - shared)

    def _forget(self) -> None:
        self._runtime.clear()
        self._conversation, self._previous_prompt = None, []


def _tool_format(info: GgufInfo, constrain_tools: bool) -> ToolFormat:
    if constrain_tools:
        return ToolFormat.GENERIC
    detected = detect_format(info.chat_template)
    if detected is None:
        raise BadInputError(
            f"{info.path}: its chat template asks for a tool-call form that this version can't "
            "read; use --tool-grammar on"
        )
    return detected


def _common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return index
    return min(len(first), len(second))


def _overflow(
    issued_ns: int, prompt_tokens: int, request: ChatRequest, context_tokens: int
) -> Completion:
    return Completion(
        Outcome.CONTEXT_OVERFLOW,
        TokenTimes(issued_ns, (), None),
        TokenCounts(prompt=prompt_tokens),
        error=(
            f"{prompt_tokens} prompt tokens and {request.max_output_tokens} for the answer "
            f"exceed the context of {context_tokens}"
        ),
    )
