"""The slope of an activation is another library's default."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import attributes_changed
from benchmarks.faults.places import operators
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]

# What ONNX takes by default, then what others do.
_DEFAULTS = {"Elu": (1.0, 0.5), "HardSigmoid": (0.2, 1 / 6), "LeakyRelu": (0.01, 0.3), "ThresholdedRelu": (1.0, 0.5)}


def _other(operator: str, alpha: float) -> float:
    return next(value for value in _DEFAULTS[operator] if abs(value - alpha) > 1e-4)


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    before = node.attributes["alpha"].as_float() if "alpha" in node.attributes else _DEFAULTS[node.op_type][0]
    after = _other(node.op_type, before)
    node.attributes["alpha"] = onnx_ir.AttrFloat32("alpha", after)
    return Change((node,), f"{node.name}: alpha is {after:g} instead of {before:g}")


FAULT = Fault(
    name="slope-of-another-library",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnxconverter-common#117, tvm#7259, Paddle#44820, ncnn#2859",
    repair="alpha",
    places=operators(*_DEFAULTS),
    change=_change,
    native=attributes_changed(
        tuple(_DEFAULTS),
        lambda node, _: {"alpha": _other(node.op, node.real("alpha"))},
        lambda _, node: "alpha" in node.attributes,
    ),
)
