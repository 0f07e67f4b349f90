"""Numbers in which a target differs from its source by right stay the target's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx_networks import drawn, written
from small_models import model_of

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference

_EPSILON = np.float32(1e-5)
_TEXT = """small (float[batch, 3, 12, 12] image) => (float[batch, 5] y) {{
    {entry}
    b = Relu (a)
    c = Conv <pads = [1, 1, 1, 1]> (b, inner, offset)
    d = Add (b, c)
    e = GlobalAveragePool (d)
    f = Flatten (e)
    [scores] g = Gemm <transB = 1> (f, dense, shift)
    y = Softmax <axis = 1> (g)
}}"""
_CONV = "Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (image, first, bias)"
_NORMALIZED = f"n = {_CONV}\n    a = BatchNormalization <epsilon = {_EPSILON}> (n, scale, beta, mean, variance)"


def held(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Type, shape and bytes of each initializer."""
    arrays = {item.name: numpy_helper.to_array(item) for item in onnx.load(path).graph.initializer}
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def test_only_the_tensor_with_the_wrong_number_is_the_sources(tmp_path: Path) -> None:
    """The target has its normalization folded, and all numbers are rounded otherwise in their last place."""
    first, bias = drawn(6, 3, 3, 3, seed=1), drawn(6, seed=2)
    rest = {
        "inner": drawn(6, 6, 3, 3, seed=3), "offset": drawn(6, seed=4),
        "dense": drawn(5, 6, seed=5, scale=2.0), "shift": drawn(5, seed=6),
    }  # fmt: skip
    behind = {"scale": 1 + drawn(6, seed=7), "beta": drawn(6, seed=8), "mean": drawn(6, seed=9)}
    behind["variance"] = 1 + drawn(6, seed=10) ** 2
    factor = behind["scale"] / np.sqrt(behind["variance"] + _EPSILON)
    folded = {
        "first": first * factor.reshape(-1, 1, 1, 1),
        "bias": (bias - behind["mean"]) * factor + behind["beta"],
    }
    came = {name: np.nextafter(array, np.float32(np.inf)) for name, array in {**folded, **rest}.items()}
    came["dense"][3, 2] *= -2
    right, wrong = tmp_path / "right.onnx", tmp_path / "wrong.onnx"
    written(right, _TEXT.format(entry=_NORMALIZED), {"first": first, "bias": bias, **behind, **rest})
    written(wrong, _TEXT.format(entry=f"a = {_CONV}"), came)
    models = [model_of("onnx", path) for path in (right, wrong)]
    inputs = framework("onnx").describe(models[0]).inputs
    sides = [FedModel(model, inputs, DataReference("synthetic", 24, samples=inputs), None) for model in models]
    options = RepairOptions(Options(samples=8, batch_size=4), seconds=60, unseen=16)
    result = repair_models(*sides, tmp_path / "out", options)
    assert result.mended, result.after.faults
    assert result.edits == ("the weight of `scores` is taken from the original",)
    ours, theirs, repaired = (held(path) for path in (right, wrong, tmp_path / "out" / "repaired.onnx"))
    assert repaired.pop("dense") == ours["dense"]
    assert repaired == {name: item for name, item in theirs.items() if name != "dense"}
    assert not any(item == ours[name] for name, item in repaired.items())
