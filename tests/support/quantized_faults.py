"""One fault in one layer of a network whose weights are all in eight bits, put in with onnx alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

__all__ = ["FAULTS", "Rows", "in_eight_bits", "with_fault"]

Array = npt.NDArray[np.float32]


class Rows(CalibrationDataReader):
    def __init__(self, name: str, rows: Array) -> None:
        self._rows = iter([{name: row[None]} for row in rows])

    def get_next(self) -> Mapping[str, Array] | None:
        return next(self._rows, None)


def in_eight_bits(
    source: Path,
    path: Path,
    rows: Array,
    form: str = "QDQ",
    *,
    per_channel: bool = False,
    symmetric: bool = False,
    kind: str = "QInt8",
    **extra: Any,
) -> Path:
    """ONNX Runtime's static quantization of a model with one input.

    Args:
        source: The model.
        path: Of the result.
        rows: Samples that ranges of activations are taken from.
        form: "QDQ" or "QOperator".
        per_channel: Whether each channel of a weight has a scale.
        symmetric: Whether zero is stored as 0 in activations, too.
        kind: Of the integers of weights and activations.
        **extra: Further options of ONNX Runtime's quantization.
    """
    name = onnx.load(source).graph.input[0].name
    quantize_static(
        source,
        path,
        Rows(name, rows),
        quant_format=QuantFormat[form],
        per_channel=per_channel,
        activation_type=QuantType[kind],
        weight_type=QuantType[kind],
        extra_options={"ActivationSymmetric": symmetric, **extra},
    )
    return path


def _convolution(graph: onnx.GraphProto, place: int) -> onnx.NodeProto:
    return [node for node in graph.node if node.op_type in {"Conv", "QLinearConv"}][place]


def _weight(graph: onnx.GraphProto, place: int) -> tuple[onnx.TensorProto, onnx.TensorProto]:
    """The integers of a convolution's weights, and their scale."""
    node, constants = _convolution(graph, place), {item.name: item for item in graph.initializer}
    if node.op_type == "QLinearConv":
        return constants[node.input[3]], constants[node.input[4]]
    (dequantize,) = [item for item in graph.node if node.input[1] in item.output]
    return constants[dequantize.input[0]], constants[dequantize.input[1]]


def _changed(tensor: onnx.TensorProto, change: Callable[[np.ndarray], np.ndarray]) -> None:
    array = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(change(array)).astype(array.dtype), tensor.name))


def _pads(graph: onnx.GraphProto) -> None:
    (pads,) = [item for item in _convolution(graph, 1).attribute if item.name == "pads"]
    pads.ints[:] = [0, 0, 2, 2]


def _scale(graph: onnx.GraphProto, factor: float) -> None:
    _changed(_weight(graph, 1)[1], lambda scale: scale * np.float32(factor))


def _numbers(graph: onnx.GraphProto, change: Callable[[np.ndarray], np.ndarray]) -> None:
    _changed(_weight(graph, 1)[0], change)


def _mixed(weight: np.ndarray) -> np.ndarray:
    return weight[np.random.default_rng(5).permutation(len(weight))]


def _turned(weight: np.ndarray) -> np.ndarray:
    return weight.transpose(0, 1, 3, 2)


FAULTS: dict[str, tuple[Callable[[onnx.GraphProto], None], str]] = {
    "pads": (_pads, "has pads [0, 0, 2, 2] in the converted model, [1, 1, 1, 1] in the original"),
    "scale": (functools.partial(_scale, factor=1.1), "are scaled by 1.1"),
    "a little": (functools.partial(_scale, factor=1.03), "are scaled by 1.03"),
    "channels": (functools.partial(_numbers, change=_mixed), "are permuted along axis 0"),
    "kernels": (functools.partial(_numbers, change=_turned), "are transposed (axes [0, 1, 3, 2])"),
}


def with_fault(right: Path, name: str, path: Path) -> Path:
    """A copy of a file with a fault."""
    model = onnx.load(right)
    FAULTS[name][0](model.graph)
    onnx.save(model, path)
    return path
