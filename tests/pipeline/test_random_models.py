"""Models that are random, in whole comparisons: nothing can be told from their answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from conrepair.cli import main
from conrepair.config.load import parse_config
from conrepair.evaluate.verdict import Verdict
from conrepair.pipeline.audit import run_audit
from conrepair.runtime.progress import ProgressDisplay

CASES = {
    "added noise": [
        helper.make_node("RandomNormalLike", ["x"], ["drawn"]),
        helper.make_node("Add", ["x", "drawn"], ["y"]),
    ],
    "seeded noise": [
        helper.make_node("RandomUniformLike", ["x"], ["drawn"], seed=3.0),
        helper.make_node("Add", ["x", "drawn"], ["y"]),
    ],
    "dropout in training": [helper.make_node("Dropout", ["x", "ratio", "training"], ["y"])],
    "Bernoulli": [
        helper.make_node("Sigmoid", ["x"], ["share"]),
        helper.make_node("Bernoulli", ["share"], ["y"]),
    ],
    "Multinomial": [helper.make_node("Multinomial", ["x"], ["y"], dtype=TensorProto.INT32, sample_size=4)],
}
STEADY = [helper.make_node("Relu", ["x"], ["y"])]


def write(path: Path, nodes: list[onnx.NodeProto]) -> str:
    kind = TensorProto.INT32 if nodes[-1].op_type == "Multinomial" else TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])],
        [helper.make_tensor_value_info("y", kind, ["batch", None])],
        [
            helper.make_tensor("ratio", TensorProto.FLOAT, [], [0.5]),
            helper.make_tensor("training", TensorProto.BOOL, [], [True]),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


def compare(one: str, two: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["compare", one, two, "-q", "-o", str(folder / "out"), "--format", "json"])
    (row,) = (row for row in json.loads(capsys.readouterr().out)["rows"] if row["kind"] == "target")
    return code, row


@pytest.mark.parametrize("name", CASES)
def test_a_random_model_is_not_its_own_equal(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = write(tmp_path / "net.onnx", CASES[name])
    for other in (net, write(tmp_path / "other.onnx", STEADY)):
        if other != net and name == "Multinomial":
            continue
        code, row = compare(net, other, tmp_path, capsys)
        assert (code, row["verdict"]) == (1, "undecided"), row["reason"]
        assert "source answers differently each time it's run (relative difference" in row["reason"]


def test_a_target_that_became_random_is_faulty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = write(tmp_path / "net.onnx", STEADY)
    code, row = compare(net, write(tmp_path / "other.onnx", CASES["added noise"]), tmp_path, capsys)
    assert (code, row["verdict"]) == (1, "faulty")
    assert row["reason"].startswith("answers differently each time it's run (relative difference")
    assert row["reason"].endswith("and net.onnx/source doesn't")


def test_a_random_source_accuses_no_layer(tmp_path: Path) -> None:
    """Behind what is drawn, every layer of the target would differ."""
    models = [
        {"name": "net", "path": write(tmp_path / "net.onnx", CASES["added noise"])},
        {"name": "other", "path": write(tmp_path / "other.onnx", STEADY), "compare_with": "net"},
    ]
    data = {"synthetic": {"samples": 4}}
    config = parse_config({"models": models, "dataset": data, "stages": {"localize": True}}, "test")
    result = run_audit(config, tmp_path, ProgressDisplay(quiet=True))
    (row,) = (row for row in result.rows if row.kind == "target")
    assert row.verdict is Verdict.UNDECIDED
    assert row.localized.result is None
    assert row.localized.problem is not None
    assert "answers differently each time" in row.localized.problem.message
    assert result.exit_code == 1


@pytest.mark.parametrize("verb", ["localize", "repair"])
def test_layers_of_a_random_source_arent_compared(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source, target = write(tmp_path / "source.onnx", CASES["added noise"]), write(tmp_path / "target.onnx", STEADY)
    assert main([verb, source, target, "-q"]) == 1
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert "the source source.onnx-0 answers differently each time it's run" in told
    assert "Export the source without what draws numbers" in told
    assert not (tmp_path / "target-repaired").exists()


def test_a_comparison_with_a_random_source_recommends_what_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = write(tmp_path / "source.onnx", CASES["added noise"]), write(tmp_path / "target.onnx", STEADY)
    assert main(["compare", source, target, "-q"]) == 1
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("next: "))
    assert "localize" not in line
    assert "Export the source without what draws numbers" in line
