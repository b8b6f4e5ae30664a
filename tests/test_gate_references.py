from pathlib import Path
from typing import Any

import pytest

from bfcl_gate.aggregate import Scores
from bfcl_gate.errors import GateDataError
from bfcl_gate.references import Floor, GateDecision, Reference, decide, load_references

DIGEST = "ab" * 32
ENTRY: dict[str, str] = {
    "id": '"tiny"',
    "name": '"Tiny 1B"',
    "gguf_sha256": f'["{DIGEST}"]',
    "gguf_names": '["Tiny-1B"]',
    "quantisation": '"Q8_0"',
    "dataset": '"d"',
    "selection": '"s"',
    "overall": "50",
    "normalized": "40.5",
    "factor": "0.97",
    "tool_grammar": '"on"',
    "provenance": '"measured"',
}
FLOOR: dict[str, str] = {
    "dataset": '"d"', "selection": '"s"', "overall": "30.0", "reason": '"because"',
}  # fmt: skip


def table(kind: str, entry: dict[str, str], **changes: str | None) -> str:
    rows = {**entry, **changes}
    return f"[[{kind}]]\n" + "".join(f"{k} = {v}\n" for k, v in rows.items() if v is not None)


def load(path: Path, *tables: str) -> Any:
    file = path / "references.toml"
    file.write_text("\n".join(tables))
    return load_references(file)


def scores(overall: float | None, normalized: float | None) -> Scores:
    count = 0 if overall is None else 995
    return Scores(overall, normalized, {}, {}, count, count, {})


def official() -> Reference:
    found = load_references().find("bfcl-v4", "official", gguf_sha256=None, gguf_name="Qwen3.6 27b")
    assert isinstance(found, Reference)
    return found


@pytest.mark.parametrize(
    ("overall", "normalized", "short"),
    [
        (86.23, 87.96, []),
        (83.65, 85.33, []),
        (100.0, 100.0, []),
        (83.64, 87.96, ["overall_accuracy"]),
        (86.23, 85.32, ["normalized_single_turn_score"]),
        (83.64, 85.32, ["overall_accuracy", "normalized_single_turn_score"]),
        (None, None, ["overall_accuracy", "normalized_single_turn_score"]),
    ],
)
def test_both_scores_must_reach_their_exact_thresholds(
    overall: float | None, normalized: float | None, short: list[str]
) -> None:
    decision = decide(scores(overall, normalized), official())
    assert decision.thresholds == {
        "overall_accuracy": 83.6431,
        "normalized_single_turn_score": 85.3212,
    }
    assert decision.passed is (short == [])
    assert [line.split(":")[0] for line in decision.shortfalls] == short


def test_a_score_equal_to_its_threshold_passes(tmp_path: Path) -> None:
    text = table("reference", ENTRY, overall="90", normalized="70.1", factor="0.1")
    reference = load(tmp_path, text).references[0]
    # In binary floating point 0.1 x 70.1 is above 7.01.
    assert decide(scores(9.0, 7.01), reference).passed
    assert not decide(scores(9.0, 7.0), reference).passed


def test_any_other_model_meets_the_floor_of_the_small_set() -> None:
    floor = load_references().find("gate-mini", "all", gguf_sha256="00" * 32, gguf_name="Other")
    assert isinstance(floor, Floor)
    assert decide(scores(50.0, 0.0), floor).passed
    assert not decide(scores(49.99, 100.0), floor).passed


def test_the_file_decides_before_the_name_and_the_floor_comes_last(tmp_path: Path) -> None:
    other = {**ENTRY, "id": '"other"', "gguf_sha256": "[]", "gguf_names": '["Other"]'}
    tables = [table("reference", other), table("reference", ENTRY), table("floor", FLOOR)]
    references = load(tmp_path, *tables)

    def found(sha256: str | None, name: str | None, selection: str = "s") -> Any:
        return references.find("d", selection, gguf_sha256=sha256, gguf_name=name)

    assert found(DIGEST.upper(), "Other").id == "tiny"
    assert found("cd" * 32, "tiny_1b").id == "tiny"
    assert found(None, "OTHER").id == "other"
    assert isinstance(found("cd" * 32, "Tiny 2B"), Floor)
    assert isinstance(found(None, None), Floor)
    assert found(DIGEST, "Tiny-1B", selection="another") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"overall": None}, "'overall' is missing"),
        ({"colour": '"red"'}, "unknown key 'colour'"),
        ({"overall": "true"}, "'overall' must be a number"),
        ({"overall": '"50"'}, "'overall' must be a number"),
        ({"overall": "nan"}, "'overall' must be a number"),
        ({"overall": "0.86e4"}, "'overall' must be in percent"),
        ({"normalized": "0"}, "'normalized' must be in percent"),
        ({"factor": "97"}, "'factor' must be above 0 and at most 1"),
        ({"tool_grammar": '"maybe"'}, "'tool_grammar' must be one of on, off, server"),
        ({"provenance": '""'}, "'provenance' must be a string"),
        ({"gguf_names": '"Tiny"'}, "'gguf_names' must be a list of strings"),
        ({"gguf_names": "[]", "gguf_sha256": "[]"}, "'gguf_sha256' or 'gguf_names' is needed"),
        (
            {"gguf_sha256": '["abc"]'},
            "'gguf_sha256' must hold digests of 64 lower-case hexadecimal digits",
        ),
    ],
)
def test_a_bad_entry_is_named_with_its_fault(
    tmp_path: Path, change: dict[str, str | None], message: str
) -> None:
    other = {**ENTRY, "id": '"other"', "gguf_names": '["Other"]', "gguf_sha256": "[]"}
    with pytest.raises(GateDataError) as caught:
        load(tmp_path, table("reference", other), table("reference", ENTRY, **change))
    assert f"references.toml: [[reference]] number 2: {message}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[reference]\n", r"not valid TOML: .*line 1"),
        ("[reference]\nid = 'x'", r"write \[\[reference\]\]"),
        ("floor = [5]", "must be a table"),
        ("[[references]]", "unknown key 'references'"),
        (table("floor", FLOOR) * 2, "2 entries for d / s / any other model; keep one"),
        (table("reference", ENTRY) * 2, "2 entries for d / s / "),
        (table("floor", FLOOR, overall="500"), "'overall' must be in percent"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(GateDataError, match=message) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GateDataError, match=r"nowhere\.toml: cannot be read"):
        load_references(tmp_path / "nowhere.toml")


def test_a_decision_cannot_pass_with_a_shortfall() -> None:
    with pytest.raises(ValueError, match="if and only if"):
        GateDecision(True, {}, ("overall_accuracy: too low",))
