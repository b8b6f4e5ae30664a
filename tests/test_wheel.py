"""The built wheel works by itself: in a clean environment, without the checkout."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

USE_IT = """
from edge_agentic.core.resources import data_dir
from edge_agentic.device.profile import load_profile
from edge_agentic.trace.pack import load_pack
from bfcl_gate.cases import gate_mini
from bfcl_gate.references import load_references
assert "site-packages" in str(data_dir("traces")), data_dir("traces")
assert len(load_pack("edge-mini").conversations) == 2
assert load_profile("generic-aarch64").id == "generic-aarch64"
assert len(gate_mini().cases) >= 120
assert load_references().references
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a clean environment into which the wheel was installed."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(REPOSITORY)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    interpreter = folder / "venv" / "bin" / "python"
    install = [str(interpreter), "-m", "pip", "install", "--quiet", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=300)
    return interpreter


def test_it_finds_its_data(python: Path, tmp_path: Path) -> None:
    done = subprocess.run([python, "-c", USE_IT], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_its_command_validates_a_bundled_pack(python: Path, tmp_path: Path) -> None:
    command = python.with_name("edge-agentic")
    done = subprocess.run(
        [command, "traces", "validate", "edge-mini"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "2 conversations" in done.stdout


def test_a_model_without_the_engine_names_the_extra(
    python: Path, smollm2: Path, tmp_path: Path
) -> None:
    command = [python.with_name("edge-agentic"), "run", "--allow-unsandboxed", "--model", smollm2]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 6
    assert "pip install 'edge-agentic[llamacpp]'" in done.stderr
    assert "Traceback" not in done.stderr
