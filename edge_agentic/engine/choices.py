"""The choices that a user has about engines, and their limits; light enough to import anywhere."""

from __future__ import annotations

from enum import Enum
from typing import Final

MAX_CONTEXT_TOKENS: Final = 2**24
"""Far above any model's window; larger numbers overflow llama.cpp's 32 bits."""
MAX_THREADS: Final = 512
"""The most that llama.cpp takes (GGML_MAX_N_THREADS); more crash it."""
MAX_DRAFT_TOKENS: Final = 64
"""The most tokens that are drafted at once; more cost more than they save."""

DEFAULT_SNAPSHOTS: Final = 4
"""The last turns' prefixes and that of the last user's message, with room to spare."""
DEFAULT_SNAPSHOT_MIB: Final = 1024
"""Six recurrent states of Qwen3.6-27B."""

DEFAULT_LOOKUP_TOKENS: Final = 8
DEFAULT_MTP_TOKENS: Final = 3
"""As in llama.cpp: each takes a pass of the head, and is less likely right than the one before."""


class EngineKind(str, Enum):
    """What runs the model."""

    LLAMACPP = "llamacpp"
    """llama.cpp, in this process."""
    OPENAI = "openai"
    """A server that runs already, at `--base-url`."""
    LLAMA_SERVER = "llama-server"
    """A server that is started for the run, as are those that follow."""
    LLAMA_CPP_PYTHON = "llama-cpp-python"
    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM_EDGE = "trtllm-edge"
    SCRIPTED = "scripted"
    """No model: prepared answers."""


class ToolGrammar(str, Enum):
    """Whether output is constrained to calls of the offered functions."""

    REFERENCE = "reference"
    """As the model's gate reference was measured; off for a model without one."""
    OFF = "off"
    AUTO = "auto"
    """Free text until a call begins; the call follows the schema of its function."""
    ON = "on"
    """Nothing but calls that follow the schemas, or a call that says that none fits."""


class Reasoning(str, Enum):
    """Whether the model is asked to think before it answers, where its template has a switch."""

    OFF = "off"
    ON = "on"


class DraftKind(str, Enum):
    """What drafts tokens for the model to check."""

    OFF = "off"
    LOOKUP = "lookup"
    """What followed the last tokens where they stood before in the conversation."""
    MTP = "mtp"
    """What the model's own head predicts, of a model file that holds one."""
