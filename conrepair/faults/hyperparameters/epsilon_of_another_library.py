"""A normalization has the epsilon that another library has by default."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.native import attributes_changed
from conrepair.faults.places import operators

__all__ = ["FAULT"]

_OPERATORS = ("BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization")


def _other(epsilon: float) -> float:
    return 1e-1 if epsilon < 1e-2 else 1e-5


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    before = node.attributes["epsilon"].as_float() if "epsilon" in node.attributes else 1e-5
    after = _other(before)
    node.attributes["epsilon"] = onnx_ir.AttrFloat32("epsilon", after)
    return Change((node,), f"{node.name}: epsilon is {after:g} instead of {before:g}")


FAULT = Fault(
    name="epsilon-of-another-library",
    kind=Kind.HYPERPARAMETERS,
    provenance="tvm#14926, mindone#219, tensorflow-onnx#1726",
    repair="epsilon",
    places=operators(*_OPERATORS),
    change=_change,
    native=attributes_changed(
        _OPERATORS, lambda node, _: {"epsilon": _other(float(str(node.attributes["epsilon"])))}
    ),
)
