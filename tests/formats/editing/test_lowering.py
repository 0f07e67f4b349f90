"""Operators said in simpler ones compute the same, in ONNX Runtime."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.special
from onnx_networks import drawn, written
from small_models import model_of

from conrepair.formats.editing.lowering import lower
from conrepair.formats.editing.operation import Operation
from conrepair.formats.editing.operation_shapes import shape_of_result
from conrepair.formats.onnx.edit.editor import OnnxEditor
from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.ground.graph.layer_graph import Array

_SHAPE = (2, 3, 7, 6)
_WINDOW = {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1), "dilations": (1, 1)}
_NORMAL = {"scale": drawn(3, seed=1), "bias": drawn(3, seed=2)}

OPERATIONS = {
    "Relu": Operation("Relu", ("x",)),
    "Clip": Operation("Clip", ("x",), {"min": -0.25, "max": 0.5}),
    "LeakyRelu": Operation("LeakyRelu", ("x",), {"alpha": 0.1}),
    "a slope over 1": Operation("LeakyRelu", ("x",), {"alpha": 2.0}),
    "PRelu": Operation("PRelu", ("x",), {}, {"slope": drawn(3, 1, 1)}),
    "Elu": Operation("Elu", ("x",), {"alpha": 0.7}),
    "Selu": Operation("Selu", ("x",)),
    "Gelu": Operation("Gelu", ("x",), {"approximate": "none"}),
    "Gelu by tanh": Operation("Gelu", ("x",), {"approximate": "tanh"}),
    "Erf": Operation("Erf", ("x",)),
    "Swish": Operation("Swish", ("x",)),
    "Swish with a factor": Operation("Swish", ("x",), {"alpha": 1.5}),
    "HardSigmoid": Operation("HardSigmoid", ("x",), {"alpha": 0.3, "beta": 0.4}),
    "HardSwish": Operation("HardSwish", ("x",)),
    "Shrink, hard": Operation("Shrink", ("x",)),
    "Shrink, soft": Operation("Shrink", ("x",), {"lambd": 0.7, "bias": 0.7}),
    "Shrink with an offset": Operation("Shrink", ("x",), {"lambd": 0.7, "bias": 0.2}),
    "Softplus": Operation("Softplus", ("x",)),
    "Softsign": Operation("Softsign", ("x",)),
    "Mish": Operation("Mish", ("x",)),
    "Reciprocal": Operation("Reciprocal", ("x",)),
    "Neg": Operation("Neg", ("x",)),
    "LogSoftmax": Operation("LogSoftmax", ("x",), {"axis": 3}),
    "Softmax of channels": Operation("Softmax", ("x",), {"axis": 1}),
    "BatchNormalization": Operation(
        "BatchNormalization", ("x",), {"epsilon": 1e-3}, {**_NORMAL, "mean": drawn(3), "variance": drawn(3) ** 2}
    ),
    "InstanceNormalization": Operation("InstanceNormalization", ("x",), {"epsilon": 1e-3}, _NORMAL),
    "LayerNormalization": Operation(
        "LayerNormalization", ("x",), {"axes": (2, 3), "epsilon": 1e-3}, {"scale": drawn(7, 6), "bias": drawn(7, 6)}
    ),
    "MaxPool": Operation("MaxPool", ("x",), _WINDOW),
    "AveragePool": Operation("AveragePool", ("x",), {**_WINDOW, "count_include_pad": False}),
    "AveragePool of pads": Operation("AveragePool", ("x",), {**_WINDOW, "count_include_pad": True}),
    "Conv": Operation("Conv", ("x",), _WINDOW, {"weight": drawn(4, 3, 3, 2), "bias": drawn(4)}),
}


def computed(operations: list[Operation], folder: Path, feed: Array) -> Array:
    """What operations give behind `x`."""
    sizes = ", ".join(map(str, feed.shape))
    text = f"small (float[{sizes}] x) => (float[{sizes}] y) {{ y = Identity (x) }}"
    editor = OnnxEditor(model_of("onnx", written(folder / "model.onnx", text, {}, 20)))
    editor.graft("x", operations, "new")
    return next(iter(OnnxRunnable(editor.save(folder / "out", "changed")).run({"x": feed}).values()))


def in_place(operations: tuple[Operation, ...]) -> list[Operation]:
    """Of one operand, `x`."""
    return [
        replace(item, inputs=tuple("x" if place == 0 else int(place) - 1 for place in item.inputs))
        for item in operations
    ]


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_lowering_computes_the_same(name: str, tmp_path: Path) -> None:
    operation, feed = OPERATIONS[name], drawn(*_SHAPE, scale=2)
    simpler = lower(operation, [_SHAPE], channels_last=False)
    assert simpler is not None
    right = computed([operation], tmp_path, feed)
    np.testing.assert_allclose(computed(in_place(simpler), tmp_path, feed), right, rtol=1e-4, atol=1e-5)
    assert shape_of_result(operation, [_SHAPE]) == right.shape


def test_an_error_function_of_polynomials_is_as_exact_as_float32(tmp_path: Path) -> None:
    simpler = lower(Operation("Erf", ("x",)), [(601,)], channels_last=False)
    assert simpler is not None
    feed = np.linspace(-6, 6, 601, dtype=np.float32)
    np.testing.assert_allclose(computed(in_place(simpler), tmp_path, feed), scipy.special.erf(feed), atol=5e-7)


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_a_stack_is_joined_along_an_axis_of_its_own(axis: int, tmp_path: Path) -> None:
    operation, feed = Operation("Stack", ("x", "x"), {"axis": axis}), drawn(2, 3, 4)
    simpler = lower(operation, [(None, 3, 4), (None, 3, 4)], channels_last=False)
    assert simpler is not None
    parts = [replace(item, inputs=("x",)) for item in simpler[:2]]
    given = computed([*parts, replace(simpler[2], inputs=(0, 1))], tmp_path, feed)
    np.testing.assert_array_equal(given, np.stack([feed, feed], axis))


@pytest.mark.parametrize("name", ["Conv", "MaxPool", "BatchNormalization", "InstanceNormalization"])
def test_channels_are_turned_to_where_a_format_wants_them(name: str, tmp_path: Path) -> None:
    operation, feed = OPERATIONS[name], drawn(*_SHAPE)
    right = computed([operation], tmp_path, feed)
    last = replace(operation, channels_last=True)
    turned = computed([last], tmp_path, np.ascontiguousarray(feed.transpose(0, 2, 3, 1)))
    np.testing.assert_allclose(turned.transpose(0, 3, 1, 2), right, rtol=1e-5, atol=1e-6)


def test_what_is_no_attribute_of_an_operator_is_not_dropped() -> None:
    assert lower(Operation("Relu", ("x",), {"slope": 1.0}), [_SHAPE], channels_last=False) is None


@pytest.mark.parametrize(
    "operation",
    [
        Operation("LayerNormalization", ("x", "scale", "bias"), {"axes": (3,)}),
        Operation("PRelu", ("x", "slope")),
        Operation("QuantizeLinear", ("x", "scale")),
        Operation("BatchNormalization", ("x",)),
    ],
)
def test_what_reads_its_numbers_as_operands_has_no_lowering(operation: Operation) -> None:
    assert lower(operation, [_SHAPE, (6,), (6,)][: len(operation.inputs)], channels_last=False) is None


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        (Operation("Slice", ("x",), {"starts": (0,), "ends": (5,), "axes": (1,), "steps": (1,)}), (2, None, 4)),
        (Operation("Slice", ("x",), {"starts": (30,), "ends": (99,), "axes": (1,), "steps": (1,)}), (2, None, 4)),
    ],
)
def test_an_open_size_stays_open_where_a_slice_may_be_cut_short(
    operation: Operation, shape: tuple[int | None, ...]
) -> None:
    assert shape_of_result(operation, [(2, None, 4)]) == shape
