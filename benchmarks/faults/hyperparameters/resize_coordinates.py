"""Resize takes its cells from another place."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]

_ATTRIBUTE = "coordinate_transformation_mode"
_MODES = ("asymmetric", "align_corners", "half_pixel")


def _other(mode: str, generator: np.random.Generator) -> str:
    return str(generator.choice([item for item in _MODES if item != mode]))


FAULT = Fault(
    name="resize-coordinates",
    kind=Kind.HYPERPARAMETERS,
    provenance="TensorRT#273, onnxruntime#17564, onnx-tensorflow#632",
    repair="coordinate_transformation_mode",
    native=attributes_changed(
        ["Resize"],
        lambda node, generator: {_ATTRIBUTE: _other(node.text(_ATTRIBUTE), generator)},
        lambda _, node: _ATTRIBUTE in node.attributes,
    ),
)
