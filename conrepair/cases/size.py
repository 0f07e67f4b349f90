"""How large a case is: what is smaller is easier to read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import numpy_helper

from conrepair.cases.case import Array, Case
from conrepair.frameworks.onnx_files.file import nodes_of

__all__ = ["smaller"]

_DIGITS = 53  # of a float64
_STRANGE = 100  # for NaN and infinities


def smaller(one: Case, two: Case) -> bool:
    """Whether the first of two cases is smaller: of large ones no more is looked at than that takes.

    What's compared is nodes, then outputs, inputs, options, elements and axes of inputs and weights, sizes left open,
    attributes, what whole numbers there take, binary digits and different numbers of inputs and weights.

    Args:
        one: Any.
        two: Another one.
    """
    return next((left < right for left, right in zip(_sizes(one), _sizes(two), strict=True) if left != right), False)


def _sizes(case: Case) -> Iterator[int]:
    graph = case.model.graph
    nodes = list(nodes_of(graph))
    yield len(nodes)
    yield len(graph.output)
    yield len(case.inputs)
    yield sum(map(len, case.options.values()))
    arrays = [*case.inputs.values(), *map(numpy_helper.to_array, graph.initializer)]
    yield sum(array.size for array in arrays)
    yield sum(array.ndim for array in arrays)
    yield sum(not one.HasField("dim_value") for item in graph.input for one in item.type.tensor_type.shape.dim)
    attributes = [item for node in nodes for item in node.attribute]
    yield len(attributes)
    yield sum(number.bit_length() for item in attributes for number in (item.i, *item.ints))
    yield sum(_digits(array) + len(np.unique(array)) for array in arrays)


def _digits(array: Array) -> int:
    """Binary digits of all elements, with how far they are from one; a sign counts, too."""
    if array.dtype.kind in "SUO" or not array.size:
        return 0
    numbers = array.astype(np.float64)
    finite = np.isfinite(numbers)
    part, exponent = np.frexp(np.abs(np.where(finite, numbers, 0.0)))
    whole = (part * 2.0**_DIGITS).astype(np.int64)
    trailing = np.log2(np.where(whole, whole & -whole, 1)).astype(np.int64)
    digits = np.where(whole, _DIGITS - trailing + np.abs(exponent - 1) + (numbers < 0), 0)
    return int(np.where(finite, digits, _STRANGE).sum())
