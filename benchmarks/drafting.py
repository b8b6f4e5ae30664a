"""Prompt-lookup drafting over a trace pack: the same answers, how many drafts hold, the speed-up.

Each turn is answered twice, by an engine that drafts and by one that does not, in turns. Both
give the same text, but for close calls: with several threads, llama.cpp adds up the attention of
a single token in another order than that of a batch. With --threads 1 all answers are the same.
The speed-up is the ratio of decode times (first to last token) over all turns.

    python benchmarks/drafting.py MODEL [--pack edge-mini] [--tokens 4 --tokens 8] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.api import Completion
from edge_agentic.engine.choices import DraftKind, ToolGrammar
from edge_agentic.engine.drafting import DraftSettings
from edge_agentic.engine.llama_runtime import RuntimeSettings
from edge_agentic.engine.llamacpp import LlamaCppEngine, LlamaCppSettings
from edge_agentic.engine.model_store import resolve_model
from edge_agentic.replay.player import ReplayLimits, ReplayPlan, turn_request
from edge_agentic.trace.pack import load_pack

DRAFT_TOKENS = (2, 4, 8)


@dataclass
class Totals:
    """What the turns of one number of drafted tokens add up to."""

    turns: int = 0
    same: int = 0
    output_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    plain_decode_ns: int = 0
    drafting_decode_ns: int = 0

    def add(self, plain: Completion, drafting: Completion) -> None:
        """Add a turn."""
        self.turns += 1
        self.same += plain.text == drafting.text
        self.output_tokens += plain.tokens.output or 0
        self.drafted_tokens += drafting.tokens.drafted or 0
        self.accepted_tokens += drafting.tokens.accepted or 0
        self.plain_decode_ns += decode_ns(plain)
        self.drafting_decode_ns += decode_ns(drafting)

    def to_json(self) -> dict[str, Any]:
        """The figures and their ratios."""
        drafted = self.drafted_tokens
        return {
            "turns": self.turns,
            "turns_with_the_same_text": self.same,
            "output_tokens": self.output_tokens,
            "drafted_tokens": drafted,
            "accepted_tokens": self.accepted_tokens,
            "acceptance_rate": self.accepted_tokens / drafted if drafted else None,
            "decode_speed_up": self.plain_decode_ns / self.drafting_decode_ns,
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a GGUF file, or a name that 'models list' shows")
    parser.add_argument("--pack", default="edge-mini")
    parser.add_argument("--tokens", type=int, action="append", help="tokens drafted at once")
    parser.add_argument("--max-output-tokens", type=int)
    parser.add_argument("--threads", type=int, default=psutil.cpu_count(logical=False) or 1)
    parser.add_argument("--grammar", choices=["on", "off"], default="on")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    path = resolve_model(arguments.model)
    limits = ReplayLimits(arguments.max_output_tokens, None, 1.0)
    plan = ReplayPlan(load_pack(arguments.pack), limits)
    figures = {}
    for tokens in arguments.tokens or DRAFT_TOKENS:
        sizes = RuntimeSettings(8192, 512, 512, arguments.threads)
        settings = LlamaCppSettings(sizes, ToolGrammar(arguments.grammar))
        totals = measure(path, plan, tokens, settings).to_json()
        figures[str(tokens)] = totals
        if not arguments.json:
            print(
                f"{tokens} at once: {totals['turns_with_the_same_text']} of {totals['turns']} "
                f"answers the same, {totals['accepted_tokens']} of {totals['drafted_tokens']} "
                f"drafted tokens accepted, decode {totals['decode_speed_up']:.2f} times as fast",
                flush=True,
            )
    if arguments.json:
        print(json.dumps(figures, indent=2))


def measure(path: Path, plan: ReplayPlan, draft_tokens: int, plain: LlamaCppSettings) -> Totals:
    """Answer every turn of the pack with and without drafting."""
    draft = DraftSettings(DraftKind.LOOKUP, draft_tokens)
    engines = [
        LlamaCppEngine(path, plain),
        LlamaCppEngine(path, replace(plain, draft=draft)),
    ]
    totals = Totals()
    for conversation in plan.pack.conversations:
        for turn in conversation.turns:
            request = turn_request(plan, conversation, turn)
            # The order changes, so that neither always finds the warmer machine.
            order = (0, 1) if totals.turns % 2 else (1, 0)
            answers = {which: engines[which].generate(request) for which in order}
            totals.add(answers[0], answers[1])
    for engine in engines:
        engine.close()
    return totals


def decode_ns(done: Completion) -> int:
    """From the first token to the last."""
    arrivals_ns = done.times.arrivals_ns
    return arrivals_ns[-1] - arrivals_ns[0] if arrivals_ns else 0


if __name__ == "__main__":
    try:
        main()
    except BadInputError as error:
        sys.exit(f"error: {error}")
