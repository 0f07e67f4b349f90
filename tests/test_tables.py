"""Classifiers, trees and encoders of tables, as converters write them, through the verbs with no option."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_networks
import numpy as np
import onnx
import pytest

import conrepair
from conrepair.verdicts.evaluate.verdict import Verdict

TEXTS = ("setosa", "versicolor", "virginica")
Make = Callable[..., Path]


def both(make: Make, folder: Path, right: dict[str, Any], other: dict[str, Any]) -> tuple[Path, Path]:
    return make(folder / "right.onnx", **right), make(folder / "other.onnx", **other)


@pytest.mark.parametrize("labels", [(0, 1, 2), TEXTS])
def test_a_map_is_repaired_as_a_map(labels: tuple[int | str, ...], tmp_path: Path) -> None:
    keys = (labels[1], labels[0], labels[2])
    source, target = both(ml_networks.classifier, tmp_path, {"labels": labels}, {"labels": labels, "keys": keys})
    found = conrepair.repair(source, target, seconds=10, in_process=True)
    assert found.exit_code == 0
    found.save(tmp_path / "repaired")
    made = onnx.load(tmp_path / "repaired" / "repaired.onnx")
    [zipmap] = [node for node in made.graph.node if node.op_type == "ZipMap"]
    before = onnx.load(source)
    assert zipmap.attribute == before.graph.node[2].attribute
    assert made.graph.output == before.graph.output
    assert {item.name for item in made.graph.initializer} == set()


def test_texts_of_a_file(tmp_path: Path) -> None:
    source, target = both(ml_networks.categories, tmp_path, {}, {"values": (1.0, 2.0, 4.5)})
    np.savez(tmp_path / "some.npz", cats=np.array([["red", "s"], ["green", "m"]]))
    np.savez(tmp_path / "all.npz", cats=np.array([["red", "s"], ["blue", "m"]]))
    same = conrepair.compare(source, target, data=tmp_path / "some.npz", in_process=True)
    assert same.verdict is Verdict.EQUIVALENT
    other = conrepair.compare(source, target, data=tmp_path / "all.npz", in_process=True)
    assert other.verdict is Verdict.FAULTY


def test_labels_are_labels(tmp_path: Path) -> None:
    moved = (TEXTS[1], TEXTS[0], TEXTS[2])
    source, target = both(
        ml_networks.classifier, tmp_path, {"labels": TEXTS}, {"labels": moved, "keys": TEXTS, "zipmap": False}
    )
    run = conrepair.execute(source, data=np.float32([[1, 0], [0, 1]]), in_process=True)
    assert set(run.outputs["label"].tolist()) <= set(TEXTS)
    assert run.outputs["probabilities"].shape == (2, 3)
    found = conrepair.compare(source, target, in_process=True)
    assert found.verdict is Verdict.FAULTY
    assert "of 32 texts differ; the first, at index [" in found.reason


def test_texts_of_python(tmp_path: Path) -> None:
    path = ml_networks.categories(tmp_path / "a.onnx")
    table = np.array([["red", "s"], ["blue", "m"]], dtype=object)  # as tables of pandas have them
    run = conrepair.execute(path, data={"cats": table}, in_process=True)
    assert run.outputs["y"].tolist() == [[1, 1, 0], [4, 0, 1]]
    with pytest.raises(conrepair.ConrepairError, match="holds values of type object"):
        conrepair.execute(path, data={"cats": np.array([["red", None]], dtype=object)}, in_process=True)
