"""Answers that are right but elsewhere, found by a localization: classes, activations, other outputs, other sizes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from localized import CLASSES, WEIGHTS, Variant, localized, pictures
from onnx_networks import drawn

from conrepair.diagnosis.localization.result import Localization, LocatedFault
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict

TWO = f"float[batch, {CLASSES}] y, float[batch, {CLASSES}] scores"
SOURCE = Variant()


def only(result: Localization) -> LocatedFault:
    assert result.verdict == Verdict.FAULTY
    (fault,) = result.faults
    return fault


def between(tmp_path: Path, source: Variant, target: Variant) -> Localization:
    models = [variant.write(tmp_path / f"{place}.onnx") for place, variant in enumerate((source, target))]
    return localized(tmp_path, *models, pictures(), pictures())


@pytest.mark.parametrize("shift", [1, 2])
def test_classes_that_are_shifted(shift: int, tmp_path: Path) -> None:
    order = np.roll(np.arange(CLASSES), shift)
    after = "h = Softmax <axis = 1> (scores)\n y = Gather <axis = 1> (h, order)"
    fault = only(between(tmp_path, SOURCE, Variant(after=after, weights={"order": order})))
    assert fault.kind == Kind.STRUCTURE
    assert fault.evidence[0].startswith(f"class k of the original is {shift} after k in the converted model")


def test_classes_that_are_permuted(tmp_path: Path) -> None:
    after = "h = Softmax <axis = 1> (scores)\n y = Gather <axis = 1> (h, order)"
    fault = only(between(tmp_path, SOURCE, Variant(after=after, weights={"order": np.array([0, 3, 2, 1, 4])})))
    assert fault.kind == Kind.STRUCTURE
    assert fault.evidence[0].startswith(f"2 of {CLASSES} classes are at another index (1 is at 3, 3 is at 1)")


def test_weights_that_are_permuted_stay_weights(tmp_path: Path) -> None:
    order = np.array([0, 3, 2, 1, 4])
    weights = {"dense": WEIGHTS["dense"][order], "shift": WEIGHTS["shift"][order]}
    plain = Variant(scores="y", after="")
    fault = only(between(tmp_path, plain, Variant(scores="y", after="", weights=weights)))
    assert fault.kind == Kind.PARAMETERS
    assert any("classes are at another index" in words for words in fault.evidence)


@pytest.mark.parametrize("added", [False, True])
def test_softmax_on_one_side(added: bool, tmp_path: Path) -> None:
    plain = Variant(scores="y", after="")
    variants = (plain, SOURCE) if added else (SOURCE, plain)
    fault = only(between(tmp_path, *variants))
    assert fault.kind == Kind.GRAPH
    words = "the converted model applies softmax" if added else "the original applies softmax"
    assert fault.evidence[0].startswith(words)


def test_outputs_that_are_exchanged(tmp_path: Path) -> None:
    source = Variant(outputs=TWO)
    target = Variant(scores="y", after="scores = Softmax <axis = 1> (y)", outputs=TWO)
    fault = only(between(tmp_path, source, target))
    assert fault.kind == Kind.STRUCTURE
    assert fault.evidence[0].startswith("outputs are exchanged: y is in scores, scores is in y")


@pytest.mark.parametrize("wider", [True, False])
def test_background_class(wider: bool, tmp_path: Path) -> None:
    weights = {
        "dense": np.concatenate([np.zeros((1, 6), np.float32), WEIGHTS["dense"]]),
        "shift": np.concatenate([np.float32([-30]), WEIGHTS["shift"]]),
    }
    wide = Variant(outputs=f"float[batch, {CLASSES + 1}] y", weights=weights)
    result = between(tmp_path, *((SOURCE, wide) if wider else (wide, SOURCE)))
    fault = only(result)
    assert fault.kind == Kind.STRUCTURE
    assert set(fault.target_layers) == {"scores", "y"}
    counts = (CLASSES + 1, CLASSES) if wider else (CLASSES, CLASSES + 1)
    assert fault.evidence[0].startswith(f"{counts[0]} classes against {counts[1]}: class k of the original is 1")
    assert result.output_error > 0.1


def test_outputs_of_another_size_that_nothing_explains(tmp_path: Path) -> None:
    weights = {"dense": drawn(CLASSES + 3, 6, seed=8), "shift": drawn(CLASSES + 3, seed=9)}
    result = between(tmp_path, SOURCE, Variant(outputs=f"float[batch, {CLASSES + 3}] y", weights=weights))
    fault = only(result)
    assert (fault.kind, math.isinf(fault.introduced_error)) == (Kind.STRUCTURE, True)
    assert f"is [7, {CLASSES + 3}], the original's `y` [7, {CLASSES}]" in fault.evidence[0]
    assert fault.evidence[0] in result.reason


@pytest.mark.parametrize("kept", ["y", "scores"])
def test_output_that_is_dropped(kept: str, tmp_path: Path) -> None:
    lost = {"y": "scores", "scores": "y"}[kept]
    source = Variant(outputs=TWO)
    after = "y = Softmax <axis = 1> (scores)" if kept == "y" else ""
    result = between(tmp_path, source, Variant(after=after, outputs=f"float[batch, {CLASSES}] {kept}"))
    fault = only(result)
    assert (fault.kind, fault.target_layers) == (Kind.STRUCTURE, ())
    assert fault.evidence == (f"the converted model lacks the output `{lost}`: it has 1, the original 2",)
