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


@pytest.mark.parametrize(
    ("make", "right", "other"),
    [
        (ml_networks.classifier, {}, {}),
        (ml_networks.classifier, {}, {"zipmap": False}),
        (ml_networks.classifier, {"labels": TEXTS}, {"labels": TEXTS, "zipmap": False}),
        (ml_networks.trees, {}, {}),
        (ml_networks.categories, {}, {}),
        (ml_networks.sequence, {}, {}),
        (ml_networks.counts, {}, {}),
    ],
)
def test_right_ones(make: Make, right: dict[str, Any], other: dict[str, Any], tmp_path: Path) -> None:
    source, target = both(make, tmp_path, right, other)
    assert conrepair.compare(source, target, in_process=True).verdict is Verdict.EQUIVALENT
    found = conrepair.localize(source, target, in_process=True)
    assert found.verdict is Verdict.EQUIVALENT
    assert not found.faults


WRONG = [
    (ml_networks.classifier, {}, {"coefficients": (0.9, -0.4, 3.0, -0.8, 0.6, -0.1)}, "linear", "coefficients[2] 3"),
    (ml_networks.classifier, {}, {"keys": (1, 0, 2)}, "zipmap", "classlabels_int64s[0] 1"),
    (ml_networks.classifier, {}, {"keys": (1, 2, 3)}, "zipmap", "a map with the keys 1, 2, 3"),
    (
        ml_networks.classifier,
        {"labels": TEXTS},
        {"labels": (TEXTS[1], TEXTS[0], TEXTS[2]), "keys": TEXTS},
        "linear",
        "classlabels_strings[0] versicolor in the target, setosa in the source",
    ),
    (ml_networks.trees, {}, {"threshold": 320.0}, "trees", "nodes_values[0] 320 in the target, 300 in the source"),
    (ml_networks.trees, {}, {"weight": 1.5}, "trees", "target_weights[0] 1.5"),
    (ml_networks.trees, {}, {"mode": "BRANCH_GT"}, "trees", "nodes_modes[0] BRANCH_GT"),
    (ml_networks.categories, {}, {"values": (1.0, 2.5, 4.0)}, "encoder", "values_floats"),
    (ml_networks.sequence, {}, {"factor": 2.5}, "double", "operand"),
    (ml_networks.sequence, {"places": False}, {"factor": 2.5, "places": False}, "double", "operand"),
    (ml_networks.counts, {}, {"vocabulary": ("b", "a", "c")}, "rows", "string_vocabulary"),
]


@pytest.mark.parametrize(("make", "right", "other", "layer", "words"), WRONG)
def test_wrong_ones(
    make: Make, right: dict[str, Any], other: dict[str, Any], layer: str, words: str, tmp_path: Path
) -> None:
    source, target = both(make, tmp_path, right, other)
    found = conrepair.localize(source, target, in_process=True)
    assert found.verdict is Verdict.FAULTY
    [fault] = found.faults[:1]
    assert fault.target_layers[0] == layer
    assert words in " ".join(fault.evidence)


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
    assert "of 32 texts differ, first at [" in found.reason


def test_texts_of_python(tmp_path: Path) -> None:
    path = ml_networks.categories(tmp_path / "a.onnx")
    table = np.array([["red", "s"], ["blue", "m"]], dtype=object)  # as tables of pandas have them
    run = conrepair.execute(path, data={"cats": table}, in_process=True)
    assert run.outputs["y"].tolist() == [[1, 1, 0], [4, 0, 1]]
    with pytest.raises(conrepair.ConrepairError, match="holds values of type object"):
        conrepair.execute(path, data={"cats": np.array([["red", None]], dtype=object)}, in_process=True)
