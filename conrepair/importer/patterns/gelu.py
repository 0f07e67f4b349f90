"""GELU, exact or by tanh."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx_ir

from conrepair.importer.patterns.rewriting import FLOATS, agree, replace_value, scalar_steps
from conrepair.importer.region import compute
from conrepair.onnx_passes.initializers import constant_of
from conrepair.onnx_passes.rewrites.building import only_use
from conrepair.truth.exact import gelu

__all__ = ["join_gelu"]

_TOLERANCE = 2e-6


def join_gelu(node: onnx_ir.Node, opsets: Mapping[str, int]) -> None:
    """Half of x * (1 + erf(x / sqrt(2))), or its approximation by tanh, however it is arranged."""
    exact = node.op_type == "Erf"
    origin = node.inputs[0]
    if origin is None or origin.dtype not in FLOATS:
        return
    probe = np.linspace(-6, 6, 257).astype(origin.dtype.numpy())
    expected = gelu(probe.astype(np.float64), "none" if exact else "tanh")
    sources = list(scalar_steps(origin, {"Mul", "Div", "Cast"})) if exact else list(_ancestors(origin, 6))
    for target in _descendants(node.outputs[0], 4):
        for source in sources:
            if agree(expected, compute(target, {source: probe}, opsets), _TOLERANCE):
                joined = onnx_ir.Node(
                    "conrepair", "Gelu", [source], name=node.name,
                    attributes=[onnx_ir.AttrInt64("approximate", int(not exact))],
                )  # fmt: skip
                replace_value(target, joined)
                return


_ELEMENTWISE = {"Add", "Mul", "Div", "Pow", "Sub", "Cast"}


def _ancestors(value: onnx_ir.Value, depth: int) -> Iterator[onnx_ir.Value]:
    """Values that a value was made from, element by element, nearest first."""
    level, seen = [value], set()
    for _ in range(depth):
        following = []
        for item in level:
            if item in seen:
                continue
            seen.add(item)
            yield item
            producer = item.producer()
            if producer is not None and producer.op_type in _ELEMENTWISE:
                following += [one for one in producer.inputs if one is not None and constant_of(one) is None]
        level = following


def _descendants(value: onnx_ir.Value, depth: int) -> list[onnx_ir.Value]:
    """Values that are made from a value alone, element by element, farthest first."""
    found: list[onnx_ir.Value] = []
    for _ in range(depth):
        user = only_use(value)
        if user is None or user.op_type not in {"Add", "Mul", "Div"} or len(user.outputs) != 1:
            break
        value = user.outputs[0]
        found.append(value)
    return found[::-1]
