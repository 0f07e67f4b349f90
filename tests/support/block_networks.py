"""A chain of dense layers, its files in blocks of few bits by ONNX Runtime's quantizer, and a fault in a layer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx_networks import written
from onnxruntime.quantization import QuantFormat
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

__all__ = ["BLOCK_FAULTS", "chain", "in_blocks", "with_block_fault"]

Graph = onnx.GraphProto
Array = np.ndarray


def chain(path: Path, sizes: tuple[int, ...] = (64, 128, 128, 96, 64, 16), seed: int = 0) -> Path:
    """Products with a Relu between them.

    Args:
        path: Of the file.
        sizes: Of the input, and of what each product gives.
        seed: Of the weights.
    """
    random, lines, weights, name = np.random.default_rng(seed), [], {}, "x"
    for place, (rows, columns) in enumerate(itertools.pairwise(sizes)):
        weights[f"w{place}"] = (random.normal(size=(rows, columns)) * np.sqrt(2 / rows)).astype(np.float32)
        last = place == len(sizes) - 2
        lines.append(f"{'y' if last else f'm{place}'} = MatMul ({name}, w{place})")
        if not last:
            lines.append(f"r{place} = Relu (m{place})")
            name = f"r{place}"
    text = f"chain (float[batch, {sizes[0]}] x) => (float[batch, {sizes[-1]}] y) {{ {' '.join(lines)} }}"
    return written(path, text, weights)


def in_blocks(
    source: Path, path: Path, bits: int = 4, size: int = 32, *, symmetric: bool = False, form: str = "QOperator"
) -> Path:
    """A model with its products' weights in few bits.

    Args:
        source: The model.
        path: Of the result.
        bits: Of a weight.
        size: Of a block.
        symmetric: Whether blocks have no zero points.
        form: "QOperator" for MatMulNBits, "QDQ" for DequantizeLinear in front of MatMul.
    """
    model = onnx.load(source)
    quantizer = MatMulNBitsQuantizer(
        model, bits=bits, block_size=size, is_symmetric=symmetric, quant_format=QuantFormat[form]
    )
    quantizer.process()
    quantizer.model.save_model_to_file(str(path))
    return path


def _operand(graph: Graph, place: int, index: int) -> onnx.TensorProto:
    """Of the product of that place, or of what dequantizes its weights."""
    reading = [node for node in graph.node if node.op_type in {"MatMulNBits", "DequantizeLinear"}][place]
    at = index if reading.op_type == "MatMulNBits" else index - 1
    (found,) = [item for item in graph.initializer if item.name == reading.input[at]]
    return found


def _change(tensor: onnx.TensorProto, change: Callable[[Array], Array]) -> None:
    array = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(change(array)).astype(array.dtype), tensor.name))


def _mixed(array: Array) -> Array:
    return np.random.default_rng(1).permutation(array.reshape(-1)).reshape(array.shape)


def _lost_zero_points(graph: Graph, place: int) -> None:
    node = [node for node in graph.node if node.op_type == "MatMulNBits"][place]
    del node.input[3]


def _scaled(graph: Graph, place: int) -> None:
    _change(_operand(graph, place, 2), lambda scales: scales * np.float32(1.5))


def _scales_in_another_order(graph: Graph, place: int) -> None:
    _change(_operand(graph, place, 2), _mixed)


def _columns(graph: Graph, place: int) -> None:
    order = np.random.default_rng(2).permutation(_operand(graph, place, 1).dims[0])
    for index in (1, 2):
        _change(
            _operand(graph, place, index), lambda array: array.reshape(len(order), -1)[order].reshape(array.shape)
        )


BLOCK_FAULTS: Mapping[str, tuple[Callable[[Graph, int], None], str]] = {
    "zero points lost": (_lost_zero_points, "as by another zero point"),
    "scaled": (_scaled, "are scaled by 1.5"),
    "scales in another order": (_scales_in_another_order, "were in another order"),
    "columns": (_columns, "are permuted along axis 1"),
}
"""What changes the layer of a place, and what's said of it."""


def with_block_fault(right: Path, name: str, place: int, path: Path) -> Path:
    """A copy of a file with a fault in one product."""
    model = onnx.load(right)
    BLOCK_FAULTS[name][0](model.graph, place)
    onnx.save(model, path)
    return path
