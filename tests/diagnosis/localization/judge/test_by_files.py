"""Two files by what they say: proven, or what differs in every layer that differs, whatever stands before it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx_networks import drawn, written
from rewritten_networks import CUBE, opened, renamed, residual_blocks

import conrepair
from conrepair.diagnosis.localization.judge.by_files import compared_by_files
from conrepair.diagnosis.localization.result import Localization
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.verdicts.evaluate.verdict import Verdict

FEEDS = {"image": np.zeros((2, CUBE, CUBE, CUBE), np.float32)}


def compared(source: Path, target: Path) -> Localization:
    return compared_by_files(opened(source, FEEDS), opened(target, FEEDS))


def test_the_same_network_with_other_names_in_another_order(tmp_path: Path) -> None:
    source = residual_blocks(tmp_path / "s.onnx")
    renamed(source, tmp_path / "t.onnx", copies=True)
    found = compared(source, tmp_path / "t.onnx")
    assert found.verdict is Verdict.EQUIVALENT
    assert found.reason.startswith("proven by comparing the files: all ")
    assert found.reason.endswith("parameters are all equal")
    assert found.faults == ()


def test_several_faults_are_named_each(tmp_path: Path) -> None:
    """Nothing is fed, so that a fault doesn't hide those behind it."""
    source = residual_blocks(tmp_path / "s.onnx")
    model = onnx.load(source)
    nodes = {node.output[0]: node for node in model.graph.node}
    nodes["n0"].attribute.append(helper.make_attribute("epsilon", 0.5))
    for name in ("one1", "dense"):
        held = next(item for item in model.graph.initializer if item.name == name)
        held.CopyFrom(numpy_helper.from_array(2 * numpy_helper.to_array(held), name))
    del nodes["c2"].attribute[:]
    nodes["c2"].attribute.append(helper.make_attribute("auto_pad", "SAME_UPPER"))  # the same
    onnx.save(model, tmp_path / "t.onnx")
    found = compared(source, tmp_path / "t.onnx")
    assert found.verdict is Verdict.UNDECIDED
    said = sorted(fault.words for fault in found.faults)
    assert len(said) == 3
    assert "dense" in said[0] or "dense" in said[1]
    assert any("epsilon 0.5 in the converted model, 1e-05 in the original" in words for words in said)
    assert sum("scaled by 2" in words for words in said) == 2


def test_a_factor_that_moved_between_layers_is_none(tmp_path: Path) -> None:
    """One side has it in the weights, the other one behind them."""
    text = "small (float[2, 8, 8, 8] image) => (float[2, k] y) {{ f = Flatten (image) {} y = MatMul (m, v) }}"
    factor = np.abs(drawn(6, seed=3)) + np.float32(0.5)
    weights = {"w": drawn(512, 6, seed=1), "v": drawn(6, 4, seed=2)}
    behind = text.format("h = MatMul (f, w) r = Mul (h, g) m = Relu (r)")
    inside = text.format("h = MatMul (f, w) m = Relu (h)")
    source = written(tmp_path / "s.onnx", behind, {**weights, "g": factor})
    target = written(tmp_path / "t.onnx", inside, {**weights, "w": weights["w"] * factor})
    assert compared(source, target).verdict is Verdict.EQUIVALENT
    other = written(tmp_path / "o.onnx", inside, {**weights, "w": weights["w"] * factor[::-1]})
    assert compared(source, other).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ("a b", "a", "only the original has the output `b`"),
        ("a", "a b", "only the converted model has the output `b`"),
        ("a b", "a c", "1 of 2 layers differs in the files: `c` is Relu"),
        ("a b", "d e", "; only a run tells whether outputs do, too"),
    ],
)
def test_outputs_that_are_others(ours: str, theirs: str, said: str, tmp_path: Path) -> None:
    """One that's lost, one more, and two of one tensor."""
    bodies = {"a": "a = Relu (x)", "b": "b = Neg (x)", "c": "c = Relu (x)", "d": "d = Neg (x)", "e": "e = Neg (x)"}
    paths = []
    for names in (ours.split(), theirs.split()):
        outputs = ", ".join(f"float[2, k] {name}" for name in names)
        text = f"small (float[2, 4] x) => ({outputs}) {{ {' '.join(bodies[name] for name in names)} }}"
        paths.append(written(tmp_path / f"{len(paths)}.onnx", text, {}))
    source, target = (opened(path, {"x": np.zeros((2, 4), np.float32)}) for path in paths)
    found = compared_by_files(source, target)
    assert found.verdict is Verdict.UNDECIDED
    assert said in found.reason
    assert "()" not in found.reason
    if found.faults:
        assert not found.reason.startswith("can't tell"), "what differs is said first"


def test_compare_says_that_it_is_proven(tmp_path: Path) -> None:
    source = residual_blocks(tmp_path / "s.onnx", 1)
    renamed(source, tmp_path / "t.onnx")
    found = conrepair.compare(source, tmp_path / "t.onnx", in_process=True)
    assert found.verdict is Verdict.EQUIVALENT
    assert found.row.proof.startswith("proven by comparing the files: ")
    alone = conrepair.compare(source, tmp_path / "t.onnx", static=True, in_process=True)
    assert (alone.verdict, alone.exit_code, alone.reason) == (Verdict.EQUIVALENT, 0, found.row.proof)
    assert alone.run.rows[0].ran.run is None
    looked = conrepair.localize(source, tmp_path / "t.onnx", in_process=True).localization
    assert looked.reason.endswith(found.row.proof)


@pytest.fixture
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has ONNX Runtime fail where anything is run."""

    def fail(*_: object) -> None:
        raise AssertionError("a network was run")

    monkeypatch.setattr(onnxruntime.InferenceSession, "run", fail)


@pytest.mark.usefixtures("no_runs")
def test_static_alone_runs_nothing_for_sizes_that_are_open(tmp_path: Path) -> None:
    text = "small (float[batch, steps, 4] x) => (float[batch, steps, 4] y) { y = Relu (x) }"
    paths = [written(tmp_path / f"{name}.onnx", text, {}) for name in "st"]
    with pytest.raises(ConrepairError, match="has no definite shape"):  # none that runs
        conrepair.compare(*paths, in_process=True)
    found = conrepair.compare(*paths, static=True, in_process=True)
    assert found.verdict is Verdict.EQUIVALENT
    assert found.notes == (
        "s.onnx has dynamic shapes, for which sizes were chosen: steps 17; declare others (--input)",
    )


@pytest.mark.usefixtures("no_runs")
def test_static_alone_names_what_differs_and_runs_nothing(tmp_path: Path) -> None:
    source = residual_blocks(tmp_path / "s.onnx", 1)
    model = onnx.load(source)
    next(node for node in model.graph.node if node.output[0] == "n0").attribute.append(
        helper.make_attribute("epsilon", 0.5)
    )
    onnx.save(model, tmp_path / "t.onnx")
    found = conrepair.compare(source, tmp_path / "t.onnx", static=True, in_process=True)
    assert (found.verdict, found.exit_code) == (Verdict.UNDECIDED, 1)
    assert "epsilon 0.5 in the converted model" in found.faults[0].words
    assert found.run.rows[-1].ran.run is None
