"""Variants of a case: inputs become weights, weights become inputs, and some numbers become special values."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx
from onnx import helper, numpy_helper

from conrepair.formats.onnx.load.file import nodes_of
from conrepair.ground.metrics.ulps import is_number, is_real
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.cases.draft import keep

_REAL = (np.nan, np.inf, -np.inf, -0.0)
_DIVIDING = {"Div", "Mod"}
_ELEMENTWISE = _DIVIDING | {"Abs", "Add", "Equal", "Greater", "Less", "Max", "Min", "Mul", "Neg", "Sign", "Sub"}
_HALF, _MOST = 0.5, 3


def with_constants(case: Case, names: Collection[str]) -> Case:
    """A case with some inputs' values in its network.

    Args:
        case: Any.
        names: Of inputs.
    """
    model = case.model
    keep(model.graph.input, lambda item: item.name not in names)
    stored = {item.name for item in model.graph.initializer}
    for name in sorted(set(names) - stored):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(case.inputs[name]), name))
    return Case.of(model, {name: array for name, array in case.inputs.items() if name not in names}, case.options)


def with_fed_weights(case: Case) -> Case:
    """A case whose real weights are inputs: what's differentiated is differentiated by these, too.

    Args:
        case: Any.
    """
    model = case.model
    graph, fed = model.graph, dict(case.inputs)
    stored = list(graph.initializer)
    del graph.initializer[:]
    for item in stored:
        array = numpy_helper.to_array(item)
        if item.name in fed or not is_real(array):
            graph.initializer.append(item)
            continue
        fed[item.name] = array
        if item.name not in {value.name for value in graph.input}:
            graph.input.append(helper.make_tensor_value_info(item.name, item.data_type, array.shape))
    return Case.of(model, fed, case.options) if len(fed) > len(case.inputs) else case


def drawn_constants(case: Case, generator: np.random.Generator) -> Case:
    """A case with some of its inputs (half of the time all) as weights.

    Args:
        case: Any.
        generator: By which they're drawn.
    """
    names = [name for name, array in sorted(case.inputs.items()) if is_number(array)]
    if names and generator.random() < _HALF:
        names = [name for name in names if generator.random() < _HALF] or names[:1]
    return with_constants(case, names)


def drawn_specials(case: Case, generator: np.random.Generator) -> Case:
    """A case with special values (NaN, infinities, zeros) in some inputs.

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
