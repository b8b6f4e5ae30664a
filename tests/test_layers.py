"""The layers of the architecture: a module imports only from layers below its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent

LAYERS = (
    ("edge_agentic.core",),
    (
        "edge_agentic.trace",
        "edge_agentic.chat",
        "edge_agentic.device",
        "bfcl_gate",
        "tools_sandbox",
    ),
    ("edge_agentic.engine",),
    ("edge_agentic.replay", "edge_agentic.measure"),
    ("edge_agentic.run",),
    ("edge_agentic.report", "edge_agentic.submission"),
    ("edge_agentic.cli",),
)
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}
STAND_ALONE = ("bfcl_gate", "tools_sandbox")


def modules() -> Iterator[tuple[str, Path]]:
    for package in ("edge_agentic", *STAND_ALONE):
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            name = path.relative_to(REPOSITORY).with_suffix("").as_posix().replace("/", ".")
            yield name.removesuffix(".__init__"), path


def part_of(module: str) -> str | None:
    """The part of the house that a module belongs to; None for what is not ours."""
    return next((part for part in RANK if f"{module}.".startswith(f"{part}.")), None)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


@pytest.mark.parametrize(("module", "path"), [pytest.param(m, p, id=m) for m, p in modules()])
def test_a_module_imports_only_from_lower_layers(module: str, path: Path) -> None:
    part = part_of(module)
    for imported in imports(path):
        other = part_of(imported)
        if part is None or other is None or other == part:
            continue
        assert part not in STAND_ALONE, f"{module} stands alone but imports {imported}"
        assert RANK[other] < RANK[part], f"{module} imports {imported} from a higher layer"


def test_every_module_belongs_to_a_layer() -> None:
    assert [m for m, _ in modules() if part_of(m) is None] == ["edge_agentic"]


def test_every_module_says_its_job_first() -> None:
    for module, path in modules():
        doc = ast.get_docstring(ast.parse(path.read_text("utf-8")))
        assert doc and doc.splitlines()[0].strip(), f"{module} has no docstring"
