"""GGUF headers: what they say, and files that are damaged."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.gguf import read_gguf
from tests.tiny_gguf import FLOAT32, UINT32, build, with_number


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
    with pytest.raises(BadInputError, match="no such file"):
        read_gguf(tmp_path / "absent.gguf")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return build(tmp_path_factory.mktemp("tiny") / "tiny.gguf", "attention").read_bytes()


@pytest.mark.parametrize(
    ("key", "number", "said"),
    [
        ("block_count", 2**31, "llama.block_count is 2147483648, not a whole number from 1 to 512"),
        ("block_count", 513, "llama.block_count is 513,"),
        ("block_count", 0, "llama.block_count is 0,"),
        ("embedding_length", 0, "llama.embedding_length is 0,"),
        ("context_length", 2**32 - 1, "llama.context_length is 4294967295,"),
        ("attention.head_count", 2**24 + 1, "llama.attention.head_count is 16777217,"),
        ("attention.head_count_kv", 2**31, "llama.attention.head_count_kv is 2147483648,"),
    ],
)
def test_a_size_that_would_crash_llama_cpp_is_named_with_its_value(
    tiny: bytes, tmp_path: Path, key: str, number: int, said: str
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(with_number(tiny, f"llama.{key}", UINT32, number))
    with pytest.raises(BadInputError, match=said):
        read_gguf(path)


def test_a_size_that_is_no_integer_is_named(tiny: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(with_number(tiny, "llama.block_count", FLOAT32, 2.0))
    with pytest.raises(BadInputError, match=r"llama.block_count is 2\.0, not a whole number"):
        read_gguf(path)


def test_a_model_without_attention_has_no_heads(tiny: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(with_number(tiny, "llama.attention.head_count", UINT32, 0))
    assert read_gguf(path).metadata["llama.attention.head_count"] == 0


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (struct.pack("<I", 77), r"\(unknown value type 77\)"),
        (struct.pack("<IIQ", 9, 77, 1), r"\(unknown value type 77\)"),
        (struct.pack("<IIQ", 9, 77, 1000), r"\(unknown value type 77\)"),
        (struct.pack("<IIQ", 9, 9, 1), r"\(an array of arrays\)"),
    ],
)
def test_a_value_that_no_reader_knows_is_said_in_words(
    tmp_path: Path, value: bytes, said: str
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 3) + b"key" + value)
    with pytest.raises(BadInputError, match=said):
        read_gguf(path)
