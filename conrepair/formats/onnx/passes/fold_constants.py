"""Compute the parts of a graph that depend on constants only.

They are computed by ONNX Runtime without optimizations, which is what runs the model as the reference too:
onnx.reference, which other folding passes use, is wrong for LRN and for Softmax before opset 13.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir
from onnx_ir.passes.common import LiftConstantsToInitializersPass, RemoveInitializersFromInputsPass

from conrepair.ground.onnx_graphs.computing import GRAPHS, computing
from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes, static_shape
from conrepair.ground.onnx_graphs.initializers import new_initializer
from conrepair.ground.runtime.onnx_session import open_session

RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
UNSTEADY = RANDOM | {"Dropout"}
_KEPT = UNSTEADY | {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"}  # quantization is meant
_SMALL = 1024  # bytes; some kernels want their axes and shapes as constants, larger ones are fed
_LARGEST = 1 << 20  # elements that a folded constant may have if its operands have fewer
_ROUNDS = 8  # folding lets shapes be inferred, which lets more be folded


def fold_constants(model: onnx_ir.Model) -> None:
    """Replace what can be computed by constants, in place; all constants become initializers.

    The shapes of tensors whose sizes are known are constants too.
    """
    RemoveInitializersFromInputsPass()(model)
    for _ in range(_ROUNDS):
        LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
        infer_shapes(model)
        shapes = _fold_shapes(model.graph)
        nodes = _constant_nodes(model.graph)
        if nodes:
            _compute(nodes, model)
        if not nodes and not shapes:
            return


def _fold_shapes(graph: onnx_ir.Graph) -> int:
    """Replace Shape and Size where the sizes that they ask for are known; how many were replaced."""
    count = 0
    for node in list(graph):
        sizes = _sizes(node)
        if sizes is None:
            continue
        result = np.array(sizes if node.op_type == "Shape" else math.prod(sizes), np.int64)
        _replace(node.outputs[0], result, graph)
        graph.remove(node, safe=True)
        count += 1
    return count


def _sizes(node: onnx_ir.Node) -> list[int] | None:
    """What a Shape or Size is computed from, if all of it is known."""
    source = node.inputs[0] if node.op_type in {"Shape", "Size"} and not node.domain else None
    if source is None or source.shape is None:
        return None
    sizes = source.shape[attribute(node, "start") : attribute(node, "end")]
    numbers = [size for size in sizes if isinstance(size, int)]
    return numbers if len(numbers) == len(sizes) else None


def _constant_nodes(graph: onnx_ir.Graph) -> list[onnx_ir.Node]:
    """In order, those whose operands are constants or computed by others of the list."""
    known: set[onnx_ir.Value] = set(graph.initializers.values())
    result = []
    for node in graph:
        if _can_fold(node, known):
            result.append(node)
            known.update(node.outputs)
    return result


def _can_fold(node: onnx_ir.Node, known: set[onnx_ir.Value]) -> bool:
    if node.domain not in {"", "ai.onnx"} or node.op_type in _KEPT:
        return False
    if any(attribute.type in GRAPHS for attribute in node.attributes.values()):
        return False
    operands = [value for value in node.inputs if value is not None]
    if not all(value in known and _is_plain(value) for value in operands):
        return False
    largest = max([_LARGEST, *(math.prod(static_shape(value) or [0]) for value in operands)])
    return all(_is_plain(value) and math.prod(static_shape(value) or [0]) <= largest for value in node.outputs)


def _is_plain(value: onnx_ir.Value) -> bool:
    """Whether it's a tensor, of a shape that's known, of a type that both numpy and ONNX Runtime have."""
    kind = value.type or (onnx_ir.TensorType(value.const_value.dtype) if value.const_value is not None else None)
    if not isinstance(kind, onnx_ir.TensorType) or static_shape(value) is None:
        return not value.name  # an output that is left out
    return kind.dtype in _PLAIN


# Whole numbers, real ones of at least half precision, and truths.
_PLAIN = {onnx_ir.DataType.from_numpy(np.dtype(code)) for code in np.typecodes["AllInteger"] + "efd?"}


def _compute(nodes: list[onnx_ir.Node], model: onnx_ir.Model) -> None:
    removed = set(nodes)
    inner = dict.fromkeys(value for node in nodes for value in node.outputs)
    wanted = [value for value in inner if value.name and _is_used_outside(value, removed)]
    constants = dict.fromkeys(
        value for node in nodes for value in node.inputs if value is not None and value not in inner
    )
    results = _run(nodes, constants, wanted, model) if wanted else []
    for value, array in zip(wanted, results, strict=True):
        _replace(value, array, model.graph)
    model.graph.remove(nodes, safe=True)


def _is_used_outside(value: onnx_ir.Value, nodes: set[onnx_ir.Node]) -> bool:
    return value.is_graph_output() or any(use.node not in nodes for use in value.uses())


def _run(
    nodes: list[onnx_ir.Node], constants: Iterable[onnx_ir.Value], wanted: list[onnx_ir.Value], model: onnx_ir.Model
) -> list[npt.NDArray[np.generic]]:
    fed: dict[str, npt.NDArray[np.generic]] = {}
    stored: dict[str, npt.NDArray[np.generic]] = {}
    for value in constants:
        tensor = value.const_value
        if tensor is None:
            raise ValueError(f"{value.name} is no constant")
        (fed if tensor.nbytes > _SMALL else stored)[str(value.name)] = tensor.numpy()
    opsets = {"": _oldest_opset(nodes, model.opset_imports.get("", 1))}
    proto = computing(nodes, fed, [str(value.name) for value in wanted], opsets, stored)
    results: list[npt.NDArray[np.generic]] = open_session(proto.SerializeToString()).run(None, fed)
    return results


def _oldest_opset(nodes: list[onnx_ir.Node], opset: int) -> int:
    """The first one in which operators are what they are in this one: ONNX Runtime lacks what isn't released yet."""
    return max(int(onnx.defs.get_schema(node.op_type, opset).since_version) for node in nodes)


def _replace(value: onnx_ir.Value, array: npt.NDArray[np.generic], graph: onnx_ir.Graph) -> None:
    """Let an initializer of the same name take a value's place."""
    name, value.name = str(value.name), f"{value.name}/computed"
    constant = new_initializer(graph, name, array)
    onnx_ir.convenience.replace_all_uses_with([value], [constant], replace_graph_outputs=True)
