import json
from pathlib import Path
from typing import Any

import pytest

from bfcl_gate.cases import Case, load_dataset
from bfcl_gate.errors import GateDataError
from bfcl_gate.subsets import subset_of

FUNCTION = {
    "name": "f",
    "description": "",
    "parameters": {
        "type": "dict",
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
    },
}


def question(case_id: str, **changes: Any) -> dict[str, Any]:
    turn = [{"role": "user", "content": "hi"}]
    return {"id": case_id, "question": [turn], "function": [FUNCTION], **changes}


def answer(case_id: str, truth: Any = None) -> dict[str, Any]:
    return {"id": case_id, "ground_truth": [{"f": {"x": [1]}}] if truth is None else truth}


def write(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows))  # no last newline


def write_set(
    root: Path, questions: list[Any], answers: list[Any], subset: str = "multiple"
) -> None:
    write(root / f"BFCL_v4_{subset}.json", *questions)
    write(root / "possible_answer" / f"BFCL_v4_{subset}.json", *answers)


def test_cases_come_in_file_order_and_the_last_newline_may_be_missing(tmp_path: Path) -> None:
    ids = ["multiple_2", "multiple_0", "multiple_1"]
    write_set(tmp_path, [question(i) for i in ids], [answer(i) for i in sorted(ids)])
    cases = load_dataset(tmp_path).cases
    assert [case.id for case in cases] == ids
    assert cases[0].ground_truth == ({"f": {"x": [1]}},)


def test_a_subset_without_expected_calls_needs_no_answer_file(tmp_path: Path) -> None:
    write(tmp_path / "BFCL_v4_irrelevance.json", question("irrelevance_0", function=[]))
    assert load_dataset(tmp_path).cases[0].ground_truth is None


def test_files_of_other_benchmarks_are_left_alone(tmp_path: Path) -> None:
    write_set(tmp_path, [question("multiple_0")], [answer("multiple_0")])
    (tmp_path / "BFCL_v4_memory.json").write_text("not even JSON")
    assert len(load_dataset(tmp_path).cases) == 1


def test_the_name_is_the_callers_or_in_dataset_toml_or_the_directorys(tmp_path: Path) -> None:
    root = tmp_path / "some-set"
    write_set(root, [question("multiple_0")], [answer("multiple_0")])
    assert load_dataset(root).name == "some-set"
    (root / "dataset.toml").write_text('name = "mine"')
    assert load_dataset(root).name == "mine"
    assert load_dataset(root, name="theirs").name == "theirs"


def test_the_digest_depends_on_every_byte_and_not_on_the_place(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_set(tmp_path / name, [question("multiple_0")], [answer("multiple_0")])
    first = load_dataset(tmp_path / "a").sha256
    assert len(first) == 64
    assert load_dataset(tmp_path / "b").sha256 == first
    path = tmp_path / "b" / "possible_answer" / "BFCL_v4_multiple.json"
    path.write_text(path.read_text() + "\n")
    assert load_dataset(tmp_path / "b").sha256 != first


def test_only_the_named_subsets_are_loaded(tmp_path: Path) -> None:
    write_set(tmp_path, [question("multiple_0")], [answer("multiple_0")])
    write_set(tmp_path, [question("simple_java_0")], [answer("simple_java_0")], "simple_java")
    cases = load_dataset(tmp_path, subsets=["multiple"]).cases
    assert [case.id for case in cases] == ["multiple_0"]


@pytest.mark.parametrize(
    ("subset", "schema", "message"),
    [
        ("simple_java", {"type": "long"}, None),
        ("simple_java", {"type": "ArrayList", "items": {"type": "String"}}, None),
        ("simple_java", {"type": "ArrayList"}, "'items' must have a 'type' of"),
        (
            "simple_java",
            {"type": "Array", "items": {"type": "string"}},
            "'items' must have a 'type'",
        ),
        ("simple_java", {"type": "Boolean"}, "type 'Boolean' is not one of Array, ArrayList, "),
        ("simple_javascript", {"type": "Bigint"}, None),
        ("simple_javascript", {"type": "dict", "properties": {"y": {"type": "?"}}}, None),
        ("simple_javascript", {"type": "array"}, "'items' must have a 'type' of"),
        ("simple_javascript", {"type": "long"}, "type 'long' is not one of Bigint, "),
        ("multiple", {"type": "long"}, "type 'long' is not one of any, "),
    ],
)
def test_declared_types_are_those_of_the_subsets_language(
    tmp_path: Path, subset: str, schema: dict[str, Any], message: str | None
) -> None:
    asked = question(f"{subset}_0", **with_parameters(properties={"x": schema}))
    write_set(tmp_path, [asked], [answer(f"{subset}_0")], subset)
    if message is None:
        assert load_dataset(tmp_path).cases[0].functions == tuple(asked["function"])
        return
    with pytest.raises(GateDataError) as caught:
        load_dataset(tmp_path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("questions", "answers", "message"),
    [
        (
            ["multiple_0", "multiple_0"],
            ["multiple_0"],
            r"json:2: id 'multiple_0' is also on line 1",
        ),
        (["multiple_0"], ["multiple_0", "multiple_0"], r"possible_answer/.*:2: .* also on line 1"),
        (["multiple_0", "multiple_1"], ["multiple_1"], r"json:1: id 'multiple_0': no answer in"),
        (["multiple_0"], ["multiple_0", "multiple_7"], r":2: id 'multiple_7': no question in"),
        (["parallel_0"], ["parallel_0"], r":1: id 'parallel_0': the id belongs to subset parallel"),
        (["hello"], ["hello"], r":1: id 'hello': case id 'hello' starts with the name of no BFCL"),
    ],
)
def test_ids_that_do_not_pair_are_refused(
    tmp_path: Path, questions: list[str], answers: list[str], message: str
) -> None:
    write_set(tmp_path, [question(i) for i in questions], [answer(i) for i in answers])
    with pytest.raises(GateDataError, match=message):
        load_dataset(tmp_path)


def with_parameters(**changes: Any) -> dict[str, Any]:
    parameters = {**FUNCTION["parameters"], **changes}
    return {"function": [{**FUNCTION, "parameters": parameters}]}


@pytest.mark.parametrize(
    ("changes", "truth", "message"),
    [
        ({"question": []}, None, "exactly one turn"),
        ({"question": [[], []]}, None, "exactly one turn"),
        ({"question": [[]]}, None, "at least one message"),
        ({"question": [["hi"]]}, None, "each message needs a 'role'"),
        ({"question": [[{"role": "user", "content": 5}]]}, None, "each message needs"),
        ({"function": None}, None, "'function' must be a list"),
        ({"function": [{"parameters": {}}]}, None, "needs a 'name' string"),
        ({"function": [FUNCTION, FUNCTION]}, None, "described twice"),
        ({"function": [{"name": "f"}]}, None, "function 'f': 'parameters' must be"),
        (with_parameters(required=None), None, "'required' must be a list"),
        (with_parameters(properties={"x": {}}), None, "'x': type None is not one of"),
        (with_parameters(properties={"x": {"type": ["any"]}}), None, "is not one of"),
        (with_parameters(properties={"x": {"type": "array"}}), None, "'items' must have a 'type'"),
        ({}, [], "at least one expected call"),
        ({}, [{}], "one function name"),
        ({}, [{"g": {}}], "'g' is not described in the question"),
        ({}, [{"f": []}], "expected parameters must be an object"),
        ({}, [{"f": {"x": 1}}], "accepted values must be a list"),
        ({}, [{"f": {"x": [{"k": 1}]}}], "each key of an accepted object"),
        ({}, [{"f": {"x": [[{"k": 1}]]}}], "each key of an accepted object"),
        ({}, [{"f": {"x": [1]}}] * 2, "exactly one expected call"),
    ],
)
def test_a_row_of_the_wrong_shape_is_refused_with_its_line_and_id(
    tmp_path: Path, changes: dict[str, Any], truth: Any, message: str
) -> None:
    write_set(tmp_path, [question("multiple_0", **changes)], [answer("multiple_0", truth)])
    with pytest.raises(GateDataError) as caught:
        load_dataset(tmp_path)
    assert message in str(caught.value)
    assert "BFCL_v4_multiple.json:1: id 'multiple_0': " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'\n{"id": "multiple_0", "quest', r":2: not a whole JSON object"),
        (b'\n\n{"id": "multiple_\xff"}', r":3: not UTF-8 at byte 18"),
        (b"[1, 2]", r":1: not an object with an 'id' string"),
        (b'{"id": 7}', r":1: not an object with an 'id' string"),
        (b"[" * 100_000, r":1: not a whole JSON object"),
        (b"", r"no case"),
    ],
)
def test_a_file_that_is_not_json_lines_is_refused(
    tmp_path: Path, data: bytes, message: str
) -> None:
    (tmp_path / "BFCL_v4_irrelevance.json").write_bytes(data)
    with pytest.raises(GateDataError, match=message):
        load_dataset(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GateDataError, match=r"no BFCL_v4_<subset>\.json file"):
        load_dataset(tmp_path / "nowhere")
    write(tmp_path / "BFCL_v4_multiple.json", question("multiple_0"))
    with pytest.raises(GateDataError, match=r"possible_answer/BFCL_v4_multiple\.json: cannot be"):
        load_dataset(tmp_path)
    with pytest.raises(GateDataError, match="unknown subset 'nonsense'"):
        load_dataset(tmp_path, subsets=["nonsense"])


@pytest.mark.parametrize("text", ["name = ", "name = 5", 'title = "x"', 'name = ""'])
def test_a_bad_dataset_toml_is_refused(tmp_path: Path, text: str) -> None:
    write_set(tmp_path, [question("multiple_0")], [answer("multiple_0")])
    (tmp_path / "dataset.toml").write_text(text)
    with pytest.raises(GateDataError, match=r"dataset\.toml: "):
        load_dataset(tmp_path)


@pytest.mark.parametrize(
    ("case_id", "subset"),
    [
        ("live_multiple_17-4-9", "live_multiple"),
        ("simple_java_36", "simple_java"),
        ("simple_javascript_3", "simple_javascript"),
        ("parallel_5", "parallel"),
        ("parallel_multiple_5", "parallel_multiple"),
        ("live_parallel_multiple_0-0-0", "live_parallel_multiple"),
        ("simple_python_mini-3", "simple_python"),
    ],
)
def test_the_subset_of_an_id_is_its_longest_known_start(case_id: str, subset: str) -> None:
    assert subset_of(case_id).name == subset


@pytest.mark.parametrize("case_id", ["", "multiple", "multiples_1", "multi_turn_base_0"])
def test_an_id_of_no_subset_is_refused(case_id: str) -> None:
    with pytest.raises(ValueError, match="no BFCL subset"):
        subset_of(case_id)


def test_a_string_of_choices_in_an_accepted_object_is_taken(tmp_path: Path) -> None:
    # Official data has one.
    truth = [{"f": {"x": [{"k": "abc"}]}}]
    write_set(tmp_path, [question("multiple_0")], [answer("multiple_0", truth)])
    assert load_dataset(tmp_path).cases[0].ground_truth == tuple(truth)


def test_expected_calls_where_none_is_due_are_refused() -> None:
    message = ({"role": "user", "content": "hi"},)
    with pytest.raises(ValueError, match="takes no expected calls"):
        Case("irrelevance_0", "irrelevance", message, (), ({"f": {}},))
    with pytest.raises(ValueError, match="needs expected calls"):
        Case("multiple_0", "multiple", message, ())


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ("a = " + "[" * 10_000, "not valid TOML"),
        ("a = " + "9" * 5_000, "not valid TOML"),
        ('name = "two words"', "'name' must be 1 to 256 ASCII characters without spaces"),
        ("name = 3", "'name' must be 1 to 256 ASCII characters without spaces"),
    ],
)
def test_an_unusable_dataset_toml_is_named(tmp_path: Path, about: str, said: str) -> None:
    write_irrelevance(tmp_path, "irrelevance_0")
    (tmp_path / "dataset.toml").write_text(about)
    with pytest.raises(GateDataError, match=said):
        load_dataset(tmp_path)


@pytest.mark.parametrize("case_id", ["irrelevance_\ud800", "irrelevance_\x07", "irrelevance_ 1"])
def test_an_id_is_plain_ascii(tmp_path: Path, case_id: str) -> None:
    write_irrelevance(tmp_path, case_id)
    with pytest.raises(GateDataError, match=r"json:1: an id must be 1 to 256 ASCII characters"):
        load_dataset(tmp_path)


def test_a_name_that_is_no_file_is_not_left_out(tmp_path: Path) -> None:
    write_irrelevance(tmp_path, "irrelevance_0")
    (tmp_path / "BFCL_v4_live_irrelevance.json").mkdir()
    with pytest.raises(GateDataError, match="is no regular file"):
        load_dataset(tmp_path)
    (tmp_path / "BFCL_v4_live_irrelevance.json").rmdir()
    (tmp_path / "BFCL_v4_live_irrelevance.json").symlink_to("nowhere")
    with pytest.raises(GateDataError, match="cannot be read"):
        load_dataset(tmp_path)


def test_a_line_nested_too_deeply_is_named(tmp_path: Path) -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(450):
        deep = {"type": "dict", "properties": {"x": deep}}
    write_irrelevance(tmp_path, "irrelevance_0", [{"name": "f", "parameters": deep}])
    with pytest.raises(GateDataError, match=r"json:1: .*nested more than 200 levels deep"):
        load_dataset(tmp_path)


def test_a_file_without_an_end_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "BFCL_v4_irrelevance.json").open("wb") as file:
        file.truncate(60 << 30)
    with pytest.raises(GateDataError, match="has more than 268435456 bytes"):
        load_dataset(tmp_path)


def write_irrelevance(root: Path, case_id: str, functions: list[Any] | None = None) -> None:
    row = {
        "id": case_id,
        "question": [[{"role": "user", "content": "hi"}]],
        "function": functions or [],
    }
    (root / "BFCL_v4_irrelevance.json").write_text(json.dumps(row) + "\n")
