"""GGUF headers: what they say, and files that are damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.gguf import read_gguf


def test_the_header_of_a_real_model(smollm2: Path) -> None:
    info = read_gguf(smollm2)
    assert (info.architecture, info.quantisation) == ("llama", "Q4_1")
    assert info.context_length_tokens == 8192
    assert 130e6 < info.parameter_count < 170e6
    assert info.chat_template and "<|im_start|>" in info.chat_template


def _half(raw: bytes) -> bytes:
    return raw[: len(raw) // 2]


def _without_last_byte(raw: bytes) -> bytes:
    return raw[:-1]


def _in_the_header(raw: bytes) -> bytes:
    return raw[:5000]


def _huge_count(raw: bytes) -> bytes:
    return raw[:16] + b"\xff" * 8 + raw[24:]


def _version_99(raw: bytes) -> bytes:
    return raw[:4] + b"\x63\0\0\0" + raw[8:]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_half, "cut short: tensor '.*' ends at byte"),
        (_without_last_byte, "cut short"),
        (_in_the_header, "damaged GGUF header at offset"),
        (_huge_count, "damaged GGUF header at offset"),
        (_version_99, "GGUF version 99"),
        (lambda raw: b"PK\x03\x04" + raw[4:1000], "not a GGUF file"),
        (lambda raw: b"", "not a GGUF file"),
        (lambda raw: b"GGUF", "damaged GGUF header at offset 4"),
    ],
)
def test_a_damaged_file_is_one_clear_line(
    smollm2: Path, tmp_path: Path, damage: Callable[[bytes], bytes], said: str
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(damage(smollm2.read_bytes()))
    with pytest.raises(BadInputError, match=said) as caught:
        read_gguf(path)
    assert "\n" not in str(caught.value)


def test_a_directory_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="is a directory"):
        read_gguf(tmp_path)
    with pytest.raises(BadInputError, match="no such model file"):
        read_gguf(tmp_path / "absent.gguf")
