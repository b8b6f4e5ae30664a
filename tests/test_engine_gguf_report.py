"""The report on a model file: what it says, what it leaves open, and the closed division."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agentic.core.errors import BadInputError
from edge_agentic.core.jsonio import JsonObject
from edge_agentic.engine.gguf import read_gguf
from edge_agentic.engine.model_report import model_report
from edge_agentic.report.model import render_model
from tests.gguf_bytes import TensorRow, join, write
from tests.model_shapes import qwen36_27b, qwen36_27b_tensors, shape

MIB = 2**20
ODD_SIZES = st.one_of(
    st.integers(0, 8),
    st.sampled_from([2**31, 2**32 - 1, True, 0.5, "four"]),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
)
SIZES = (
    "block_count", "nextn_predict_layers", "embedding_length", "feed_forward_length",
    "full_attention_interval", "attention.head_count", "attention.head_count_kv",
    "attention.key_length", "attention.value_length_swa", "attention.sliding_window",
    "attention.sliding_window_pattern", "attention.recurrent_layers", "ssm.conv_kernel",
    "ssm.inner_size", "ssm.state_size", "ssm.group_count", "shortconv.l_cache", "wkv.head_size",
)  # fmt: skip
ARCHITECTURES = (
    "llama", "gemma3", "gemma4", "llama4", "qwen35", "mamba", "rwkv7", "lfm2", "nemotron_h",
    "falcon-h1", "deepseek2", "foo",
)  # fmt: skip


def report_on(
    path: Path, metadata: dict[str, Any], tensors: list[TensorRow], context: int | None = None
) -> JsonObject:
    return model_report(read_gguf(write(path / "model.gguf", metadata, tensors)), context)


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> JsonObject:
    """A file of the sizes of Qwen3.6-27B in Q4_K_M."""
    return report_on(tmp_path_factory.mktemp("official"), qwen36_27b(), qwen36_27b_tensors())


def checks(report: JsonObject) -> dict[str, bool | None]:
    return {check["name"]: check["passed"] for check in report["closed"]["checks"]}


class TestSizes:
    def test_the_parameters_of_qwen36_27b(self, official: JsonObject, tmp_path: Path) -> None:
        """26.90 and 27.32 billion, as llama.cpp prints them, without and with the draft layer."""
        assert round(official["parameters"] / 1e9, 2) == 26.90
        drafting = report_on(
            tmp_path, qwen36_27b(draft_layers=1), qwen36_27b_tensors(draft_layers=1)
        )
        assert round(drafting["parameters"] / 1e9, 2) == 27.32
        assert drafting["memory"]["next_token_layers"] == 1

    def test_a_mix_is_shown_by_its_types(self, official: JsonObject) -> None:
        quantisation = official["quantisation"]
        assert quantisation["file_type"] == "Q4_K_M"
        assert quantisation["main_type"] == "Q4_K"
        by_type = {row["type"]: row for row in quantisation["types"]}
        assert list(by_type) == ["Q4_K", "Q6_K", "F32"]
        assert [row["bits_per_weight"] for row in by_type.values()] == [4.5, 6.5625, 32]
        assert by_type["Q6_K"]["parameters"] == 5120 * 248_320
        assert by_type["Q6_K"]["bytes"] == 5120 * 248_320 * 210 // 256
        for share in ("share_of_parameters", "share_of_bytes"):
            assert sum(row[share] for row in by_type.values()) == pytest.approx(1)
        total = sum(row["bytes"] for row in by_type.values())
        assert quantisation["bits_per_weight"] == total * 8 / official["parameters"]
        assert official["memory"]["weights_bytes"] == total

    def test_smollm2(self, smollm2: Path) -> None:
        report = model_report(read_gguf(smollm2))
        types = {row["type"]: row["tensors"] for row in report["quantisation"]["types"]}
        assert types == {"Q4_1": 210, "Q8_0": 1, "F32": 61}
        assert report["quantisation"]["main_type"] == "Q4_1"
        assert report["template"] == {
            "characters": 368,
            "knows_tools": False,
            "tool_format": "generic",
        }
        assert report["memory"]["caches"]["f16"]["kv_bytes"] == 180 * MIB
        assert report["size_bytes"] == smollm2.stat().st_size


class TestMemory:
    def test_the_whole_is_weights_cache_and_state(self, official: JsonObject) -> None:
        memory = official["memory"]
        assert (memory["context_tokens"], memory["kind"]) == (32_768, "hybrid")
        assert memory["recurrent_state_bytes"] == 149.625 * MIB
        assert memory["caches"]["f16"]["kv_bytes"] == 2048 * MIB
        assert memory["caches"]["q8_0"]["kv_bytes"] == 1088 * MIB
        for cache in memory["caches"].values():
            assert cache["total_bytes"] == (
                memory["weights_bytes"] + cache["kv_bytes"] + memory["recurrent_state_bytes"]
            )

    @pytest.mark.parametrize(
        ("own", "asked", "used"),
        [(8192, None, 8192), (262_144, None, 32_768), (8192, 65_536, 65_536), (None, None, 32_768)],
    )
    def test_the_context_is_the_models_own_up_to_the_references(
        self, tmp_path: Path, own: int | None, asked: int | None, used: int
    ) -> None:
        sizes = {} if own is None else {"context_length": own}
        report = report_on(tmp_path, shape("llama", block_count=1, **sizes), [], asked)
        assert report["memory"]["context_tokens"] == used
        assert report["context_length_tokens"] == own

    @pytest.mark.parametrize("context", [0, -1, 2**24 + 1])
    def test_a_context_that_can_t_be_is_refused(self, smollm2: Path, context: int) -> None:
        with pytest.raises(BadInputError, match="--context must be from 1 to"):
            model_report(read_gguf(smollm2), context)

    def test_a_sliding_window_saves_memory(self, tmp_path: Path) -> None:
        metadata = shape(
            "gemma3",
            block_count=6,
            embedding_length=512,
            attention__head_count=2,
            attention__sliding_window=512,
        )
        memory = report_on(tmp_path, metadata, [], 8192)["memory"]
        per_cell = 2 * 512 * 2
        assert memory["caches"]["f16"]["kv_bytes"] == per_cell * 6 * 8192
        assert memory["windowed_caches"]["f16"]["kv_bytes"] == per_cell * (8192 + 5 * 1024)
        assert memory["window_tokens"] == 512


REPORTS: dict[str, tuple[dict[str, Any], list[TensorRow]]] = {
    "empty": ({}, []),
    "unknown architecture": (shape("foo"), [("w", (8, 8), "F32")]),
    "broken template": ({"tokenizer.chat_template": "{% if %}tools"}, []),
    "unknown tool form": ({"tokenizer.chat_template": "{{ tools }}<odd>"}, []),
    "odd heads": (
        shape("phi2", block_count=1, embedding_length=80, attention__head_count=1), [],
    ),
    "part": (
        {**shape("llama", block_count=1, embedding_length=8, attention__head_count=1),
         "split.no": 1, "split.count": 3}, [("w", (8, 8), "F32")],
    ),
    "recurrent": (
        shape("mamba", block_count=1, ssm__conv_kernel=4, ssm__inner_size=8, ssm__state_size=2), [],
    ),
    "wrong sizes": (shape("llama", block_count=4, embedding_length=8,
                          attention__head_count_kv=[1]), []),
}  # fmt: skip


@pytest.mark.parametrize("name", REPORTS)
def test_every_null_has_its_reason_and_no_reason_is_left_over(tmp_path: Path, name: str) -> None:
    assert_nulls_have_reasons(report_on(tmp_path, *REPORTS[name]))


@settings(max_examples=150, deadline=None)
@given(
    architecture=st.sampled_from(ARCHITECTURES),
    sizes=st.dictionaries(st.sampled_from(SIZES), ODD_SIZES),
)
def test_no_sizes_are_too_odd_for_a_report(
    tmp_path_factory: pytest.TempPathFactory, architecture: str, sizes: dict[str, Any]
) -> None:
    metadata = {
        "general.architecture": architecture,
        **{f"{architecture}.{name}": item for name, item in sizes.items()},
    }
    try:
        report = report_on(tmp_path_factory.getbasetemp(), metadata, [])
    except BadInputError as error:
        assert "model sizes" in str(error)
    else:
        assert_nulls_have_reasons(report)
        assert list(render_model(report))


def assert_nulls_have_reasons(report: JsonObject) -> None:
    reasons = report.pop("null_reasons")
    checked = {key: item for key, item in report.items() if key != "closed"}
    assert set(_nulls(checked)) == set(reasons)
    assert all(reasons.values())
    report["null_reasons"] = reasons


def _nulls(value: Any, place: str = "") -> Iterator[str]:
    if value is None:
        yield place
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _nulls(item, f"{place}.{key}" if place else key)


class TestClosedDivision:
    def test_the_official_model_qualifies(self, official: JsonObject) -> None:
        found = checks(official)
        # Whether the weights are the published ones can't be seen in a header.
        assert found.pop("weights") is None
        assert len(found) == 7 and all(found.values())
        assert official["closed"]["qualifies"] is True
        assert official["template"]["tool_format"] == "qwen3_xml"

    def test_so_does_the_file_with_a_draft_layer(self, tmp_path: Path) -> None:
        report = report_on(tmp_path, qwen36_27b(draft_layers=1), qwen36_27b_tensors(draft_layers=1))
        assert report["closed"]["qualifies"] is True

    @pytest.mark.parametrize(
        ("changes", "failed"),
        [
            ({"general.name": "Qwen3.5-27B"}, {"name"}),
            ({"general.name": "Qwen3.6-27B-Tuned"}, {"name"}),
            ({"general.name": ""}, {"name"}),
            ({"general.architecture": "llama"}, {"architecture", "sizes", "context"}),
            ({"qwen35.block_count": 60}, {"sizes"}),
            ({"qwen35.full_attention_interval": 8}, {"sizes"}),
            ({"qwen35.ssm.inner_size": 4096}, {"sizes"}),
            ({"qwen35.context_length": 16_384}, {"context"}),
            ({"split.count": 2}, {"parameters"}),
            ({"tokenizer.chat_template": ""}, {"tool calls"}),
            ({"tokenizer.chat_template": "{{ messages }}"}, {"tool calls"}),
            ({"tokenizer.chat_template": "{{ tools <tool_call>"}, {"tool calls"}),
            ({"tokenizer.chat_template": "{{ tools }}<odd>"}, {"tool calls"}),
        ],
    )
    def test_what_keeps_a_model_out(
        self, tmp_path: Path, changes: dict[str, Any], failed: set[str]
    ) -> None:
        report = report_on(tmp_path, qwen36_27b(**changes), qwen36_27b_tensors())
        assert {name for name, passed in checks(report).items() if passed is False} == failed
        assert report["closed"]["qualifies"] is False

    @pytest.mark.parametrize(
        "name", ["Qwen3.6-27B", "Qwen3.6 27B", "qwen3.6-27b", "Qwen_Qwen3.6 27B"]
    )
    def test_how_the_name_may_be_written(self, tmp_path: Path, name: str) -> None:
        report = report_on(tmp_path, qwen36_27b(**{"general.name": name}), [])
        assert checks(report)["name"] is True

    @pytest.mark.parametrize(
        ("main_type", "passed"),
        [
            ("Q4_0", True), ("Q4_K", True), ("IQ4_XS", True), ("MXFP4", True), ("NVFP4", True),
            ("Q3_K", False), ("Q5_K", False), ("Q8_0", False), ("BF16", False),
        ],
    )  # fmt: skip
    def test_most_parameters_are_in_a_4_bit_type(
        self, tmp_path: Path, main_type: str, passed: bool
    ) -> None:
        report = report_on(tmp_path, qwen36_27b(), qwen36_27b_tensors(main_type=main_type))
        assert checks(report)["4-bit weights"] is passed

    def test_a_pruned_model_has_too_few_parameters(self, tmp_path: Path) -> None:
        tensors = [row for row in qwen36_27b_tensors() if ".6" not in row[0]]
        assert checks(report_on(tmp_path, qwen36_27b(), tensors))["parameters"] is False


class TestShown:
    def test_a_person_reads_the_same_figures(self, official: JsonObject) -> None:
        text = "\n".join(render_model(official))
        for line in (
            "model.gguf",
            "architecture     qwen35",
            "parameters       26.90 billion in 851 tensors",
            "file type        Q4_K_M",
            "mostly Q4_K",
            "own context      262144 tokens",
            "knows tools    yes",
            "Memory with a context of 32768 tokens",
            "kind             hybrid",
            "recurrent state  149.62 MiB",
            "pass  sizes: 64 layers of the published sizes",
            "  ?   weights: not in the header (needed: ",
        ):
            assert line in text
        rows = [line.split() for line in text.splitlines()]
        assert ["q8_0", "1.06", "GiB"] in [row[:3] for row in rows]
        assert max(len(line) for line in text.splitlines() if "needed" not in line) <= 80

    def test_what_is_not_known_is_a_dash_with_its_reason(self, tmp_path: Path) -> None:
        text = "\n".join(render_model(report_on(tmp_path, *REPORTS["unknown architecture"])))
        assert "name             - (not in the header)" in text
        assert "kind             - (how llama.cpp lays out a context of architecture 'foo'" in text
        assert "The closed division can't take this model" in text

    @pytest.mark.parametrize("name", REPORTS)
    def test_every_report_can_be_shown(self, tmp_path: Path, name: str) -> None:
        assert list(render_model(report_on(tmp_path, *REPORTS[name])))

    def test_both_caches_of_a_sliding_window_are_shown(self, tmp_path: Path) -> None:
        metadata = shape("gemma2", block_count=2, embedding_length=512, attention__head_count=2)
        lines = list(render_model(report_on(tmp_path, metadata, [], 16_384)))
        assert any("KV cache" in line and "KV windowed" in line for line in lines)
        assert any(line.split()[:3] == ["f16", "64.00", "MiB"] for line in lines)

    def test_text_from_the_file_can_t_steer_the_terminal(self, tmp_path: Path) -> None:
        hostile = "\x1b[2Jname\r\nforged: pass\u202e"
        metadata = {"general.architecture": hostile, "general.name": hostile}
        text = "\n".join(render_model(report_on(tmp_path, metadata, [])))
        assert not {"\x1b", "\r", "\u202e"} & set(text)
        assert not any(line.startswith("forged") for line in text.splitlines())


class TestCommand:
    def run(self, cli: list[str], *words: object) -> subprocess.CompletedProcess[str]:
        command = [*cli, "inspect", "model", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def test_json_is_the_report(self, cli: list[str], smollm2: Path) -> None:
        done = self.run(cli, smollm2, "--json", "--context", 4096)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout) == model_report(read_gguf(smollm2), 4096)

    def test_nothing_in_the_json_can_drive_the_terminal(
        self, cli: list[str], tmp_path: Path
    ) -> None:
        hostile = "\x9b2Jname\u202e"
        path = write(tmp_path / "model.gguf", {"general.name": hostile})
        done = self.run(cli, path, "--json")
        assert not {"\x9b", "\u202e"} & set(done.stdout)
        assert json.loads(done.stdout)["name"] == hostile

    def test_a_model_by_its_name(self, cli: list[str], smollm2: Path) -> None:
        done = self.run(cli, "smollm2-135m")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(smollm2.name)

    def test_without_jinja_the_template_is_left_open(self, tmp_path: Path) -> None:
        path = write(tmp_path / "model.gguf", qwen36_27b(), qwen36_27b_tensors())
        code = (
            "import sys; sys.modules['jinja2'] = None; "
            "from edge_agentic.cli.main import main; main()"
        )
        command = [sys.executable, "-c", code, "inspect", "model", str(path), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        report = json.loads(done.stdout)
        assert report["template"]["knows_tools"] is None
        assert "pip install" in report["null_reasons"]["template.knows_tools"]
        assert checks(report)["tool calls"] is None

    def test_a_broken_file_is_one_line_and_exit_code_2(
        self, cli: list[str], tmp_path: Path
    ) -> None:
        path = tmp_path / "model.gguf"
        path.write_bytes(join([], tensor_count=2**40))
        done = self.run(cli, path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("error: ")
        assert "damaged GGUF at byte 8 of 24: counts:" in done.stderr
