"""A started server is ready when it says so, and nothing of it outlives its owner."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import psutil
import pytest

from edge_agentic.core.clock import NS_PER_S, Clock, monotonic_ns
from edge_agentic.core.errors import BadInputError, RequirementError
from edge_agentic.engine.openai_connection import OpenAIConnection
from edge_agentic.engine.server_commands import ServerSettings, command_line, find_program
from edge_agentic.engine.server_kinds import ServerKind
from edge_agentic.engine.server_process import ManagedServer
from edge_agentic.engine.server_registry import find_kept, kept_servers, remember, stop

STAND_IN = Path(__file__).with_name("stand_in_server.py")
REPOSITORY = STAND_IN.parent.parent
DEADLINE_S = 30


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    model = tmp_path / "model.gguf"
    model.touch()
    return ServerSettings(
        model=str(model),
        context_tokens=4096,
        batch_tokens=512,
        micro_batch_tokens=256,
        gpu_layers=-1,
        threads=2,
    )


def start(
    settings: ServerSettings,
    folder: Path,
    *,
    grace_s: float = DEADLINE_S,
    clock: Clock = monotonic_ns,
) -> ManagedServer:
    return ManagedServer(
        ServerKind.LLAMA_SERVER,
        str(STAND_IN),
        settings,
        log_folder=folder,
        timeout_s=DEADLINE_S,
        grace_s=grace_s,
        clock=clock,
    )


def is_answering(server: ManagedServer) -> bool:
    connection = OpenAIConnection(server.started.endpoint)
    head = connection.get("/health", deadline_s=5.0).head
    connection.close()
    return head is not None and head.status == 200


def has_ended(pid: int) -> bool:
    """Wait for the end of a process that is no child of this one."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], DEADLINE_S)[0])
    finally:
        os.close(descriptor)


def server_pid(guard_pid: int) -> int:
    (child,) = psutil.Process(guard_pid).children()
    return child.pid


def test_a_server_is_started_and_stopped(settings: ServerSettings, tmp_path: Path) -> None:
    server = start(settings, tmp_path)
    assert is_answering(server)
    pid = server_pid(server.started.guard_pid)
    server.close()
    server.close()
    assert has_ended(pid)
    assert has_ended(server.started.guard_pid)
    assert "loading the model" in server.started.log.read_text()
    assert server.started.version == "version: 1234 (abcdef)"


def test_facts_name_neither_paths_nor_the_port(settings: ServerSettings, tmp_path: Path) -> None:
    words = ("--chat-template-file", f"{tmp_path}/a.jinja", f"--lora={tmp_path}/b.gguf", "--x=1/2")
    server = start(replace(settings, extra=words), tmp_path)
    server.close()
    facts = str(server.started.to_json())
    assert str(server.started.endpoint.port) not in facts
    assert str(tmp_path) not in facts
    assert "model.gguf" in facts
    assert "'a.jinja', '--lora=b.gguf', '--x=1/2'" in facts


def test_a_server_that_loads_is_waited_for(
    settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "loads")
    server = start(settings, tmp_path)
    assert is_answering(server)
    server.close()


def test_a_server_that_dies_is_quoted(
    settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "dies")
    with pytest.raises(RequirementError, match=r"exit code 3 .*not enough memory"):
        start(settings, tmp_path)


def test_a_server_that_does_not_get_ready_in_time_is_stopped(
    settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "loads")
    hours_ns = count(0, 3600 * NS_PER_S)
    with pytest.raises(RequirementError, match=f"was not ready within {DEADLINE_S} s"):
        start(settings, tmp_path, clock=lambda: next(hours_ns))


@pytest.mark.parametrize("word", ["spawns", "clings spawns"])
def test_everything_a_server_started_is_stopped(
    settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setenv("STAND_IN", word)
    server = start(settings, tmp_path, grace_s=0.5)
    grandchild = re.search(r"child (\d+)", server.started.log.read_text())
    assert grandchild is not None
    server.close()
    assert has_ended(int(grandchild[1]))


OWNER = """
import sys, time
from pathlib import Path
from edge_agentic.engine.server_commands import ServerSettings
from edge_agentic.engine.server_kinds import ServerKind
from edge_agentic.engine.server_process import ManagedServer
program, model, folder = sys.argv[1:]
settings = ServerSettings(model, 4096, 512, 256, -1, 2)
server = ManagedServer(ServerKind.LLAMA_SERVER, program, settings, log_folder=Path(folder))
print(server.started.guard_pid, flush=True)
time.sleep(600)
"""


def test_a_server_ends_with_an_owner_that_is_killed(
    settings: ServerSettings, tmp_path: Path
) -> None:
    words = [sys.executable, "-c", OWNER, str(STAND_IN), settings.model, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as owner:
        assert owner.stdout is not None
        guard = int(owner.stdout.readline())
        server = server_pid(guard)
        owner.send_signal(signal.SIGKILL)
    assert has_ended(server)
    assert has_ended(guard)


def test_a_server_ends_with_a_guard_that_is_killed(
    settings: ServerSettings, tmp_path: Path
) -> None:
    server = start(settings, tmp_path)
    pid = server_pid(server.started.guard_pid)
    os.kill(server.started.guard_pid, signal.SIGKILL)
    assert has_ended(pid)
    server.close()


def test_a_kept_server_outlives_its_owner_until_it_is_stopped(
    settings: ServerSettings, tmp_path: Path
) -> None:
    server = start(settings, tmp_path)
    kept = remember(server.started, tmp_path)
    server.keep()
    server.close()
    assert is_answering(server)
    assert kept_servers(tmp_path) == [kept]
    assert find_kept(None, tmp_path) == find_kept(kept.name, tmp_path) == kept
    pid = server_pid(kept.guard_pid)
    stop(kept, tmp_path)
    assert has_ended(pid)
    assert kept_servers(tmp_path) == []
    with pytest.raises(BadInputError, match="no kept server"):
        find_kept(None, tmp_path)


def test_a_record_of_another_process_is_forgotten(tmp_path: Path) -> None:
    record = tmp_path / "llama-server-1.json"
    record.write_text(
        f'{{"url": "u", "log": "l", "guard_pid": {os.getpid()}, "guard_start": "b:1"}}'
    )
    (tmp_path / "damaged.json").write_text("{")
    assert kept_servers(tmp_path) == []
    assert not record.exists()


@pytest.mark.parametrize("pid", [-1, 0, 10**30])
def test_a_damaged_record_is_forgotten(tmp_path: Path, pid: int) -> None:
    record = {"url": "u", "log": "l", "guard_pid": pid, "guard_start": "b:1"}
    (tmp_path / "a.json").write_text(json.dumps(record))
    (tmp_path / "b.json").mkdir()
    assert kept_servers(tmp_path) == []


def test_a_missing_program_or_model_is_refused_before_anything_starts(
    settings: ServerSettings, tmp_path: Path
) -> None:
    with pytest.raises(RequirementError, match=r"no program 'no-such-server'.*--server-bin"):
        ManagedServer(ServerKind.LLAMA_SERVER, "no-such-server", settings)
    missing = ServerSettings("missing.gguf", 4096, 512, 256, -1, 2)
    with pytest.raises(BadInputError, match=r"missing\.gguf: no such file"):
        start(missing, tmp_path)


def test_a_link_to_an_interpreter_stays_one(tmp_path: Path) -> None:
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    assert find_program(ServerKind.SGLANG, str(link)) == str(link)


@pytest.mark.parametrize(
    ("kind", "program", "expected"),
    [
        (
            ServerKind.LLAMA_SERVER,
            "llama-server",
            "--host 127.0.0.1 --port 9 --model {model} --jinja --ctx-size 8192 --parallel 2 "
            "--batch-size 512 --ubatch-size 256 --n-gpu-layers all --threads 2 --seed 42 --x",
        ),
        (
            ServerKind.LLAMA_CPP_PYTHON,
            "python",
            "-m llama_cpp.server --host 127.0.0.1 --port 9 --model {model} --n_ctx 4096 "
            "--n_batch 512 --n_ubatch 256 --n_gpu_layers -1 --n_threads 2 --seed 42 "
            "--logits_all false --interrupt_requests false --x",
        ),
        (
            ServerKind.VLLM,
            "vllm",
            "serve {model} --host 127.0.0.1 --port 9 --enable-prefix-caching "
            "--enable-prompt-tokens-details --max-model-len 4096 --max-num-seqs 2 --seed 42 --x",
        ),
        (
            ServerKind.SGLANG,
            "python",
            "-m sglang.launch_server --model-path {model} --host 127.0.0.1 --port 9 "
            "--enable-cache-report --context-length 4096 --max-running-requests 2 "
            "--random-seed 42 --x",
        ),
        (
            ServerKind.TRTLLM_EDGE,
            "tensorrt-edgellm-serve",
            "{model} --host 127.0.0.1 --port 9 --enable-auto-tool-choice "
            "--enable-context-reuse --enable-in-flight-batching --max-input-len 4096 "
            "--max-kv-cache-capacity 5120 --max-batch-size 2 --x",
        ),
        (
            ServerKind.TRTLLM_EDGE,
            "edgellm",
            "serve {model} --host 127.0.0.1 --port 9 --enable-auto-tool-choice "
            "--enable-context-reuse --enable-in-flight-batching --max-input-len 4096 "
            "--max-kv-cache-capacity 5120 --max-batch-size 2 --x",
        ),
    ],
)
def test_command_lines_follow_each_servers_documentation(
    settings: ServerSettings, kind: ServerKind, program: str, expected: str
) -> None:
    sizes = ServerSettings(settings.model, 4096, 512, 256, -1, 2, slots=2, extra=("--x",))
    words = command_line(kind, program, 9, sizes)
    assert words == [program, *expected.format(model=settings.model).split()]


@pytest.mark.parametrize(
    ("extra", "chooses"),
    [
        (("--tool-call-parser", "hermes"), True),
        (("--tool-call-parser=hermes",), True),
        ((), False),
    ],
)
def test_vllm_is_told_to_choose_tools_only_beside_the_models_parser(
    settings: ServerSettings, extra: tuple[str, ...], chooses: bool
) -> None:
    words = command_line(ServerKind.VLLM, "vllm", 9, replace(settings, extra=extra))
    assert ("--enable-auto-tool-choice" in words) == chooses
