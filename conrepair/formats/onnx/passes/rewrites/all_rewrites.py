"""The rewrites there are, those that change least first; here of attributes, DepthToSpace, OneHot and Hardmax."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir

from conrepair.formats.onnx.passes.explicit_pads import WINDOWED
from conrepair.formats.onnx.passes.rewrites.pools import global_pool, lp_pool, pool_padding
from conrepair.formats.onnx.passes.rewrites.products import affine, flatten, gemm
from conrepair.ground.onnx_graphs.building import Builder, main_nodes
from conrepair.ground.onnx_graphs.defaults import attribute, write_defaults
from conrepair.ground.onnx_graphs.infer_shapes import rank_of
from conrepair.ground.onnx_graphs.initializers import constant_of
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.words import meant


def defaults(model: onnx_ir.Model) -> None:
    """Write them in place, strides, dilations and pads of windows too, whose defaults depend on their rank."""
    opset = model.opset_imports.get("", 1)
    for node in model.graph:
        if node.domain in {"", "ai.onnx"}:
            write_defaults(node, opset)
    for node in main_nodes(model, *WINDOWED, "ConvTranspose"):
        rank = rank_of(node.inputs[0])
        automatic = node.attributes.get("auto_pad")
        if rank is None:
            continue
        wanted = {"strides": [1] * (rank - 2), "dilations": [1] * (rank - 2), "pads": [0] * (2 * (rank - 2))}
        known = onnx.defs.get_schema(node.op_type, opset, "").attributes
        if automatic is not None and automatic.as_string() != "NOTSET":
            del wanted["pads"]
        for name, values in wanted.items():
            if name in known and name not in node.attributes:
                node.attributes[name] = onnx_ir.AttrInt64s(name, values)


def _depth_to_space(model: onnx_ir.Model) -> None:
    """Replace in place where channels and the picture's sizes are known."""
    for node in main_nodes(model, "DepthToSpace", "SpaceToDepth"):
        source = node.inputs[0]
        if source is None or source.shape is None or len(source.shape) != 4:
            continue
        sizes = [size for size in source.shape[1:] if isinstance(size, int)]
        if len(sizes) != 3:
            continue
        block, (depth, height, width) = attribute(node, "blocksize", 1), sizes
        if node.op_type == "SpaceToDepth":
            split = [-1, depth, height // block, block, width // block, block]
            order, joined = [0, 3, 5, 1, 2, 4], [-1, depth * block**2, height // block, width // block]
        elif attribute(node, "mode", "DCR") == "DCR":
            split = [-1, block, block, depth // block**2, height, width]
            order, joined = [0, 3, 4, 1, 5, 2], [-1, depth // block**2, height * block, width * block]
        else:
            split = [-1, depth // block**2, block, block, height, width]
            order, joined = [0, 1, 4, 2, 5, 3], [-1, depth // block**2, height * block, width * block]
        build = Builder(node)
        apart = build.op("Reshape", [source, build.constant(split)])
        turned = build.op("Transpose", [apart], perm=order)
        build.finish(build.op("Reshape", [turned, build.constant(joined)]))


_HARDMAX = 13  # opset from which on Hardmax looks at its axis alone


def one_hot(model: onnx_ir.Model) -> None:
    """Replace in place where the number of classes, and the two values, are constants."""
    for node in main_nodes(model, "OneHot"):
        _one_hot(node)
    if model.opset_imports.get("", 1) >= _HARDMAX:
        for node in main_nodes(model, "Hardmax"):
            _hardmax(node)


def _one_hot(node: onnx_ir.Node) -> None:
    indices, depth, values = node.inputs[0], constant_of(node.inputs[1]), constant_of(node.inputs[2])
    rank = rank_of(indices)
    if indices is None or depth is None or values is None or rank is None or indices.dtype not in _INDICES:
        return
    count, axis = int(depth.reshape(-1)[0]), int(attribute(node, "axis", -1)) % (rank + 1)
    build, kind = Builder(node), indices.dtype.numpy()
    size = build.constant(count, kind)
    # Indices from -count on count from the end; others are nowhere.
    below = build.op("Less", [indices, build.constant(0, kind)])
    wrapped = build.op("Where", [below, build.op("Add", [indices, size]), indices])
    behind = build.op("Unsqueeze", [wrapped, build.constant([axis])])
    build.finish(_compared(build, behind, count, axis, rank + 1, kind, values))


_INDICES = {onnx_ir.DataType.INT32, onnx_ir.DataType.INT64}


def _hardmax(node: onnx_ir.Node) -> None:
    source = node.inputs[0]
    rank = rank_of(source)
    if source is None or source.shape is None or rank is None or source.dtype is None:
        return
    axis = int(attribute(node, "axis", -1)) % rank
    count = source.shape[axis]
    if not isinstance(count, int):
        return
    build = Builder(node)
    best = build.op("ArgMax", [source], axis=axis, keepdims=1)
    values = np.array([0, 1], source.dtype.numpy())
    build.finish(_compared(build, best, count, axis, rank, np.int64, values))


def _compared(
    build: Builder, indices: onnx_ir.Value, count: int, axis: int, rank: int, kind: Any, values: Any
) -> onnx_ir.Value:
    shape = [count if place == axis else 1 for place in range(rank)]
    row = build.constant(np.arange(count).reshape(shape), kind)
    off, on = (build.constant(value, values.dtype) for value in values)
    return build.op("Where", [build.op("Equal", [indices, row]), on, off])


Rewrite = Callable[[onnx_ir.Model], None]
"""Changes a model in place, whose shapes are inferred, where it applies."""

REWRITES: Mapping[str, Rewrite] = {
    "defaults": defaults,
    "flatten": flatten,
    "gemm": gemm,
    "global-pool": global_pool,
    "pool-padding": pool_padding,
    "depth-to-space": _depth_to_space,
    "one-hot": one_hot,
    "lp-pool": lp_pool,
    "affine": affine,
}


def rewrites_named(names: Iterable[str]) -> list[tuple[str, Rewrite]]:
    """The rewrites of those names, in the order of `REWRITES`.

    Raises:
        ConfigError: if one is unknown; suggests the closest.
    """
    wanted = set(names)
    for name in sorted(wanted - set(REWRITES)):
        hint = meant(name, REWRITES, f"known: {', '.join(REWRITES)}")
        raise ConfigError(f"there is no rewrite '{name}'{hint}")
    return [(name, rewrite) for name, rewrite in REWRITES.items() if name in wanted]
