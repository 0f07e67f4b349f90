"""Resize takes its cells from another place."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import operators

__all__ = ["FAULT"]

_MODES = ("asymmetric", "align_corners", "half_pixel")


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    attribute = node.attributes.get("coordinate_transformation_mode")
    before = attribute.as_string() if attribute is not None else "half_pixel"
    after = str(generator.choice([mode for mode in _MODES if mode != before]))
    node.attributes["coordinate_transformation_mode"] = onnx_ir.AttrString("coordinate_transformation_mode", after)
    return Change((node,), f"{node.name}: {after} instead of {before}")


FAULT = Fault(
    name="resize-coordinates",
    kind=Kind.HYPERPARAMETERS,
    provenance="TensorRT#273, onnxruntime#17564, onnx-tensorflow#632",
    repair="coordinate_transformation_mode",
    places=operators("Resize"),
    change=_change,
)
