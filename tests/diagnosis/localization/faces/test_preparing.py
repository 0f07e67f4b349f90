"""A normalization of the inputs that a target doesn't have is named by its numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from localized import WEIGHTS, Variant, localized, pictures
from onnx_networks import drawn

from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict

NUMBERS = {
    "mean": np.float32([0.485, 0.456, 0.406]).reshape(3, 1, 1),
    "deviation": np.float32([0.229, 0.224, 0.225]).reshape(3, 1, 1),
    "bytes": np.float32(1 / 255),
}
NOTHING = "", "image"
MEAN = "[m] m = Sub (image, mean)", "m"
BOTH = "[m] m = Sub (image, mean)\n [n] n = Div (m, deviation)", "n"
BYTES = "[m] m = Mul (image, bytes)", "m"


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (BOTH, NOTHING, "the mean [0.485, 0.456, 0.406] isn't subtracted from the inputs"),
        (BOTH, NOTHING, "aren't divided by [0.229, 0.224, 0.225], as by"),
        (BOTH, MEAN, "the inputs aren't divided by [0.229, 0.224, 0.225], as by `n` in the original"),
        (MEAN, NOTHING, "the mean [0.485, 0.456, 0.406] isn't subtracted from the inputs, as by `m` in the original"),
        (BYTES, NOTHING, "the inputs aren't divided by 255, as by `m` in the original"),
    ],
)
def test_a_lost_normalization(source: tuple[str, str], target: tuple[str, str], words: str, tmp_path: Path) -> None:
    sides = [
        Variant(before=before, begin=begin, weights=NUMBERS).write(tmp_path / f"{place}.onnx")
        for place, (before, begin) in enumerate((source, target))
    ]
    (fault,) = localized(tmp_path, *sides, pictures(), pictures()).faults
    assert words in "; ".join(fault.evidence)


def test_numbers_inside_a_network_are_no_preparation(tmp_path: Path) -> None:
    text = "h = Sub (scores, last)\n y = Softmax <axis = 1> (h)"
    source = Variant(after=text, weights={"last": drawn(5, seed=8) + 1}).write(tmp_path / "source.onnx")
    result = localized(tmp_path, source, Variant().write(tmp_path / "target.onnx"), pictures(), pictures())
    assert result.verdict is Verdict.FAULTY
    assert "inputs" not in result.faults[0].evidence[0]


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (
            "[m] m = Mul (image, twice)\n [n] n = Sub (m, one)",
            "the mean 0.5 isn't subtracted from the inputs and they",
        ),
        ("[n] n = Mul (image, twice)", "the inputs aren't divided by 0.5, as by `n` in the original"),
    ],
)
def test_another_factor_of_the_inputs_in_the_first_weights(before: str, words: str, tmp_path: Path) -> None:
    """As converters fold it: these weights are as the target's preparation wants them."""
    numbers = {"twice": np.float32(2), "one": np.float32(1)}
    source = Variant(before=before, begin="n", weights=numbers).write(tmp_path / "source.onnx")
    target = Variant(weights={"first": WEIGHTS["first"] / 255}).write(tmp_path / "target.onnx")
    (fault,) = localized(tmp_path, source, target, pictures(), pictures()).faults
    assert fault.kind is Kind.PREPROCESSING
    assert words in fault.evidence[0]
    assert "contain a factor of 0.00392, as if inputs were divided by 255" in fault.evidence[0]


def test_weights_that_lost_a_factor_behind_the_same_preparation(tmp_path: Path) -> None:
    before = "[n] n = Mul (image, twice)"
    sides = [
        Variant(before=before, begin="n", weights={"twice": np.float32(2), "first": WEIGHTS["first"] * factor})
        for factor in (1, 0.5)
    ]
    written = [side.write(tmp_path / f"{place}.onnx") for place, side in enumerate(sides)]
    (fault,) = localized(tmp_path, *written, pictures(), pictures()).faults
    assert fault.kind is Kind.PARAMETERS
    assert "are scaled by 0.5" in fault.evidence[0]
