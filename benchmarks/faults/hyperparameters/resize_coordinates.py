"""Resize takes its cells from another place."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import attributes_changed
from benchmarks.faults.places import operators
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]

_ATTRIBUTE = "coordinate_transformation_mode"
_MODES = ("asymmetric", "align_corners", "half_pixel")


def _other(mode: str, generator: np.random.Generator) -> str:
    return str(generator.choice([item for item in _MODES if item != mode]))


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    attribute = node.attributes.get(_ATTRIBUTE)
    before = attribute.as_string() if attribute is not None else "half_pixel"
    after = _other(before, generator)
    node.attributes[_ATTRIBUTE] = onnx_ir.AttrString(_ATTRIBUTE, after)
    return Change((node,), f"{node.name}: {after} instead of {before}")


FAULT = Fault(
    name="resize-coordinates",
    kind=Kind.HYPERPARAMETERS,
    provenance="TensorRT#273, onnxruntime#17564, onnx-tensorflow#632",
    repair="coordinate_transformation_mode",
    places=operators("Resize"),
    change=_change,
    native=attributes_changed(
        ["Resize"],
        lambda node, generator: {_ATTRIBUTE: _other(node.text(_ATTRIBUTE), generator)},
        lambda _, node: _ATTRIBUTE in node.attributes,
    ),
)
