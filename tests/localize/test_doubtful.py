"""What a quantized piece introduces may be its bits; that its weights are the source's is known better."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from quantized_networks import converted, source, subject
from small_models import model_of

from conrepair.localize.localize import Localization
from conrepair.localize.models import localize_models
from conrepair.localize.options import Options

_OPTIONS = Options(samples=8, batch_size=4, quantized=True)


def located(folder: Path, steps: float) -> Localization:
    """With the third layer's weights off by a number of their steps on average."""
    right = source(folder)
    model = onnx.load(converted(right, "onnx-quantize-static", folder / "made").path)
    weight = next(item for item in model.graph.initializer if item.name == "w2_quantized")
    held = numpy_helper.to_array(weight)
    noise = np.random.default_rng(5).normal(0, steps, held.shape)
    changed = np.clip(np.rint(held + noise), -127, 127).astype(held.dtype)
    weight.CopyFrom(numpy_helper.from_array(changed, weight.name))
    onnx.save(model, folder / "wrong.onnx")
    sides = (subject(item, folder) for item in (right, model_of("onnx", folder / "wrong.onnx")))
    return localize_models(*sides, folder / "work", _OPTIONS)


def test_a_weight_that_is_further_off_than_its_bits_allow_is_found(tmp_path: Path) -> None:
    found = located(tmp_path, 2.0)
    (row,) = [row for row in found.layers if row.guilty]
    assert row.noise_floor < row.introduced_error < 4 * row.noise_floor
    assert found.faults[0].source_layers[0] == "g"


@pytest.mark.parametrize("steps", [0.0, 0.1])
def test_rounding_is_no_other_weight(tmp_path: Path, steps: float) -> None:
    assert not located(tmp_path, steps).faults
