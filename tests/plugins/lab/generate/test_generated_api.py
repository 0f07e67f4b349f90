"""`conrepair.generated`: the networks of the command, one by one."""

from __future__ import annotations

import itertools
from pathlib import Path

import onnx
import pytest

import conrepair
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns import generating
from conrepair_lab.generate.wishes import Wishes


def test_networks_are_those_of_the_command(tmp_path: Path) -> None:
    wishes = Wishes(nodes=3, operators=("Add", "Relu"), dtypes=("float32",))
    with ProgressDisplay(quiet=True) as display:
        generating.generate(generating.GenerationRequest(wishes, count=27, seed=3), tmp_path, display)
    found = list(conrepair.generated(27, nodes=3, operators=["Add", "Relu"], dtypes=["float32"], seed=3))
    assert [network.about["index"] for network in found] == list(range(27))
    for network in found:
        file = tmp_path / f"{network.about['index']:05}" / "model.onnx"
        assert network.model == onnx.load(file)


def test_there_is_no_end_and_each_may_be_judged() -> None:
    networks = conrepair.generated(nodes=2, operators=["Add"], dtypes=["float32"], judge=True)
    first = list(itertools.islice(networks, 2))
    assert [network.about["optimized"]["verdict"] for network in first] == ["same", "same"]
    assert set(first[0].outputs) == {item.name for item in first[0].model.graph.output}


def test_networks_keep_to_what_somebody_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONREPAIR_CACHE", str(tmp_path))
    wished = {"nodes": 3, "operators": ["Relu", "Not"], "dtypes": ["float32", "bool"]}
    found = list(conrepair.generated(3, support="onnxruntime", **wished))
    assert len(found) == 3
    with pytest.raises(conrepair.ConrepairError, match="there is no target 'tvn' for support"):
        conrepair.generated(1, support="tvn")


def test_what_can_not_be_is_told_at_once() -> None:
    with pytest.raises(conrepair.ConrepairError, match="did you mean 'And' or 'Add'"):
        conrepair.generated(1, operators=["Ad"])
