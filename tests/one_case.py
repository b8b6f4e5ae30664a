"""A gate set with a single case, so that a run comes to its replay at once."""

from __future__ import annotations

import json
from pathlib import Path

CASE_ID = "irrelevance_own-1"


def one_case_gate(directory: Path) -> Path:
    """Write the set; its case calls for no call."""
    function = {
        "name": "look",
        "description": "Look",
        "parameters": {"type": "dict", "properties": {}, "required": []},
    }
    question = [[{"role": "user", "content": "Hello"}]]
    row = {"id": CASE_ID, "question": question, "function": [function]}
    directory.mkdir()
    (directory / "BFCL_v4_irrelevance.json").write_text(json.dumps(row))
    return directory
