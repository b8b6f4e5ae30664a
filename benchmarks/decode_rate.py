"""Our prefill and decode rates over those of a bare loop in C, on the same model and context.

`decode_loop.c` is compiled and called on the engine's own context, in turns with the engine, so
that both meet the same machine. The engine's times include everything: rendering and tokenising
the prompt, the clock, the list of tokens. The order changes from round to round. Where
`llama-bench` is found (PATH, or --llama-bench), its rates are shown beside them.

    python benchmarks/decode_rate.py MODEL [--rounds 9] [--prompt 512] [--output 64] [--json]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import llama_cpp
import psutil

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.messages import Message
from edge_agentic.engine.api import ChatRequest
from edge_agentic.engine.llama_runtime import RuntimeSettings
from edge_agentic.engine.llamacpp import LlamaCppEngine, LlamaCppSettings
from edge_agentic.engine.model_store import resolve_model
from edge_agentic.engine.prompt import build_prompt

BATCH_TOKENS = 512
SENTENCE = "The parser reads one line after another and counts what it can't understand. "


@dataclass(frozen=True)
class Rates:
    """Tokens/s of one pass: the prompt up to the first token, and each token after it."""

    prefill: float
    decode: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a GGUF file, or a name that 'models list' shows")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--prompt", type=int, default=512, help="about so many prompt tokens")
    parser.add_argument("--output", type=int, default=64, help="tokens to generate")
    parser.add_argument("--threads", type=int, default=psutil.cpu_count(logical=False) or 1)
    parser.add_argument("--llama-bench", help="the program, if it is not in PATH")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    path = resolve_model(arguments.model)
    sizes = RuntimeSettings(
        arguments.prompt + arguments.output + 1024, BATCH_TOKENS, BATCH_TOKENS, arguments.threads
    )
    engine = LlamaCppEngine(path, LlamaCppSettings(sizes))
    messages = prompt_of(engine, arguments.prompt)
    prompt = build_prompt(engine.template, engine.model, messages, [], find_stable=False)
    with tempfile.TemporaryDirectory() as scratch:
        bare = bare_loop(engine, list(prompt.tokens), arguments.output, Path(scratch))
        measured = in_turns(
            (engine_passes(engine, messages, arguments.output), bare), arguments.rounds
        )
    engine.close()
    figures = compare(*measured)
    figures["prompt_tokens"] = len(prompt.tokens)
    figures["output_tokens"] = arguments.output
    program = arguments.llama_bench or shutil.which("llama-bench")
    if program:
        figures["llama_bench"] = llama_bench(program, path, arguments)
    print(json.dumps(figures, indent=2) if arguments.json else in_words(figures))


def prompt_of(engine: LlamaCppEngine, tokens: int) -> list[Message]:
    """A question of about so many tokens."""
    one = engine.count_prompt_tokens([{"role": "user", "content": SENTENCE * 2}], [])
    none = engine.count_prompt_tokens([{"role": "user", "content": SENTENCE}], [])
    assert one is not None
    assert none is not None
    return [{"role": "user", "content": SENTENCE * max(1, tokens // (one - none))}]


def engine_passes(
    engine: LlamaCppEngine, messages: list[Message], output: int
) -> Callable[[], Rates]:
    """A pass of the engine, as the first turn of a conversation goes: cold."""
    names = count()

    def one_pass() -> Rates:
        request = ChatRequest("r", str(next(names)), messages, [], output, force_length=True)
        done = engine.generate(request)
        assert done.tokens.computed is not None
        assert done.tokens.output == output
        first_ns, last_ns = done.times.arrivals_ns[0], done.times.arrivals_ns[-1]
        rate = (output - 1) / (last_ns - first_ns) * 1e9
        return Rates(done.tokens.computed / first_ns * 1e9, rate)

    return one_pass


def bare_loop(
    engine: LlamaCppEngine, prompt: list[int], output: int, scratch: Path
) -> Callable[[], Rates]:
    """A pass of the loop in C, on the engine's context."""
    source, built = Path(__file__).with_name("decode_loop.c"), scratch / "decode_loop.so"
    library = Path(llama_cpp.__file__).parent / "lib" / "libllama.so"
    if not shutil.which("cc"):
        raise BadInputError("no C compiler: install one that is called 'cc'")
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(built), str(source), str(library)]
    subprocess.run(command, check=True)
    run_loop = ctypes.CDLL(str(built)).run_loop
    tokens = (ctypes.c_int32 * len(prompt))(*prompt)
    answer, times_ns = (ctypes.c_int32 * output)(), (ctypes.c_int64 * 2)()
    sampler = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    llama_cpp.llama_sampler_chain_add(sampler, llama_cpp.llama_sampler_init_greedy())

    def one_pass() -> Rates:
        status = run_loop(
            ctypes.c_void_p(engine.runtime.handle),
            ctypes.cast(sampler, ctypes.c_void_p),
            tokens,
            len(tokens),
            BATCH_TOKENS,
            answer,
            output,
            times_ns,
        )
        assert status == 0, status
        first_ns, last_ns = times_ns
        return Rates(len(tokens) / first_ns * 1e9, (output - 1) / (last_ns - first_ns) * 1e9)

    return one_pass


def in_turns(
    passes: tuple[Callable[[], Rates], Callable[[], Rates]], rounds: int
) -> tuple[list[Rates], list[Rates]]:
    """Run both passes in every round, the first one first in every other; the first is warm-up."""
    measured: tuple[list[Rates], list[Rates]] = ([], [])
    for number in range(rounds + 1):
        for which in (0, 1) if number % 2 else (1, 0):
            rates = passes[which]()
            if number:
                measured[which].append(rates)
    return measured


def compare(ours: Sequence[Rates], bare: Sequence[Rates]) -> dict[str, Any]:
    """Median rates, and the median, least and largest of the rounds' ratios."""
    figures: dict[str, Any] = {"rounds": len(ours)}
    for name in ("prefill", "decode"):
        pairs = [(getattr(a, name), getattr(b, name)) for a, b in zip(ours, bare, strict=True)]
        ratios = [a / b for a, b in pairs]
        figures[name] = {
            "ours_tokens_per_s": statistics.median(a for a, _ in pairs),
            "bare_tokens_per_s": statistics.median(b for _, b in pairs),
            "ratio": statistics.median(ratios),
            "ratio_range": [min(ratios), max(ratios)],
        }
    return figures


def llama_bench(program: str, path: Path, arguments: argparse.Namespace) -> dict[str, float]:
    """The rates of llama-bench at the same sizes."""
    command = [program, "-m", path, "-p", arguments.prompt, "-n", arguments.output]
    command += ["-t", arguments.threads, "-b", BATCH_TOKENS, "-ub", BATCH_TOKENS]
    command += ["-r", arguments.rounds, "-o", "json"]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    rates = {}
    for row in json.loads(done.stdout):
        rates["prefill" if row["n_prompt"] else "decode"] = float(row["avg_ts"])
    return rates


def in_words(figures: dict[str, Any]) -> str:
    """The figures as a table."""
    lines = [
        f"{figures['prompt_tokens']} prompt tokens, {figures['output_tokens']} generated, "
        f"{figures['rounds']} rounds",
        f"{'':9}{'ours':>14}{'bare C loop':>14}{'ratio':>8}  range",
    ]
    for name in ("prefill", "decode"):
        row = figures[name]
        low, high = row["ratio_range"]
        ours, bare = (f"{row[f'{who}_tokens_per_s']:.1f}/s" for who in ("ours", "bare"))
        lines.append(f"{name:9}{ours:>14}{bare:>14}{row['ratio']:>8.3f}  {low:.3f} to {high:.3f}")
    for name, rate in figures.get("llama_bench", {}).items():
        ratio = figures[name]["ours_tokens_per_s"] / rate
        lines.append(f"llama-bench {name}: {rate:.1f}/s; ours is {ratio:.3f} of it")
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        main()
    except BadInputError as error:
        sys.exit(f"error: {error}")
