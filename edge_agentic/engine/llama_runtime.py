"""A llama.cpp context: evaluates tokens, cuts its memory back, saves and restores its state."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import llama_cpp

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine import llama_library
from edge_agentic.engine.choices import MAX_CONTEXT_TOKENS, MAX_DRAFT_TOKENS, MAX_THREADS
from edge_agentic.engine.llama_model import LlamaModel

_SEQUENCE: Final = 0
_LIMITS: Final = {
    "context_tokens": (1, MAX_CONTEXT_TOKENS),
    "batch_tokens": (1, MAX_CONTEXT_TOKENS),
    "micro_batch_tokens": (1, MAX_CONTEXT_TOKENS),
    "threads": (1, MAX_THREADS),
    "rollback_tokens": (0, MAX_DRAFT_TOKENS),
}


@dataclass(frozen=True)
class RuntimeSettings:
    """Sizes and placement of a model and its context.

    gpu_layers: layers on the accelerator; -1 is all. rollback_tokens: how many of the last
    tokens a recurrent state has to be able to forget; each takes the memory of another state.
    """

    context_tokens: int
    batch_tokens: int
    micro_batch_tokens: int
    threads: int
    gpu_layers: int = -1
    rollback_tokens: int = 0

    def __post_init__(self) -> None:
        """Refuse sizes that llama.cpp can't run with.

        Raises:
            BadInputError: they come from options, device profiles and model files.
        """
        for name, (least, most) in _LIMITS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise BadInputError(f"{name} must be from {least} to {most}, got {value}")
        # llama.cpp never splits the tokens that may be forgotten and the one before them, and
        # aborts the process where a micro-batch has no room for one more.
        least = self.rollback_tokens + 2
        if self.rollback_tokens and min(self.batch_tokens, self.micro_batch_tokens) < least:
            raise BadInputError(
                f"drafts of {self.rollback_tokens} tokens need batches and micro-batches of at "
                f"least {least}; use fewer --draft-tokens"
            )


class DecodeError(Exception):
    """llama.cpp refused a batch; the context must be cleared before it is used again."""


class DeadlineError(Exception):
    """The deadline passed between two batches of a prompt."""


@dataclass(frozen=True)
class Snapshot:
    """The part of a context's state that can't be cut back, as it was at one position.

    `data` holds it, or, of a snapshot on the device, what finds it there. A context has one
    place on the device: the next snapshot there takes it.
    """

    data: Any
    on_device: bool
    size_bytes: int


class LlamaRuntime:
    """One context of a model, with one sequence. Not shared between threads."""

    def __init__(
        self, model: LlamaModel, settings: RuntimeSettings, *, draft_head: bool = False
    ) -> None:
        """Open the context; the model must outlive it.

        Args:
            model: what it is of.
            settings: its sizes.
            draft_head: make it one of the model's head alone; see `engine.mtp_draft`.

        Raises:
            BadInputError: llama.cpp has no memory for the context, or refuses its sizes.
        """
        llama_library.clear_log()
        params = _parameters(settings)
        if draft_head:
            params.ctx_type = llama_cpp.LLAMA_CONTEXT_TYPE_MTP
            # Its logits are wanted at one place only; room for a whole micro-batch of them takes
            # more memory than the rest of the head.
            params.n_outputs_max = 1
        self.handle: Any = llama_cpp.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise BadInputError(
                f"{model.path}: no context of {settings.context_tokens} tokens "
                f"({llama_library.reason()}); try a smaller --context"
            )
        self._memory = llama_cpp.llama_get_memory(self.handle)
        self._one_token = (llama_cpp.llama_token * 1)()
        self._one_token_batch = llama_cpp.llama_batch_get_one(self._one_token, 1)
        self.batch_tokens = int(llama_cpp.llama_n_batch(self.handle))
        self.context_tokens = int(llama_cpp.llama_n_ctx(self.handle))
        self.rollback_tokens = int(llama_cpp.llama_n_rs_seq(self.handle))

    def keep(self, tokens: int) -> bool:
        """Forget everything past the first `tokens` positions; False if that is impossible."""
        return bool(llama_cpp.llama_memory_seq_rm(self._memory, _SEQUENCE, tokens, -1))

    def clear(self) -> None:
        """Forget everything."""
        llama_cpp.llama_memory_clear(self._memory, True)

    def save(self, *, on_device: bool) -> Snapshot | None:
        """Copy the state that `keep` can't cut back: recurrent states and sliding windows.

        Args:
            on_device: leave the copy in the memory of the device. It takes the place of the
                snapshot that was there.

        Returns:
            None if llama.cpp can't copy it, or there is no memory for the copy.
        """
        flags = llama_cpp.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
        whole = int(llama_cpp.llama_state_seq_get_size_ext(self.handle, _SEQUENCE, flags))
        if on_device:
            flags |= llama_cpp.LLAMA_STATE_SEQ_FLAGS_ON_DEVICE
        size = int(llama_cpp.llama_state_seq_get_size_ext(self.handle, _SEQUENCE, flags))
        if not whole or not size:
            return None
        try:
            data = (ctypes.c_uint8 * size)()
        except MemoryError:
            return None
        copied = llama_cpp.llama_state_seq_get_data_ext(self.handle, data, size, _SEQUENCE, flags)
        return Snapshot(data, on_device, whole) if copied == size else None

    def restore(self, snapshot: Snapshot) -> bool:
        """Bring back the state of a snapshot; `keep` its position afterwards.

        Returns:
            False if llama.cpp can't restore it; the context must then be cleared.
        """
        flags = llama_cpp.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
        if snapshot.on_device:
            flags |= llama_cpp.LLAMA_STATE_SEQ_FLAGS_ON_DEVICE
        data = snapshot.data
        return bool(
            llama_cpp.llama_state_seq_set_data_ext(self.handle, data, len(data), _SEQUENCE, flags)
        )

    def evaluate(
        self,
        tokens: Sequence[int],
        before_batch: Callable[[], bool],
        after_batch: Callable[[int], None] | None = None,
    ) -> None:
        """Evaluate tokens after those in memory, a batch at a time.

        Args:
            tokens: what to evaluate.
            before_batch: asked before each batch whether there is time to go on.
            after_batch: told after each batch how many tokens it had.

        Raises:
            DecodeError: llama.cpp refused a batch.
            DeadlineError: `before_batch` said no.
        """
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        pointer_type = ctypes.POINTER(llama_cpp.llama_token)
        for start in range(0, len(tokens), self.batch_tokens):
            if not before_batch():
                raise DeadlineError
            count = min(self.batch_tokens, len(tokens) - start)
            offset = start * ctypes.sizeof(llama_cpp.llama_token)
            pointer = ctypes.cast(ctypes.byref(array, offset), pointer_type)
            self._decode(llama_cpp.llama_batch_get_one(pointer, count))
            if after_batch is not None:
                after_batch(count)

    def evaluate_one(self, token: int) -> None:
        """Evaluate one token after those in memory.

        Raises:
            DecodeError: llama.cpp refused it.
        """
        self._one_token[0] = token
        self._decode(self._one_token_batch)

    def evaluate_each(self, tokens: Sequence[int]) -> None:
        """Evaluate a few tokens in one batch, with the logits after each of them.

        Raises:
            DecodeError: llama.cpp refused the batch.
        """
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        wanted = (ctypes.c_int8 * len(tokens))(*(1 for _ in tokens))
        batch = llama_cpp.llama_batch_get_one(array, len(tokens))
        batch.logits = wanted
        self._decode(batch)

    def _decode(self, batch: Any) -> None:
        llama_library.clear_log()
        status = llama_cpp.llama_decode(self.handle, batch)
        if status != 0:
            raise DecodeError(f"llama_decode returned {status} ({llama_library.reason()})")

    def close(self) -> None:
        """Free the context. Safe to call twice."""
        if self.handle:
            llama_cpp.llama_free(self.handle)
            self.handle = None


def _parameters(settings: RuntimeSettings) -> Any:
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = settings.context_tokens
    params.n_batch = settings.batch_tokens
    params.n_ubatch = min(settings.micro_batch_tokens, settings.batch_tokens)
    params.n_threads = params.n_threads_batch = settings.threads
    params.n_rs_seq = settings.rollback_tokens
    # Snapshots stand in for the full-size cache, which takes many times the memory.
    params.swa_full = False
    params.no_perf = True
    return params
