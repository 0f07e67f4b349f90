"""Write sizes that are known from elsewhere into a graph's inputs."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir

from conrepair.ground.data.tensor_spec import TensorSpec


def declare_sizes(model: onnx_ir.Model, declared: Sequence[TensorSpec], batch: int | None = None) -> None:
    """Replace symbolic dimensions of inputs in place; where a symbol gets a number, it gets it everywhere.

    Args:
        model: Whose inputs are completed; shapes behind them are inferred anew.
        declared: Inputs in order, maybe of the model that this one was converted from; used when their number
            and ranks fit. The first dimension is left to `batch`.
        batch: For a symbolic first dimension; None leaves it.
    """
    inputs = [value for value in model.graph.inputs if not value.is_initializer()]
    fits = len(inputs) == len(declared) and all(
        value.shape is not None and len(value.shape) == len(spec.shape)
        for value, spec in zip(inputs, declared, strict=True)
    )
    sizes: dict[str, int] = {}
    for position, value in enumerate(inputs):
        if value.shape is None:
            continue
        shape = list(value.shape)
        for axis, size in enumerate(shape):
            if isinstance(size, int):
                continue
            given = declared[position].shape[axis] if fits and axis else batch if not axis else None
            if isinstance(given, int):
                shape[axis] = given
                if size.value is not None:
                    sizes[size.value] = given
        value.shape = onnx_ir.Shape(shape)
    for value in [*inputs, *model.graph.outputs]:
        if value.shape is not None:
            value.shape = onnx_ir.Shape(
                [size if isinstance(size, int) else sizes.get(str(size.value), size) for size in value.shape]
            )
