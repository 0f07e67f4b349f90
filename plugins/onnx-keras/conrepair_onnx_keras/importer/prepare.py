"""Bring a graph into the form that rules expect: functions inlined, open sizes fixed, shapes inferred."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import onnx_ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from conrepair.formats.onnx.passes.inline_functions import inline_functions
from conrepair.formats.onnx.passes.lower_opset import lower_opset
from conrepair.formats.onnx.passes.raise_opset import name_default_domain
from conrepair.ground.equations.expression import parse
from conrepair.ground.equations.matching import matched
from conrepair.ground.onnx_graphs.building import only_use
from conrepair.ground.onnx_graphs.defaults import STANDARD
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes
from conrepair.ground.runtime.errors import ConversionError
from conrepair_onnx_keras.importer.patterns import join_patterns

_DENSE = parse("MatMul(x, kernel) + bias")
_OLDEST = 7  # before, operators broadcast by attributes


def prepare(
    model: onnx_ir.Model, known: Collection[tuple[str, str]], sizes: Mapping[str, Sequence[Any]]
) -> onnx_ir.Model:
    """Prepare a model for the walk.

    Args:
        model: May be changed.
        known: Domains and operators that have rules; others are replaced by the function that ONNX defines them
            by, where there is one.
        sizes: Shapes by input name; numbers fix what the model leaves open.

    Raises:
        ConversionError: if a size contradicts the model.
    """
    name_default_domain(model)
    opset = model.opset_imports.get("", _OLDEST)
    if opset < _OLDEST:
        raise ConversionError(
            f"the model is of opset {opset}; the importer knows {_OLDEST} and newer. Raise it first: "
            "onnx-version-converter (`via`)."
        )
    inline_functions(model)
    RemoveUnusedNodesPass()(model)
    _fix_sizes(model.graph, sizes)
    # Operators without a rule are replaced, in place, by the functions that ONNX's standard defines them by.
    lower_opset(model, opset, expand={name for _, name in STANDARD.difference(known)})
    infer_shapes(model)
    join_patterns(model)
    _join_bias(model.graph, opset)
    return model


def _fix_sizes(graph: onnx_ir.Graph, sizes: Mapping[str, Sequence[Any]]) -> None:
    for value in graph.inputs:
        wanted = sizes.get(str(value.name))
        if wanted is None:
            continue
        if value.shape is None:
            value.shape = onnx_ir.Shape(wanted)
            continue
        if len(wanted) != len(value.shape):
            raise ConversionError(f"the declared shape {list(wanted)} doesn't fit input {value.name} {value.shape}.")
        if any(
            isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(wanted, value.shape, strict=True)
        ):
            raise ConversionError(f"the declared shape {list(wanted)} contradicts input {value.name} {value.shape}.")
        fixed = [
            number if isinstance(number, int) and not isinstance(size, int) else size
            for number, size in zip(wanted, value.shape, strict=True)
        ]
        value.shape = onnx_ir.Shape(fixed)


def _join_bias(graph: onnx_ir.Graph, opset: int) -> None:
    """Join MatMul and the Add of a constant row behind it into one node, which becomes a Dense layer."""
    for add in list(graph):
        match = matched(_DENSE, add, opset)
        if match is None or len(match.nodes) != 2:  # the product and the sum: no other tensor is a constant row
            continue
        kernel, row = (_constant_shape(match.values[name]) for name in ("kernel", "bias"))
        matmul = match.nodes[1]
        if len(kernel) != 2 or row not in {kernel[1:], (1, *kernel[1:])} or only_use(matmul.outputs[0]) is not add:
            continue
        inputs = [*matmul.inputs, match.values["bias"]]
        joined = onnx_ir.Node("conrepair", "MatMulBias", inputs, name=matmul.name, num_outputs=1)
        joined.outputs[0].shape, joined.outputs[0].type = add.outputs[0].shape, add.outputs[0].type
        joined.outputs[0].name = add.outputs[0].name
        onnx_ir.convenience.replace_nodes_and_values(graph, add, [matmul, add], [joined], add.outputs, joined.outputs)


def _constant_shape(value: onnx_ir.Value | None) -> tuple[int, ...]:
    tensor = None if value is None else onnx_ir.convenience.get_const_tensor(value)
    return () if tensor is None else tuple(tensor.shape.numpy())
