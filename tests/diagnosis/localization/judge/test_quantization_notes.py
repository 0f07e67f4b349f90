"""What other scales would win in a file of eight bits is said, and is no fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from quantized_faults import in_eight_bits
from quantized_networks import source, subject
from small_models import model_of

from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options


def notes(folder: Path, path: Path, made: Path) -> str:
    options = Options(samples=8, batch_size=8, quantized=True)
    sides = subject(model_of("onnx", made), folder), subject(model_of("onnx", path), folder)
    return " ".join(localize_models(*sides, folder / "at", options).notes)


def rows(factor: float) -> np.ndarray:
    drawn = np.random.default_rng(2).normal(size=(40, 3, 12, 12))
    return (drawn * factor).astype(np.float32)


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_ranges_that_are_much_too_wide(form: str, tmp_path: Path) -> None:
    made = Path(source(tmp_path).path)
    right, wide = (in_eight_bits(made, tmp_path / f"{factor}.onnx", rows(factor), form) for factor in (1, 20))
    assert "ranges much wider than the values" in notes(tmp_path, wide, made)
    assert "wider" not in notes(tmp_path, right, made)


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_a_scale_for_each_channel_would_round_less(form: str, tmp_path: Path) -> None:
    made = Path(source(tmp_path).path)
    model = onnx.load(made)
    (weight,) = [item for item in model.graph.initializer if item.name == "w1"]
    sizes = np.geomspace(0.05, 1, 16).astype(np.float32)
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * sizes[:, None, None, None], "w1"))
    onnx.save(model, made)
    one, each = (
        notes(tmp_path, in_eight_bits(made, tmp_path / f"{kind}.onnx", rows(1), form, per_channel=kind), made)
        for kind in (False, True)
    )
    assert "one scale for the whole weight, where a scale for each channel would give a smaller error: `d" in one
    assert "one scale" not in each


def test_symmetric_ranges_of_what_is_never_negative(tmp_path: Path) -> None:
    made = Path(source(tmp_path).path)
    both, one = (
        notes(tmp_path, in_eight_bits(made, tmp_path / f"{kind}.onnx", rows(1), symmetric=kind), made)
        for kind in (True, False)
    )
    assert "ranges on both sides of zero for values that are never negative" in both
    assert "both sides of zero" not in one


def test_a_bias_in_other_steps_than_the_products(tmp_path: Path) -> None:
    made = Path(source(tmp_path).path)
    right = in_eight_bits(made, tmp_path / "right.onnx", rows(1))
    model = onnx.load(right)
    (scale,) = [item for item in model.graph.initializer if item.name == "b1_quantized_scale"]
    scale.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scale) * np.float32(1.01), scale.name))
    onnx.save(model, tmp_path / "other.onnx")
    assert "scales of biases that aren't the input's scale times the weight's: `d`" in notes(
        tmp_path, tmp_path / "other.onnx", made
    )
    assert "biases" not in notes(tmp_path, right, made)


def test_layers_that_tell_nothing_are_named(tmp_path: Path) -> None:
    """A scale for thirty times the values rounds by a quarter of them: no other fault would show there."""
    made = Path(source(tmp_path).path)
    right = in_eight_bits(made, tmp_path / "right.onnx", rows(1))
    model = onnx.load(right)
    (scale,) = [item for item in model.graph.initializer if item.name == "d_scale"]
    scale.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scale) * np.float32(30), "d_scale"))
    onnx.save(model, tmp_path / "coarse.onnx")
    assert "can't tell whether 1 layer is right, as quantization alone may make" in notes(
        tmp_path, tmp_path / "coarse.onnx", made
    )
    assert "nothing" not in notes(tmp_path, right, made)
