"""The same network on numbers that code forgets: NaN, infinities, zeros, the ends of whole numbers."""

from __future__ import annotations

import numpy as np
import onnx

from conrepair.cases.case import Array, Case
from conrepair.frameworks.onnx_files.file import nodes_of

__all__ = ["drawn_specials", "has_specials"]

_REAL = (np.nan, np.inf, -np.inf, -0.0)
_DIVIDING = {"Div", "Mod"}
_ELEMENTWISE = _DIVIDING | {"Abs", "Add", "Equal", "Greater", "Less", "Max", "Min", "Mul", "Neg", "Sign", "Sub"}
_HALF, _MOST = 0.5, 3


def drawn_specials(case: Case, generator: np.random.Generator) -> Case:
    """A case with some elements of some inputs replaced.

    Whole numbers are replaced where elementwise operators alone read them: others are places and sizes. Inputs of one
    size are replaced in the same places: what meets there is what code forgets.

    Args:
        case: Any.
        generator: By which they're drawn.

    Returns:
        It; the same one where no input can have such numbers.
    """
    names = [name for name, array in sorted(case.inputs.items()) if array.size and _may(case.model, name, array)]
    drawn = [name for name in names if generator.random() < _HALF] or names[:1]
    places = generator.random(generator.integers(1, _MOST + 1))
    inputs = {
        name: _replaced(array, places, generator) if name in drawn else array for name, array in case.inputs.items()
    }
    return Case(case.network, inputs, case.options) if drawn else case


def has_specials(case: Case) -> bool:
    """Whether a system may refuse a case for its numbers: not finite ones, or zeros where whole numbers are divided.

    Args:
        case: Any.
    """
    if any(array.dtype.kind == "f" and not np.isfinite(array).all() for array in case.inputs.values()):
        return True
    zeros = any(array.dtype.kind in "iu" and not array.all() for array in case.inputs.values())
    return zeros and any(node.op_type in _DIVIDING for node in nodes_of(case.model.graph))


def _may(model: onnx.ModelProto, name: str, array: Array) -> bool:
    if array.dtype.kind == "f":
        return True
    readers = {node.op_type for node in nodes_of(model.graph) if name in node.input}
    return array.dtype.kind in "iu" and bool(readers) and readers <= _ELEMENTWISE


def _replaced(array: Array, places: Array, generator: np.random.Generator) -> Array:
    found = array.copy()
    if array.dtype.kind == "f":
        values = [*_REAL, np.finfo(array.dtype).smallest_subnormal, np.finfo(array.dtype).max]
    else:
        ends = np.iinfo(array.dtype)
        values = [0, ends.min, ends.max, *([-1] if ends.min else [])]
    for place in places:
        found.flat[int(place * array.size)] = values[generator.integers(len(values))]
    return found
