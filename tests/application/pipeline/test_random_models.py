"""Models that are random, in whole comparisons: only distributions over repeated runs tell something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from conrepair.application.cli import main
from conrepair.application.config.load import parse_config
from conrepair.application.pipeline.audit import run_audit
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.verdicts.evaluate.verdict import Verdict

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


def scaled(
    path: Path, op: str = "RandomNormalLike", *, factor: float = 1.0, shift: float = 0.0, seed: int = 0
) -> str:
    """What's drawn, times a factor, is added to what a layer computes; and a shift."""
    own = {"seed": float(seed)} if seed else {}
    nodes = [
        helper.make_node(op, ["x"], ["drawn"], name="draw", **own),
        helper.make_node("Mul", ["drawn", "factor"], ["noise"], name="scale"),
        helper.make_node("Relu", ["x"], ["layer"], name="layer"),
        helper.make_node("Add", ["layer", "noise"], ["noisy"], name="disturb"),
        helper.make_node("Add", ["noisy", "offset"], ["y"], name="shift"),
    ]
    net = onnx.load(write(path, nodes))
    del net.graph.initializer[:]
    values = {"factor": factor, "offset": shift}
    net.graph.initializer.extend(helper.make_tensor(name, 1, [], [value]) for name, value in values.items())
    onnx.save(net, path)
    return str(path)


@pytest.mark.parametrize("name", CASES)
def test_a_random_model_draws_from_its_own_distribution(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = write(tmp_path / "net.onnx", CASES[name])
    code, row = compare(net, net, tmp_path, capsys)
    assert (code, row["verdict"]) == (0, "noise"), row["reason"]
    assert "outputs of both models are random, and their distributions agree in mean and spread over" in row["reason"]
    if name != "Multinomial":
        code, row = compare(net, write(tmp_path / "other.onnx", STEADY), tmp_path, capsys)
        assert (code, row["verdict"]) == (1, "faulty"), row["reason"]
        assert row["reason"].startswith(
            "gives the same outputs each time it's run, and net.onnx/source gives other outputs"
        )


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"seed": 3}, ""),
        ({"factor": 0.667}, "the spread is 0.6"),
        ({"shift": 0.3}, "the mean is 0."),
        ({"op": "RandomUniformLike", "factor": 1.0}, "the spread is 0."),
    ],
)
def test_a_constant_beside_a_draw_shows_in_the_distribution(
    other: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = scaled(tmp_path / "target.onnx", **other)
    code, row = compare(scaled(tmp_path / "source.onnx"), target, tmp_path, capsys)
    assert (code, row["verdict"]) == ((1, "faulty") if words else (0, "noise")), row["reason"]
    assert (words or "distributions agree") in row["reason"]


@pytest.mark.parametrize(
    ("other", "layer"), [({"seed": 3}, ""), ({"factor": 0.667}, "scale"), ({"shift": 0.3}, "shift")]
)
def test_a_constant_beside_a_draw_is_named(
    other: dict[str, Any], layer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = scaled(tmp_path / "target.onnx", **other)
    code = main(["localize", scaled(tmp_path / "source.onnx"), target, "-q", "--format", "json"])
    (step,) = json.loads(capsys.readouterr().out)["rows"][-1]["localized"]["steps"]
    assert code == (1 if layer else 0)
    assert [fault["target_layers"] for fault in step["localization"]["faults"]] == ([[layer]] if layer else [])


def test_a_target_that_became_random_is_faulty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = write(tmp_path / "net.onnx", STEADY)
    code, row = compare(net, write(tmp_path / "other.onnx", CASES["added noise"]), tmp_path, capsys)
    assert (code, row["verdict"]) == (1, "faulty")
    assert row["reason"].startswith("gives other outputs each time it's run (two runs on the same inputs differ by")
    assert row["reason"].endswith("and net.onnx/source doesn't")


def test_layers_of_a_random_source_are_compared_by_their_files(tmp_path: Path) -> None:
    """Behind what is drawn, the values of every layer of the target would differ."""
    models = [
        {"name": "net", "path": write(tmp_path / "net.onnx", CASES["added noise"])},
        {"name": "other", "path": write(tmp_path / "other.onnx", STEADY), "compare_with": "net"},
    ]
    data = {"synthetic": {"samples": 4}}
    config = parse_config({"models": models, "dataset": data, "stages": {"localize": True}}, "test")
    result = run_audit(config, tmp_path, ProgressDisplay(quiet=True))
    (row,) = (row for row in result.rows if row.kind == "target")
    assert row.verdict is Verdict.FAULTY
    assert row.localized.result is not None
    assert [fault.source_layers for fault in row.localized.result.faults] == [("y",), ("drawn",)]
    assert result.exit_code == 1


def test_a_target_of_a_random_source_isnt_repaired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source, target = write(tmp_path / "source.onnx", CASES["added noise"]), write(tmp_path / "target.onnx", STEADY)
    assert main(["repair", source, target, "-q"]) == 1
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert "the original source.onnx-0 gives other outputs each time it's run" in told
    assert "Export the original without random operators" in told
    assert not (tmp_path / "target-repaired").exists()


def test_a_comparison_with_a_random_source_recommends_what_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = write(tmp_path / "source.onnx", CASES["added noise"]), write(tmp_path / "target.onnx", STEADY)
    assert main(["compare", source, target, "-q"]) == 1
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("next: "))
    assert "localize" in line
    assert "names what differs between the files" in line
    assert "conrepair repair" not in line
