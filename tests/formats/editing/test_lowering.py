"""Operators said in simpler ones compute the same, in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.special
from onnx_networks import written
from operation_cases import CASES, FEEDS, SHAPE, drawn, each, value_of
from small_models import model_of

from conrepair.formats.editing.lowering import lower
from conrepair.formats.editing.operation import Operation
from conrepair.formats.editing.operation_shapes import shape_of_result
from conrepair.formats.onnx.edit.editor import OnnxEditor
from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.ground.graph.layer_graph import Array

_LOWERED = frozenset({
    *("Relu", "Clip", "LeakyRelu", "a slope over 1", "PRelu", "Elu", "Selu", "Gelu", "Gelu by tanh", "Erf", "Swish"),
    *("HardSigmoid", "HardSwish", "Shrink, hard", "Shrink, soft", "Shrink with an offset", "Softplus", "Softsign"),
    *("Mish", "Reciprocal", "Neg", "LogSoftmax", "Softmax of channels", "BatchNormalization"),
    *("InstanceNormalization", "LayerNormalization", "MaxPool", "AveragePool", "AveragePool of pads", "Conv"),
})  # fmt: skip


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


def test_a_lowering_computes_the_same(tmp_path: Path) -> None:
    """Of each operator that has one and is of one operand, as parts of one network."""

    def check(names: Sequence[str]) -> None:
        (folder := tmp_path / "-".join(names)[:40]).mkdir()
        sizes = ", ".join(map(str, SHAPE))
        text = f"small (float[{sizes}] x) => (float[{sizes}] y) {{ y = Identity (x) }}"
        editor = OnnxEditor(model_of("onnx", written(folder / "model.onnx", text, {}, 20)))
        for place, name in enumerate(names):
            editor.add_output(f"o{place}", in_place(lowered[name]))
        _, *results = OnnxRunnable(editor.save(folder / "out", "changed")).run({"x": FEEDS["x"]}).values()
        for name, result in zip(names, results, strict=True):
            right = value_of(CASES[name].operation)
            np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-5)
            assert shape_of_result(CASES[name].operation, [SHAPE]) == right.shape

    of_one = {name: case.operation for name, case in CASES.items() if case.operation.inputs == ("x",)}
    found = {name: lower(operation, [SHAPE], channels_last=False) for name, operation in of_one.items()}
    lowered = {name: simpler for name, simpler in found.items() if simpler is not None}
    assert lowered.keys() >= _LOWERED
    each(lowered, check)


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


@pytest.mark.parametrize(
    "name",
    ["Conv", "MaxPool", "BatchNormalization", "InstanceNormalization", "LRN", "DepthToSpace", "SpaceToDepth"],
)
def test_channels_are_turned_to_where_a_format_wants_them(name: str, tmp_path: Path) -> None:
    operation, feed = CASES[name].operation, drawn(*SHAPE)
    right = computed([operation], tmp_path, feed)
    last = replace(operation, channels_last=True)
    turned = computed([last], tmp_path, np.ascontiguousarray(feed.transpose(0, 2, 3, 1)))
    np.testing.assert_allclose(turned.transpose(0, 3, 1, 2), right, rtol=1e-5, atol=1e-6)


def test_what_is_no_attribute_of_an_operator_is_not_dropped() -> None:
    assert lower(Operation("Relu", ("x",), {"slope": 1.0}), [SHAPE], channels_last=False) is None


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
    assert lower(operation, [SHAPE, (6,), (6,)][: len(operation.inputs)], channels_last=False) is None


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
