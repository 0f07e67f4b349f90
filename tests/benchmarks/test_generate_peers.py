"""What compares our networks with another generator's, with a stand-in for that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from benchmarks.generate import nnsmith_process
from benchmarks.generate.against_nnsmith import compared
from benchmarks.generate.nnsmith_process import NNSmith
from benchmarks.generate.onnx_draft import draft_of
from conrepair_lab.generate.wishes import Wishes

_STAND_IN = """
import json, sys
print(json.dumps({"versions": {}}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    rows = [{"seconds": 0.5, "whole": 0.75, "finite": seed % 2 == 0} for seed in asked["seeds"]]
    rows[0] = {"failed": "no", "seconds": 0.5}
    print(json.dumps(rows), flush=True)
"""


def test_draft_of_a_model_counts_as_ours_do() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[1, 0]),
        helper.make_node("Add", ["t", "r"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])],
    )
    draft = draft_of(helper.make_model(graph))
    assert [node.op for node in draft.nodes] == ["Relu", "Transpose", "Add"]
    assert draft.nodes[1].attributes == {"perm": [1, 0]}
    assert draft.tensors["t"].type == ("float32", (2, 2))


def test_both_are_made_by_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    side = tmp_path / "side.py"
    side.write_text(_STAND_IN, encoding="utf-8")
    monkeypatch.setattr(nnsmith_process, "_SIDE", side)
    with NNSmith(Path(sys.executable)) as peer:
        mine, theirs = compared(peer, Wishes(nodes=3, operators=("Relu", "Add")), 20, 0)
    assert len(mine.seconds) == len(theirs.seconds) == 20
    assert mine.without == mine.odd == 0
    assert (theirs.without, theirs.odd) == (2, 10)
    assert theirs.mean == pytest.approx(0.5 * 20 / 18)


def test_python_without_the_other_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    side = tmp_path / "side.py"
    side.write_text("raise SystemExit(1)", encoding="utf-8")
    monkeypatch.setattr(nnsmith_process, "_SIDE", side)
    with pytest.raises(SystemExit, match="does that Python have it"):
        NNSmith(Path(sys.executable))
