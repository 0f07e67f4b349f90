"""result.json: what a run came to, read again as it was."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import shlex
from pathlib import Path
from typing import Any

import localizations
import numpy as np
import onnx
import pytest
from documents import validator
from rich.console import Console

import conrepair
from conrepair.application.cli import main
from conrepair.application.report.console import print_result
from conrepair.application.report.folder import write_folder
from conrepair.application.report.result import AuditResult
from conrepair.application.report.results import Compared, Localized, Repaired
from conrepair.application.report.saved import DOCUMENT, read_result, result_json
from conrepair.application.report.schema import RESULT
from conrepair.application.report.texts import texts_of
from conrepair.diagnosis.localization.result import RecipeFinding
from conrepair.ground.data.pictures.named_recipes import named_recipe
from conrepair.ground.runtime.errors import DataError


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A convolution padded at the other edges."""
    folder = tmp_path_factory.mktemp("pair")
    localizations.wrong_pads(folder)
    return folder / "source.onnx", folder / "target.onnx"


@pytest.fixture(scope="module")
def localized(pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Localized, Path]:
    found = conrepair.localize(*pair, in_process=True)
    return found, found.save(tmp_path_factory.mktemp("localized") / "out")


def checked(folder: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} isn't JSON")

    document: dict[str, Any] = json.loads((folder / DOCUMENT).read_text(encoding="utf-8"), parse_constant=refuse)
    validator(RESULT).validate(document)
    return document


def test_the_schema_file_is_in_step_with_the_code() -> None:
    assert RESULT.path.read_text(encoding="utf-8") == RESULT.text, "run `make schema`"


def test_a_localization_is_read_as_it_was(localized: tuple[Localized, Path]) -> None:
    found, folder = localized
    document = checked(folder)
    assert (document["kind"], document["schema_version"], document["exit_code"]) == ("localize", 1, 1)
    again = read_result(folder)
    assert result_json(again) == document
    assert result_json(dataclasses.replace(found.run, folder=folder)) == document
    assert again.versions["conrepair"] == conrepair.__version__


def shown(run: AuditResult) -> str:
    stream = io.StringIO()
    print_result(run, Console(file=stream, width=100), run.folder)
    return stream.getvalue()


def follows(run: AuditResult, folder: Path) -> AuditResult:
    """The document is read as what the run was; from it follow the console and all texts of the folder."""
    again = read_result(folder)
    assert shown(again) == shown(dataclasses.replace(run, folder=folder))
    texts = texts_of(again)
    assert texts == {name: (folder / name).read_text(encoding="utf-8") for name in texts}
    return again


def test_console_tables_and_picture_follow_from_it(localized: tuple[Localized, Path]) -> None:
    found, folder = localized
    again = follows(found.run, folder)
    assert "`conv`" in shown(again)
    machine = {"junit.xml", "results.sarif", "summary.md"}
    assert texts_of(again).keys() == {"layers.csv", "inputs.csv"} | machine


def test_it_has_the_graphs_of_both_sides_once_and_what_pairs_in_them(localized: tuple[Localized, Path]) -> None:
    found, folder = localized
    document = checked(folder)
    source, target = (document["graphs"][model.sha256] for model in (found.about.source, found.about.target))
    assert len(document["graphs"]) == 2
    (ours,) = [node for node in source["nodes"] if node["layer"] == "conv"]
    (theirs,) = [node for node in target["nodes"] if node["layer"] == "conv"]
    assert ours["attributes"]["pads"] != theirs["attributes"]["pads"]
    assert ours["parameters"]["weight"] == theirs["parameters"]["weight"]
    spread = ours["parameters"]["weight"]["spread"]
    assert spread["minimum"] < spread["mean"] < spread["maximum"]
    assert spread["std"] > 0
    for graph in (source, target):
        made = {name for node in graph["nodes"] for name in node["outputs"]} | set(graph["inputs"])
        read = {name for node in graph["nodes"] for name in node["inputs"] if name} | set(graph["outputs"])
        assert read <= made
        assert made <= graph["tensors"].keys()
    layers = document["rows"][-1]["localized"]["steps"][0]["localization"]["layers"]
    (guilty,) = [row for row in layers if row["guilty"]]
    assert theirs["name"] in guilty["target_nodes"]
    assert ours["name"] in guilty["source_nodes"]
    known = [{node["name"] for node in graph["nodes"]} for graph in (source, target)]
    for row in layers:
        assert set(row["source_nodes"]) <= known[0]
        assert set(row["target_nodes"]) <= known[1]
        assert row["target_nodes"]


def test_a_comparison_is_read_as_it_was(pair: tuple[Path, Path], tmp_path: Path) -> None:
    found: Compared = conrepair.compare(*pair, in_process=True)
    folder = found.save(tmp_path / "out")
    document = checked(folder)
    again = read_result(folder / DOCUMENT)
    assert (again.kind, result_json(again)) == ("compare", document)
    assert {"summary.txt", "execution_log.txt", "comparisons.csv"} < texts_of(follows(found.run, folder)).keys()
    lines = list(csv.DictReader((folder / "comparisons.csv").open(encoding="utf-8")))
    comparison = again.rows[-1].comparison
    assert comparison is not None
    assert comparison.worst is not None
    assert float(lines[0]["relative_l2"]) == comparison.worst.error.relative_l2


def test_a_repair_is_read_as_it_was(pair: tuple[Path, Path], tmp_path: Path) -> None:
    found: Repaired = conrepair.repair(*pair, output=tmp_path / "out", in_process=True)
    document = checked(tmp_path / "out")
    again = read_result(tmp_path / "out")
    assert (again.kind, result_json(again)) == ("repair", document)
    assert follows(found.run, tmp_path / "out").kind == "repair"
    read = dataclasses.replace(found, run=again)
    assert read.mended
    assert str(read) == str(found)
    assert read.model == found.model
    assert read.model is not None
    assert read.model.is_file()
    assert found.result is not None
    assert found.result.model is not None
    (step,) = again.rows[-1].localized.steps
    hashes = found.result.model.sha256, step.compared.source.sha256, step.compared.target.sha256
    repaired, right, wrong = (
        next(node for node in again.graphs[sha256].nodes if node.layer == "conv").attributes["pads"]
        for sha256 in hashes
    )
    assert repaired == right != wrong


def test_a_folder_may_be_moved(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Paths of files in it are told from it."""
    conrepair.repair(*pair, output=tmp_path / "out", in_process=True)
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    repaired = read_result(tmp_path / "elsewhere").rows[-1].repaired.result
    assert repaired is not None
    assert repaired.model is not None
    assert repaired.patch == str(tmp_path / "elsewhere" / "patch.json")
    assert Path(repaired.model.path).parent == tmp_path / "elsewhere"
    assert Path(repaired.model.path).is_file()


def test_a_recipe_is_in_it_when_there_is_one(tmp_path: Path) -> None:
    recipe = RecipeFinding(
        recipe=dataclasses.asdict(named_recipe("torchvision")),
        arrangement="as it is",
        found=True,
        changes=("RGB instead of BGR",),
        error=1e-6,
        error_before=0.5,
        photos=8,
        runs=12,
        complete=True,
        evidence="RGB instead of BGR",
    )
    found = localizations.made(2, {1: 0.5}, recipe=recipe)
    run = localizations.run_of(found, localizations.about(), tmp_path / "out")
    write_folder(run, lambda _: run)
    document = checked(tmp_path / "out")["rows"][0]["localized"]["steps"][0]["localization"]
    assert document["recipe"]["recipe"]["mean"] == [0.485, 0.456, 0.406]


def test_numbers_that_json_lacks(tmp_path: Path) -> None:
    broken = localizations.row(0, math.inf, introduced_cosine=math.nan, full_run_norm_ratio=-math.inf)
    found = dataclasses.replace(localizations.made(1), layers=(broken,), output_error=math.inf)
    run = localizations.run_of(found, localizations.about(), tmp_path / "out")
    write_folder(run, lambda _: run)
    told = checked(tmp_path / "out")["rows"][0]["localized"]["steps"][0]["localization"]
    layer = told["layers"][0]
    assert (layer["introduced_error"], layer["introduced_cosine"]) == ("inf", "nan")
    assert (layer["full_run_norm_ratio"], told["output_error"]) == ("-inf", "inf")
    again = read_result(tmp_path / "out").rows[0].localized.steps[0].localization
    assert again.layers[0].introduced_error == again.output_error == math.inf
    assert math.isnan(again.layers[0].introduced_cosine)


def test_other_documents_do_not_fit_the_schema(localized: tuple[Localized, Path]) -> None:
    document, changes = checked(localized[1]), [{"kind": 5}, {"more": 1}, {"schema_version": 2}, {"rows": [{}]}]
    assert not any(validator(RESULT).is_valid(document | change) for change in changes)


def test_what_is_no_result_is_said_to_be_none(localized: tuple[Localized, Path], tmp_path: Path) -> None:
    document = checked(localized[1])
    file = tmp_path / DOCUMENT
    with pytest.raises(DataError, match="isn't there"):
        read_result(tmp_path)
    file.write_text(json.dumps(document)[:1000])
    with pytest.raises(DataError, match="is damaged: "):
        read_result(tmp_path)
    file.write_text("[]")
    with pytest.raises(DataError, match="no schema_version"):
        read_result(tmp_path)
    file.write_text(json.dumps(document | {"schema_version": 99}))
    with pytest.raises(DataError, match=f"version 99.*reads version 1.*conrepair {conrepair.__version__}"):
        read_result(tmp_path)
    file.write_text(json.dumps(document | {"seconds": "soon"}))
    with pytest.raises(DataError, match="damaged, in 1 places: seconds: "):
        read_result(tmp_path)


def test_the_command_that_makes_it_again_is_in_it(pair: tuple[Path, Path], tmp_path: Path) -> None:
    words = ["compare", *map(str, pair), "-q", "-o", str(tmp_path / "the output")]
    assert main(words) == 1
    (document,) = (tmp_path / "the output").rglob(DOCUMENT)
    assert shlex.split(read_result(document).command) == ["conrepair", *words]


def test_inputs_are_named_with_both_answers(tmp_path: Path) -> None:
    """The largest error first, and those before it that are answered otherwise."""
    for name, weights in (("right", [1.0, 1.0, 1.0]), ("wrong", [1.0, 1.0, 3.0])):
        scale = onnx.numpy_helper.from_array(np.array(weights, np.float32), "w")
        ends = [onnx.helper.make_tensor_value_info(end, 1, ["n", 3]) for end in "xy"]
        node = onnx.helper.make_node("Mul", ["x", "w"], ["y"], "scaled")
        graph = onnx.helper.make_graph([node], name, ends[:1], ends[1:], [scale])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, tmp_path / f"{name}.onnx")
    rows = np.array([[3, 1, 0], [4, 1, 2], [5, 1, 1], [6, 0, 2.5]], np.float32)
    found = conrepair.compare(tmp_path / "right.onnx", tmp_path / "wrong.onnx", data=rows, in_process=True)
    inputs = read_result(found.save(tmp_path / "out")).rows[-1].inputs
    assert [(item.index, item.differs) for item in inputs] == [(1, True), (3, True), (2, False), (0, False)]
    assert inputs[0].reference == ((0, 4.0), (2, 2.0), (1, 1.0))
    assert inputs[0].candidate == ((2, 6.0), (0, 4.0), (1, 1.0))
    assert inputs[0].max_abs == 4.0
    assert inputs[0].relative_l2 == pytest.approx(4 / 21**0.5)
    assert len({item.name for item in inputs}) == 4
    assert (inputs[3].relative_l2, inputs[3].max_abs) == (0.0, 0.0)
