"""Sizes: those that a network leaves open, as a case has them and further ones for the same build; the largest."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math

import numpy as np
import onnx
from onnx import helper

from conrepair_lab.cases.case import Array, Case

SIZES = "sizes"
"""Among a case's options, beside those of systems: by name of an open size, another number for a further run."""


def open_sizes(case: Case) -> dict[str, int]:
    """By name of an open size, what it is in the case's inputs.

    Args:
        case: Any.
    """
    found: dict[str, int] = {}
    for item in case.model.graph.input:
        if item.name in case.inputs:
            found.update(_named(item, case.inputs[item.name]))
    return found


def resized(case: Case) -> Case | None:
    """The same network on inputs of its further sizes: the same numbers, repeated, or less of them.

    Args:
        case: Any.

    Returns:
        It, without further sizes; None where there are none.
    """
    sizes = case.options.get(SIZES, {})
    inputs = dict(case.inputs)
    for item in case.model.graph.input:
        for axis, size in enumerate(item.type.tensor_type.shape.dim if item.name in inputs else ()):
            if size.dim_param in sizes:
                inputs[item.name] = _of_size(inputs[item.name], axis, sizes[size.dim_param])
    if all(array.shape == case.inputs[name].shape for name, array in inputs.items()):
        return None
    return dataclasses.replace(with_sizes(case, {}), inputs=inputs)


def with_sizes(case: Case, sizes: dict[str, int]) -> Case:
    """A case with other further sizes.

    Args:
        case: Any.
        sizes: By name; none for a case that runs with one size.
    """
    options = {name: given for name, given in case.options.items() if name != SIZES}
    return dataclasses.replace(case, options=options | ({SIZES: sizes} if sizes else {}))


def drawn_sizes(case: Case, generator: np.random.Generator) -> Case:
    """A case with another number for each open size: one more, about twice as many, or half.

    Args:
        case: Any.
        generator: By which they're drawn.
    """
    sizes = {name: (size + 1, 2 * size + 3, max(1, size // 2)) for name, size in open_sizes(case).items() if size}
    return with_sizes(case, {name: int(generator.choice(others)) for name, others in sizes.items()})


def definite(case: Case) -> Case:
    """The case for systems that build for definite sizes: those that its inputs have.

    Args:
        case: Any.
    """
    model, known = case.model, open_sizes(case)
    for item in model.graph.input:
        if item.name in case.inputs:
            kind = item.type.tensor_type.elem_type
            item.CopyFrom(helper.make_tensor_value_info(item.name, kind, case.inputs[item.name].shape))
    for item in (*model.graph.output, *model.graph.value_info):
        for size in item.type.tensor_type.shape.dim:
            if size.dim_param in known:
                size.dim_value = known[size.dim_param]
    return Case.of(model, case.inputs, with_sizes(case, {}).options)


def largest(case: Case) -> int:
    """Elements of the largest tensor whose size is known, results in between among them.

    Args:
        case: Any.
    """
    graph = case.model.graph
    sizes = [array.shape for array in case.inputs.values()] + [tuple(item.dims) for item in graph.initializer]
    with contextlib.suppress(onnx.shape_inference.InferenceError):  # then what the file declares is what's known
        graph = onnx.shape_inference.infer_shapes(case.model).graph
    shapes = [item.type.tensor_type.shape for item in (*graph.value_info, *graph.output)]
    sizes += [tuple(size.dim_value for size in shape.dim) for shape in shapes if shape.dim]
    return max(map(math.prod, sizes), default=0)


def _named(item: onnx.ValueInfoProto, array: Array) -> dict[str, int]:
    dims = item.type.tensor_type.shape.dim
    return {one.dim_param: size for one, size in zip(dims, array.shape, strict=False) if one.dim_param}


def _of_size(array: Array, axis: int, size: int) -> Array:
    there = itertools.islice(itertools.cycle(range(array.shape[axis])), size)
    return np.ascontiguousarray(array.take(list(there), axis)).reshape(
        (*array.shape[:axis], size, *array.shape[axis + 1 :])
    )
