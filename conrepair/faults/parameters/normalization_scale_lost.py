"""The factor of a normalization is lost."""

from __future__ import annotations

import numpy as np

from conrepair.faults.edits import constant_of
from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


FAULT = Fault(
    name="normalization-scale-lost",
    kind=Kind.PARAMETERS,
    provenance="onnxmltools#323",
    repair="the tensor",
    places=nodes_with(
        lambda node: constant_of(node, 1) is not None,
        "BatchNormalization",
        "InstanceNormalization",
        "LayerNormalization",
        "GroupNormalization",
    ),
    change=changed_tensor(1, lambda array, _: np.ones_like(array), "{name}: its scale is one"),
)
