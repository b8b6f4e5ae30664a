"""Options that can't be met are refused before anything runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.choices import DraftKind, EngineKind, Reasoning, ToolGrammar
from edge_agentic.engine.drafting import DraftSettings
from edge_agentic.engine.scripted import ScriptedDelays
from edge_agentic.run.server_settings import ServerOptions
from edge_agentic.run.settings import EngineSettings, RunSettings

URL = ServerOptions(base_url="http://127.0.0.1:8080")
LOOKUP = DraftSettings(DraftKind.LOOKUP)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give a model"),
        ({"model": "m.gguf", "answers": "recorded"}, "--answers belongs to --engine scripted"),
        ({"model": "m.gguf", "delays": ScriptedDelays(1)}, "belong to --engine scripted"),
        ({"model": "m.gguf", "context_tokens": 0}, "--context must be from 1 to 16777216"),
        ({"model": "m.gguf", "context_tokens": 2**32 + 4096}, "--context must be from 1"),
        ({"model": "m.gguf", "threads": 100_000}, "--threads must be from 1 to 512"),
        ({"model": "m.gguf", "gpu_layers": -5}, "--gpu-layers must be from -1"),
        ({"kind": EngineKind.SCRIPTED, "threads": 1}, "--threads belongs to --engine llamacpp"),
        ({"kind": EngineKind.SCRIPTED, "context_tokens": 9}, "--context belongs to --engine"),
        ({"kind": EngineKind.OPENAI}, "give the server's address: --base-url"),
        ({"kind": EngineKind.OPENAI, "model": "m", "server": URL}, "use --served-model"),
        ({"kind": EngineKind.OPENAI, "server": URL, "threads": 1}, "--threads belongs to"),
        (
            {"kind": EngineKind.OPENAI, "server": URL, "context_tokens": 1},
            "one that starts a server",
        ),
        ({"kind": EngineKind.VLLM, "model": "m", "gpu_layers": 1}, "--gpu-layers belongs to"),
        ({"kind": EngineKind.LLAMA_SERVER}, "give the model to be served: --model"),
        ({"kind": EngineKind.VLLM, "model": "m", "server": URL}, "--base-url belongs to"),
        ({"model": "m.gguf", "server": URL}, "--base-url belongs to --engine openai"),
        (
            {"model": "m.gguf", "server": ServerOptions(concurrency=2)},
            "--concurrency belongs to --engine openai, or an engine that starts a server",
        ),
        (
            {"kind": EngineKind.OPENAI, "server": replace(URL, server_args=("-x",))},
            "--server-arg belongs to an engine that starts a server",
        ),
        (
            {"kind": EngineKind.OPENAI, "server": URL, "tool_grammar": ToolGrammar.AUTO},
            "--tool-grammar auto belongs to --engine llamacpp",
        ),
        ({"kind": EngineKind.SCRIPTED, "tool_grammar": ToolGrammar.ON}, "--tool-grammar belongs"),
        ({"kind": EngineKind.SCRIPTED, "reasoning": Reasoning.ON}, "--reasoning belongs to"),
        ({"kind": EngineKind.SCRIPTED, "draft": LOOKUP}, "--draft belongs to --engine llamacpp"),
        ({"model": "m.gguf", "prefix_snapshots": -1}, "--prefix-snapshots must be from 0 to 1000"),
        ({"model": "m.gguf", "prefix_snapshot_mib": -1}, "--prefix-snapshot-mib must be from 0"),
    ],
)
def test_engine_options_that_contradict_each_other(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        EngineSettings(**options)


def test_a_scripted_engine_has_no_model() -> None:
    with pytest.raises(ValueError):
        EngineSettings(EngineKind.SCRIPTED, model="m.gguf")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_output_tokens": 0}, "--max-output-tokens must be from 1"),
        ({"turn_timeout_s": 0.0}, "--turn-timeout must be above 0"),
        ({"turn_timeout_s": 1e300}, "--turn-timeout must be above 0 and at most 604800 s"),
        ({"turn_timeout_s": float("nan")}, "--turn-timeout must be above 0"),
    ],
)
def test_limits_no_turn_can_meet(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        RunSettings(EngineSettings(EngineKind.SCRIPTED), **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "ftp://x"}, "--base-url"),
        ({"concurrency": 0}, "--concurrency must be from 1 to 256"),
        ({"server_settings": ("x=y",)}, "--server-setting"),
    ],
)
def test_server_options_that_cant_be_used(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        ServerOptions(**options)
