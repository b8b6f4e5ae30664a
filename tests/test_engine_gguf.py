"""GGUF headers: what they say, and files that are damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agentic.core.errors import BadInputError
from edge_agentic.engine.gguf import read_gguf
from edge_agentic.engine.model_report import model_report
from tests.gguf_bytes import TYPE_NUMBERS, entry, join, pair, text, write
from tests.tiny_gguf import FLOAT32, UINT32, build, with_number


def test_the_header_of_a_real_model(smollm2: Path) -> None:
    info = read_gguf(smollm2)
    assert (info.architecture, info.quantisation, info.version) == ("llama", "Q4_1", 3)
    assert info.context_length_tokens == 8192
    assert info.parameter_count == 134_515_008
    assert info.chat_template and "<|im_start|>" in info.chat_template
    assert info.weights_bytes <= info.size_bytes


def test_a_header_that_another_writer_made(tmp_path: Path) -> None:
    info = read_gguf(build(tmp_path / "tiny.gguf", "sliding_window"))
    assert (info.architecture, info.name, info.quantisation) == ("gemma3", "tiny", "F32")
    assert info.hyper_parameter("attention.sliding_window") == 16
    by_name = {tensor.name: tensor for tensor in info.tensors}
    assert by_name["blk.5.ffn_up.weight"].shape == (32, 64)
    assert by_name["blk.5.ffn_up.weight"].size_bytes == 32 * 64 * 4
    assert "tokenizer.ggml.tokens" in info.metadata


@pytest.mark.parametrize("layers", [66, 512])
def test_a_value_for_each_layer_is_kept(tmp_path: Path, layers: int) -> None:
    key = "llama.attention.head_count_kv"
    path = write(tmp_path / "m.gguf", {"general.architecture": "llama", key: [8] * layers})
    assert read_gguf(path).metadata[key] == [8] * layers


@pytest.mark.parametrize("items", [[7] * 513, ["token"] * 513, [True] * 100_000])
def test_a_longer_array_is_passed_over(tmp_path: Path, items: list[object]) -> None:
    path = write(tmp_path / "m.gguf", {"long": items, "after": 5})
    assert read_gguf(path).metadata == {"after": 5}


def test_only_the_header_of_a_large_file_is_read(tmp_path: Path) -> None:
    counters = Path("/proc/self/io")
    if not counters.exists():
        pytest.skip("the kernel does not count what a process reads")
    path = write(tmp_path / "m.gguf", {"k": 1}, [("w", (2**13, 2**20), "Q8_0")])
    assert path.stat().st_size > 8 * 2**30
    before = _read_characters(counters)
    assert read_gguf(path).parameter_count == 2**33
    assert _read_characters(counters) - before < 4 * 2**20


def _read_characters(counters: Path) -> int:
    return int(counters.read_text().split()[1])


F32, Q4_K = TYPE_NUMBERS["F32"], TYPE_NUMBERS["Q4_K"]
KEY = pair("general.architecture", "llama")
ONE = entry("a", (8,), F32, 0)
HEADER = 24


def _raw(kind: int, body: bytes) -> bytes:
    return text("key") + struct.pack("<I", kind) + body


# Damage, the byte where it is found, the check that finds it, and what is said.
BROKEN = {
    "version missing": (b"GGUF", 4, "file start", "cut short: a value of 4 bytes"),
    "counts missing": (join([])[:12], 8, "counts", "cut short"),
    "more tensors than bytes": (
        join([KEY], tensor_count=100), 8, "counts", "100 tensors can't be",
    ),
    "absurd tensors": (
        join([KEY], tensor_count=2**63), 8, "counts", f"{2**63} tensors can't be",
    ),
    "absurd pairs": (
        join([KEY], pair_count=2**64 - 1), 16, "counts", f"{2**64 - 1} metadata pairs can't be",
    ),
    "key cut": (join([KEY + KEY[:12]], pair_count=2), HEADER + len(KEY), "metadata",
                "a string of 20 bytes runs past the end"),
    "number cut": (
        join([text("a key of some length") + struct.pack("<IH", 4, 7)]), HEADER + 32, "metadata",
        "cut short: a value of 4 bytes",
    ),
    "endless key": (
        join([struct.pack("<Q", 2**60) + bytes(16)]), HEADER, "metadata",
        f"a string of {2**60} bytes runs past the end",
    ),
    "endless text": (
        join([_raw(8, struct.pack("<Q", 2**60))]), HEADER + 15, "metadata",
        f"a string of {2**60} bytes runs past the end",
    ),
    "endless array": (
        join([_raw(9, struct.pack("<IQ", 10, 2**60))]), HEADER + 15, "metadata",
        f"an array of {2**60} values runs past the end",
    ),
    "endless array of texts": (
        join([_raw(9, struct.pack("<IQ", 8, 2**60))]), HEADER + 15, "metadata",
        f"an array of {2**60} strings runs past the end",
    ),
    "text in a long array": (
        join([_raw(9, struct.pack("<IQ", 8, 600) + text("") * 599 + b"\xff" * 8)]),
        HEADER + 27 + 599 * 8, "metadata", "a string of 18446744073709551615 bytes",
    ),
    "unknown value type": (
        join([_raw(77, bytes(8))]), HEADER + 11, "metadata", "unknown value type 77",
    ),
    "unknown item type": (
        join([_raw(9, struct.pack("<IQ", 77, 1))]), HEADER + 15, "metadata",
        "unknown value type 77",
    ),
    "array of arrays": (
        join([_raw(9, struct.pack("<IQ", 9, 1))]), HEADER + 15, "metadata", "an array of arrays",
    ),
    "empty key": (join([pair("", "enough")]), HEADER, "metadata", "an empty key"),
    "key twice": (
        join([KEY, KEY]), HEADER + len(KEY), "metadata",
        "key 'general.architecture' a second time",
    ),
    "architecture is a number": (
        join([pair("general.architecture", 5)]), HEADER + 28, "metadata",
        "general.architecture is 5, not a text",
    ),
    "template is a list": (
        join([pair("tokenizer.chat_template", ["x"])]), HEADER + 31, "metadata",
        r"tokenizer.chat_template is \['x'\], not a text",
    ),
    "file type is a text": (
        join([pair("general.file_type", "Q4_K_M")]), HEADER + 25, "metadata",
        "general.file_type is 'Q4_K_M', not a whole number",
    ),
    "alignment of 24": (
        join([pair("general.alignment", 24)]), HEADER + 25, "metadata",
        "general.alignment is 24, not a power of two",
    ),
    "alignment of 0": (
        join([pair("general.alignment", 0)]), HEADER + 25, "metadata",
        "general.alignment is 0, not a power of two",
    ),
    "table cut": (
        join([KEY], [ONE, ONE[:-9]]), HEADER + len(KEY + ONE) + 21, "tensor table", "cut short",
    ),
    "five dimensions": (
        join([KEY], [entry("a", (1,) * 5, F32, 0)]), HEADER + len(KEY) + 9, "tensor table",
        "tensor 'a' has 5 dimensions",
    ),
    "shape too large": (
        join([KEY], [entry("a", (2**32, 2**32), F32, 0)]), HEADER + len(KEY) + 9, "tensor table",
        r"tensor 'a' of shape \[4294967296, 4294967296\] is too large",
    ),
    "shape too large for its zero": (
        join([KEY], [entry("a", (2**40, 2**40, 0), F32, 0)]), HEADER + len(KEY) + 9,
        "tensor table", "is too large",
    ),
    "unknown tensor type": (
        join([KEY], [entry("a", (8,), 4, 0)]), HEADER + len(KEY) + 21, "tensor table",
        "tensor 'a' is of the unknown type 4",
    ),
    "half a block": (
        join([KEY], [entry("a", (128, 2), Q4_K, 0)]), HEADER + len(KEY) + 9, "tensor table",
        "tensor 'a' has rows of 128, no multiple of Q4_K's 256",
    ),
    "long name": (
        join([KEY], [entry("a" * 64, (8,), F32, 0)]), HEADER + len(KEY), "tensor table",
        "a tensor name of 64 bytes",
    ),
    "tensor twice": (
        join([KEY], [ONE, ONE]), HEADER + len(KEY + ONE), "tensor table",
        "tensor 'a' a second time",
    ),
    "misaligned": (
        join([KEY], [ONE, entry("b", (8,), F32, 40)]) + bytes(200), HEADER + len(KEY + ONE),
        "weights", "tensor 'b' at offset 40 is not aligned to 32 bytes",
    ),
    "overlap": (
        join([KEY], [entry("a", (9,), F32, 0), entry("b", (8,), F32, 32)]) + bytes(200),
        HEADER + len(KEY + ONE), "weights",
        "tensor 'b' at offset 32 overlaps the one before; it must be at 64",
    ),
    "gap": (
        join([KEY], [ONE, entry("b", (8,), F32, 64)]) + bytes(200), HEADER + len(KEY + ONE),
        "weights", "tensor 'b' at offset 64 leaves a gap; it must be at 32",
    ),
    "first not at the start": (
        join([KEY], [entry("a", (8,), F32, 32)]) + bytes(200), HEADER + len(KEY), "weights",
        "leaves a gap",
    ),
    "beyond the file": (
        join([KEY], [entry("a", (2**50,), F32, 0)]) + bytes(200), HEADER + len(KEY), "weights",
        "cut short: tensor 'a' ends at byte",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "byte", "check", "said"), [pytest.param(*row, id=name) for name, row in BROKEN.items()]
)
def test_damage_is_one_line_with_its_byte_and_the_check_that_found_it(
    tmp_path: Path, raw: bytes, byte: int, check: str, said: str
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(raw)
    start = f"model.gguf: damaged GGUF at byte {byte} of {len(raw)}: {check}: "
    with pytest.raises(BadInputError, match=f"{start}.*{said}.*; fetch the file again$") as caught:
        read_gguf(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "not a GGUF file"),
        (b"GGU", "not a GGUF file"),
        (b"PK\x03\x04" + bytes(100), "not a GGUF file"),
        (join([], version=99), r"GGUF version 99 \(at byte 4\)"),
        (join([], version=1), r"GGUF version 1 \(at byte 4\)"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "a big-endian GGUF .*; convert it to little-"),
        (b"GGUF" + struct.pack(">IQQ", 2, 0, 0), "a big-endian GGUF"),
    ],
)
def test_a_file_of_another_kind_is_named(tmp_path: Path, raw: bytes, said: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(raw)
    with pytest.raises(BadInputError, match=said):
        read_gguf(path)


def test_a_header_without_end_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    start = join([_raw(9, struct.pack("<IQ", 0, 2**30))])
    with path.open("wb") as file:
        file.write(start)
        file.truncate(2**31)
    with pytest.raises(BadInputError, match="metadata: the header goes on past 134217728 bytes"):
        read_gguf(path)


@pytest.mark.parametrize("kept", [0.5, 0.999_999])
def test_weights_that_are_missing_are_found_by_the_table(
    smollm2: Path, tmp_path: Path, kept: float
) -> None:
    path = tmp_path / "model.gguf"
    raw = smollm2.read_bytes()
    path.write_bytes(raw[: int(len(raw) * kept)])
    with pytest.raises(BadInputError, match=r"weights: cut short: tensor '.*' ends at byte"):
        read_gguf(path)


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
    byte = tiny.index(f"llama.{key}".encode()) + len(f"llama.{key}")
    with pytest.raises(BadInputError, match=f"at byte {byte} of .*: model sizes: {said}"):
        read_gguf(path)


def test_a_size_that_is_no_integer_is_named(tiny: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(with_number(tiny, "llama.block_count", FLOAT32, 2.0))
    with pytest.raises(BadInputError, match=r"llama.block_count is 2\.0, not a whole number"):
        read_gguf(path)


@pytest.mark.parametrize("found", [[2, 2], [2] * 600])
def test_the_number_of_layers_is_no_list(tmp_path: Path, found: list[int]) -> None:
    metadata = {"general.architecture": "llama", "llama.block_count": found}
    path = write(tmp_path / "model.gguf", metadata)
    with pytest.raises(BadInputError, match=r"llama.block_count is .*, not a whole number"):
        read_gguf(path)


def test_a_model_without_attention_has_no_heads(tiny: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(with_number(tiny, "llama.attention.head_count", UINT32, 0))
    assert read_gguf(path).metadata["llama.attention.head_count"] == 0


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_damage_to_a_header_raises_anything_else(
    tiny: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    raw = bytearray(tiny[: data.draw(st.sampled_from([len(tiny), 12_000, 3000, 200]))])
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(4, min(len(raw), 14_000) - 1))
        piece = data.draw(st.binary(min_size=1, max_size=8))
        raw[place : place + len(piece)] = piece
    path = tmp_path_factory.getbasetemp() / "fuzzed.gguf"
    path.write_bytes(raw)
    try:
        report = model_report(read_gguf(path))
    except BadInputError as error:
        assert str(path) in str(error)
    else:
        assert report["parameters"] >= 0
