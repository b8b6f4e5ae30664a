"""llama.cpp's shared library: its version, its log, and its start.

Importing this module loads the library, and so does every module that imports it, directly or not.
Commands that run no model must not import one of them.
"""

from __future__ import annotations

import ctypes
import re
from typing import Final

import llama_cpp

from edge_agentic.core.text import one_line

_LOG_LEVEL_WARN: Final = 3
_LOG_LEVEL_ERROR: Final = 4
_MAX_REASON_CHARACTERS: Final = 300
_FUNCTION_PREFIX: Final = re.compile(r"^[\w:~]+: ")

# The first line of each level: the cause comes first, its consequences follow. llama.cpp calls
# `dict.setdefault` itself. A Python function would run waiting signal handlers, and what they
# raise inside a callback is lost. The callback's third argument is never read: both calling
# conventions (x86-64, aarch64) allow to leave it out.
_first_lines: dict[int, bytes] = {}
_keep_line = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p)(_first_lines.setdefault)
_log_callback = ctypes.cast(_keep_line, llama_cpp.llama_log_callback)


def start() -> None:
    """Make the library ready and its log ours. Safe to call twice."""
    llama_cpp.llama_log_set(_log_callback, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()


def version() -> str:
    """Version of the binding package, which pins the llama.cpp it carries."""
    return str(llama_cpp.__version__)


def can_offload() -> bool:
    """Whether this build of llama.cpp has an accelerator to put layers on."""
    return bool(llama_cpp.llama_supports_gpu_offload())


def clear_log() -> None:
    """Forget what llama.cpp logged, before a call whose failure `reason` will explain."""
    _first_lines.clear()


def reason() -> str:
    """The first error that llama.cpp logged since `clear_log`, else the first warning."""
    line = _first_lines.get(_LOG_LEVEL_ERROR) or _first_lines.get(_LOG_LEVEL_WARN) or b""
    text = _FUNCTION_PREFIX.sub("", line.decode("utf-8", "replace").strip())
    return one_line(text[:_MAX_REASON_CHARACTERS]) or "no reason given"
