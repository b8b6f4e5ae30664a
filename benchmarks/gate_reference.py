"""Measures what a model scores on `gate-mini`, for an entry in `bfcl_gate/references.toml`.

A small model's close calls turn on the last bits of its logits, which differ with the size of
prompt batches (and from machine to machine), so each size is measured and the lowest score of
each kind is the reference. Run it again when the data set changes.

    python benchmarks/gate_reference.py MODEL.gguf [--batch 512 --batch 64 ...]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bfcl_gate.aggregate import Scores, aggregate
from bfcl_gate.cases import gate_mini
from bfcl_gate.checker import check
from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.choices import ToolGrammar
from edge_agentic.engine.llama_runtime import RuntimeSettings
from edge_agentic.engine.llamacpp import LlamaCppEngine, LlamaCppSettings
from edge_agentic.engine.model_store import resolve_model
from edge_agentic.run.gate import as_answer, case_request
from edge_agentic.run.runner import GATE_MINI_MAX_OUTPUT_TOKENS

BATCHES = (512, 128, 64, 32, 16)
CONTEXT_TOKENS = 2048
TIMEOUT_S = 600.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a GGUF file, or a name that 'models list' shows")
    parser.add_argument("--batch", type=int, action="append", help="prompt tokens in a batch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--free", action="store_true", help="without the tool grammar")
    arguments = parser.parse_args()
    path = resolve_model(arguments.model)
    measured = []
    for batch in arguments.batch or BATCHES:
        settings = RuntimeSettings(CONTEXT_TOKENS, batch, batch, arguments.threads)
        scores = _score(path, settings, constrain=not arguments.free)
        measured.append(scores)
        print(f"batch {batch:>4}: {_line(scores)}", flush=True)
    print(f"lowest overall {min(scores.overall_accuracy or 0.0 for scores in measured)}")
    lowest = min(scores.normalized_single_turn_score or 0.0 for scores in measured)
    print(f"lowest normalized {lowest}")


def _score(path: Path, settings: RuntimeSettings, *, constrain: bool) -> Scores:
    dataset = gate_mini()
    grammar = ToolGrammar.ON if constrain else ToolGrammar.OFF
    engine = LlamaCppEngine(path, LlamaCppSettings(settings, grammar))
    verdicts = []
    for case in dataset.cases:
        completion = engine.generate(case_request(case, GATE_MINI_MAX_OUTPUT_TOKENS, TIMEOUT_S))
        verdicts.append((case.id, check(case, as_answer(completion)).valid))
    engine.close()
    return aggregate((case.id for case in dataset.cases), verdicts)


def _line(scores: Scores) -> str:
    return f"overall {scores.overall_accuracy}, normalized {scores.normalized_single_turn_score}"


if __name__ == "__main__":
    try:
        main()
    except BadInputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
