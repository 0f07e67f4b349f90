"""The upper bound of a clipping (ReLU6) is lost or another."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.edits import constant_of, numbers_of, set_constant
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import attributes_changed
from benchmarks.faults.places import nodes_with
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]


def _factor(generator: np.random.Generator) -> float:
    return float(generator.choice([0.5, 100.0]))


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    bound = numbers_of(node, 2)
    factor = _factor(generator)
    set_constant(node, 2, np.asarray(bound * bound.dtype.type(factor)))
    return Change((node,), f"{node.name} clips at {float(bound) * factor:g} instead of {float(bound):g}")


FAULT = Fault(
    name="bounds-of-clip",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnx-tool#39, onnx2tf#207",
    repair="the bound",
    places=nodes_with(lambda node: constant_of(node, 2) is not None, "Clip"),
    change=_change,
    native=attributes_changed(
        ["Clip"],
        lambda node, generator: {"max": node.real("max") * _factor(generator)},
        lambda _, node: isinstance(node.attributes.get("max"), int | float),
    ),
)
