"""The in-process engine: llama.cpp, with prefill state reused between turns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from edge_agentic.chat.tool_calls import detect_format, parse
from edge_agentic.chat.tool_format import ToolFormat
from edge_agentic.core.clock import NS_PER_S, Clock, monotonic_ns
from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.core.messages import Message, ToolSpec
from edge_agentic.core.outcome import Outcome
from edge_agentic.engine import llama_library
from edge_agentic.engine.api import (
    ChatRequest,
    Completion,
    FinishReason,
    TokenCounts,
    TokenTimes,
)
from edge_agentic.engine.call_constraint import CallConstraint
from edge_agentic.engine.choices import (
    DEFAULT_SNAPSHOT_MIB,
    DEFAULT_SNAPSHOTS,
    DraftKind,
    Reasoning,
    ToolGrammar,
)
from edge_agentic.engine.decoding import DecodeLimits, DecodeLoop
from edge_agentic.engine.drafting import Drafter, DraftSettings, LookupDrafter
from edge_agentic.engine.gguf import GgufInfo, read_gguf
from edge_agentic.engine.llama_model import LlamaModel
from edge_agentic.engine.llama_runtime import (
    DeadlineError,
    DecodeError,
    LlamaRuntime,
    RuntimeSettings,
    Snapshot,
)
from edge_agentic.engine.llama_sampler import NO_TOKEN, Sampler
from edge_agentic.engine.memory_kind import MemoryKind
from edge_agentic.engine.mtp_draft import MtpDrafter, require_head
from edge_agentic.engine.prefix_cache import PrefixCache, Reuse, SnapshotLimits
from edge_agentic.engine.prompt import Prompt, build_prompt, model_template


@dataclass(frozen=True)
class LlamaCppSettings:
    """How a model is run.

    tool_grammar: `off`, `auto` or `on`. tool_format: how the model writes its calls; None for
    what its template asks for.
    """

    runtime: RuntimeSettings
    tool_grammar: ToolGrammar = ToolGrammar.OFF
    tool_format: ToolFormat | None = None
    reasoning: Reasoning = Reasoning.OFF
    snapshots: SnapshotLimits = field(
        default_factory=lambda: SnapshotLimits(DEFAULT_SNAPSHOTS, DEFAULT_SNAPSHOT_MIB * 2**20)
    )
    draft: DraftSettings = field(default_factory=DraftSettings)

    def __post_init__(self) -> None:
        """Refuse a grammar that only a gate's reference can name."""
        if self.tool_grammar is ToolGrammar.REFERENCE:
            raise ValueError("an engine needs the grammar itself, not where to look it up")


class LlamaCppEngine:
    """Runs a GGUF model in this process, greedily (temperature 0).

    Between turns of one conversation the prefill state of the common prompt prefix is reused.
    Generated tokens never stand in for history (MLPerf Inference v6.1 edge-agentic rule); see
    `engine.prefix_cache`.
    """

    is_model = True
    can_force_length = True

    def __init__(
        self, path: Path, settings: LlamaCppSettings, *, clock: Clock = monotonic_ns
    ) -> None:
        """Load a model.

        Args:
            path: a GGUF file.
            settings: sizes, placement, reuse, drafting, tool calls.
            clock: monotonic nanoseconds.

        Raises:
            BadInputError: the file is damaged, can't be loaded, writes its tool calls in a form
                that this version can't read or can't constrain, or can't have drafted tokens
                taken back.
        """
        self._info: GgufInfo = read_gguf(path)
        self._format = _tool_format(self._info, settings.tool_format)
        self._constraint = _constraint(self._format, settings.tool_grammar)
        self._settings, self._clock = settings, clock
        own_head = settings.draft.kind is DraftKind.MTP
        if own_head:
            require_head(self._info)
        with ExitStack() as parts:
            gpu_layers = settings.runtime.gpu_layers
            self.model = LlamaModel(path, gpu_layers=gpu_layers, draft_head=own_head)
            parts.callback(self.model.close)
            sizes = replace(settings.runtime, rollback_tokens=settings.draft.rollback_tokens)
            self.runtime = LlamaRuntime(self.model, sizes)
            parts.callback(self.runtime.close)
            reasoning = settings.reasoning is Reasoning.ON
            self.template = model_template(self._info, self.model, reasoning=reasoning, clock=clock)
            self._most_drafted = _most_drafted(self.model, self.runtime, settings.draft)
            self._drafter = _open_drafter(self.model, self.runtime, settings)
            if self._drafter is not None:
                parts.callback(self._drafter.close)
            self._parts = parts.pop_all()
        self._cache: PrefixCache[Snapshot] = PrefixCache(
            self.runtime,
            settings.snapshots,
            cuts_back=self.model.memory_kind is MemoryKind.ATTENTION,
        )
        self._generations = 0

    @property
    def context_tokens(self) -> int:
        """Size of the context window."""
        return self.runtime.context_tokens

    def describe(self) -> JsonObject:
        """Settings and facts for the manifest."""
        return {
            "kind": "llamacpp",
            "is_model": True,
            "binding": f"llama-cpp-python {llama_library.version()}",
            "context_tokens": self.context_tokens,
            "batch_tokens": self.runtime.batch_tokens,
            "micro_batch_tokens": self._settings.runtime.micro_batch_tokens,
            "threads": self._settings.runtime.threads,
            "gpu_layers": self._settings.runtime.gpu_layers,
            "memory_kind": self.model.memory_kind.value,
            "prefix_reuse": self._cache.method,
            "prefix_snapshots": self._settings.snapshots.to_json(),
            "draft": self._settings.draft.to_json(),
            "tool_grammar": self._settings.tool_grammar.value,
            "tool_format": self._format.value,
            "template": "own" if self._info.chat_template else "chatml",
            "template_changes": self.template.changes,
            "reasoning": self._settings.reasoning.value,
            "template_knows_tools": self.template.knows_tools,
            "temperature": 0,
        }

    def count_prompt_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> int | None:
        """Tokens of the rendered prompt, without evaluating it."""
        return len(self.model.tokenize(self.template.render(messages, tools)))

    def generate(self, request: ChatRequest) -> Completion:
        """Answer one request; every failure is an outcome."""
        issued_ns = self._clock()
        try:
            prompt = build_prompt(
                self.template,
                self.model,
                request.messages,
                request.tools,
                find_stable=self._cache.takes_snapshots,
            )
            if not prompt.tokens:
                raise BadInputError("the model's chat template renders an empty prompt")
            if len(prompt.tokens) + request.max_output_tokens > self.context_tokens:
                return _overflow(issued_ns, len(prompt.tokens), request, self.context_tokens)
            with self._sampler(request, prompt) as sampler:
                loop = DecodeLoop(
                    self.runtime, sampler, self._limits(request, issued_ns), self._clock, issued_ns
                )
                return self._complete(request, prompt, loop)
        except BadInputError as error:
            return Completion(
                Outcome.ENGINE_FAILED, TokenTimes(issued_ns, (), None), error=str(error)
            )

    def close(self) -> None:
        """Free the model. Safe to call twice."""
        self._parts.close()

    def _sampler(self, request: ChatRequest, prompt: Prompt) -> Sampler:
        if request.force_length:
            # A grammar ends where the schema does, so it can't go on for a given length.
            return Sampler(self.model, self.runtime, self.model.end_tokens)
        if self._constraint is not None and request.tools:
            return self._constraint.sampler(self.model, self.runtime, request.tools, prompt.text)
        return Sampler(self.model, self.runtime, ())

    def _limits(self, request: ChatRequest, issued_ns: int) -> DecodeLimits:
        deadline_ns = (
            None if request.deadline_s is None else issued_ns + int(request.deadline_s * NS_PER_S)
        )
        ends = self.model.end_tokens | {NO_TOKEN}
        return DecodeLimits(ends, request.max_output_tokens, deadline_ns)

    def _complete(self, request: ChatRequest, prompt: Prompt, loop: DecodeLoop) -> Completion:
        outcome, error = Outcome.OK, None
        reuse = self._cache.begin(request.conversation_id, prompt.tokens, prompt.stable_tokens)
        try:
            self._prefill(request, prompt, reuse, loop)
            if self._drafter is not None:
                loop.run_drafted(prompt.tokens, self._drafter, self._most_drafted)
            else:
                loop.run()
        except DeadlineError:
            outcome, error = Outcome.TIMEOUT, f"no answer within {request.deadline_s:g} s"
        except DecodeError as failure:
            outcome, error = Outcome.ENGINE_FAILED, str(failure)
        if outcome is not Outcome.OK:
            self._cache.forget()
        return self._assemble(request, _counts(prompt, reuse, loop), loop, outcome, error)

    def _prefill(
        self, request: ChatRequest, prompt: Prompt, reuse: Reuse, loop: DecodeLoop
    ) -> None:
        """Evaluate what is new of the prompt, with a snapshot where the cache wants one."""
        start, deadline_ns = reuse.cached, loop.limits.deadline_ns
        follow = None
        if self._drafter is not None:
            self._drafter.begin(prompt.tokens, start)
            follow = self._drafter.follow

        def in_time() -> bool:
            return deadline_ns is None or self._clock() < deadline_ns

        if reuse.save_at is not None:
            self.runtime.evaluate(prompt.tokens[start : reuse.save_at], in_time, follow)
            start = reuse.save_at
            self._cache.save(start, anchor=request.messages[-1].get("role") == "user")
        self.runtime.evaluate(prompt.tokens[start:], in_time, follow)

    def _assemble(
        self,
        request: ChatRequest,
        counts: TokenCounts,
        loop: DecodeLoop,
        outcome: Outcome,
        error: str | None,
    ) -> Completion:
        self._generations += 1
        text = self.model.text(loop.tokens)
        parsed = parse(
            text, self._format, id_prefix=f"call_{self._generations}", tools=request.tools
        )
        finish = loop.finish if outcome is Outcome.OK else None
        if finish is FinishReason.STOP and parsed.calls:
            finish = FinishReason.TOOL_CALLS
        return Completion(
            outcome=outcome,
            times=TokenTimes(
                loop.issued_ns, tuple(loop.arrivals_ns), 1 if loop.arrivals_ns else None
            ),
            tokens=counts,
            finish_reason=finish,
            text=text,
            content=parsed.content,
            reasoning=parsed.reasoning,
            tool_calls=parsed.calls,
            malformed=parsed.malformed,
            error=error,
        )


def _tool_format(info: GgufInfo, forced: ToolFormat | None) -> ToolFormat:
    found = forced or detect_format(info.chat_template)
    if found is None:
        known = ", ".join(known.value for known in ToolFormat)
        raise BadInputError(
            f"{info.path}: its chat template asks for a tool-call form that this version does "
            f"not know; force one with --tool-format ({known})"
        )
    return found


def _constraint(tool_format: ToolFormat, grammar: ToolGrammar) -> CallConstraint | None:
    if grammar is ToolGrammar.OFF:
        return None
    return CallConstraint(tool_format, whole=grammar is ToolGrammar.ON)


def _most_drafted(model: LlamaModel, runtime: LlamaRuntime, draft: DraftSettings) -> int:
    """How many tokens are drafted at once; 0 for none."""
    if draft.kind is DraftKind.OFF:
        return 0
    # One more token is evaluated with the draft: the one that was picked last.
    most = min(draft.tokens, runtime.batch_tokens - 1)
    if model.memory_kind in (MemoryKind.RECURRENT, MemoryKind.HYBRID):
        if not runtime.rollback_tokens:
            raise BadInputError(
                f"{model.path}: llama.cpp can't take back drafted tokens on this architecture; "
                "use --draft off"
            )
        most = min(most, runtime.rollback_tokens)
    return most


def _open_drafter(
    model: LlamaModel, runtime: LlamaRuntime, settings: LlamaCppSettings
) -> Drafter | None:
    if settings.draft.kind is DraftKind.OFF:
        return None
    if settings.draft.kind is DraftKind.LOOKUP:
        return LookupDrafter()
    return MtpDrafter(model, runtime, settings.runtime)


def _counts(prompt: Prompt, reuse: Reuse, loop: DecodeLoop) -> TokenCounts:
    return TokenCounts(
        prompt=len(prompt.tokens),
        cached=reuse.cached,
        computed=len(prompt.tokens) - reuse.cached,
        ideal=len(prompt.tokens) - reuse.shared,
        output=len(loop.tokens),
        drafted=loop.drafted,
        accepted=loop.accepted,
    )


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
