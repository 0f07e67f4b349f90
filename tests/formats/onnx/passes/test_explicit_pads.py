"""Paddings in numbers do what `auto_pad` does."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import parser

from conrepair.formats.onnx.passes.explicit_pads import explicit_pads
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes
from conrepair.ground.runtime.onnx_session import open_session


def padded(operator: str, size: str = "7, 10") -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Before and after."""
    proto = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[batch, 2, {size}] x, float[3, 2, 3, 4] w) => (y) '
        f"{{ y = {operator} }}"
    )
    model = onnx_ir.from_proto(proto)
    infer_shapes(model)
    explicit_pads(model)
    return proto, onnx_ir.to_proto(model)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize(
    "operator",
    [
        'Conv<auto_pad = "{mode}", strides = [2, 3]>(x, w)',
        'Conv<auto_pad = "{mode}", dilations = [1, 1]>(x, w)',
        'MaxPool<auto_pad = "{mode}", kernel_shape = [3, 2], strides = [2, 2]>(x)',
        'AveragePool<auto_pad = "{mode}", kernel_shape = [2, 4], strides = [1, 3]>(x)',
    ],
)
def test_the_same_result(operator: str, mode: str) -> None:
    before, after = padded(operator.replace("{mode}", mode))
    assert "auto_pad" not in {item.name for item in after.graph.node[0].attribute}
    generator = np.random.default_rng(0)
    feeds = {"x": generator.normal(size=(2, 2, 7, 10)), "w": generator.normal(size=(3, 2, 3, 4))}
    feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
    one, two = (open_session(item.SerializeToString()).run(None, feeds)[0] for item in (before, after))
    np.testing.assert_array_equal(one, two)


def test_sizes_that_are_not_known() -> None:
    """A stride of 1 needs none."""
    _, strided = padded('Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(x, w)', "height, width")
    assert "auto_pad" in {item.name for item in strided.graph.node[0].attribute}
    _, plain = padded('Conv<auto_pad = "SAME_UPPER">(x, w)', "height, width")
    assert [list(item.ints) for item in plain.graph.node[0].attribute if item.name == "pads"] == [[1, 1, 1, 2]]


@pytest.mark.parametrize(
    "attributes",
    [
        "output_shape = [14, 20], strides = [2, 2]",
        'output_shape = [14, 20], strides = [2, 2], auto_pad = "SAME_UPPER"',
        "output_shape = [15, 21], strides = [2, 2], output_padding = [1, 1]",
        "output_shape = [7, 11], dilations = [2, 1]",
    ],
)
def test_the_output_shape_of_a_transposed_convolution(attributes: str) -> None:
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[batch, 3, 7, 10] x, float[3, 2, 3, 4] w) => (y) '
        f"{{ y = ConvTranspose<{attributes}>(x, w) }}"
    )
    model = onnx_ir.from_proto(proto)
    infer_shapes(model)
    explicit_pads(model)
    assert "output_shape" not in model.graph[0].attributes
    generator = np.random.default_rng(0)
    feeds = {"x": generator.normal(size=(2, 3, 7, 10)), "w": generator.normal(size=(3, 2, 3, 4))}
    feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
    after = onnx_ir.to_proto(model)
    one, two = (open_session(item.SerializeToString()).run(None, feeds)[0] for item in (proto, after))
    np.testing.assert_array_equal(one, two)
