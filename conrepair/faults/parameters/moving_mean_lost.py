"""The mean that BatchNorm subtracts is lost."""

from __future__ import annotations

import numpy as np

from conrepair.faults.edits import constant_of
from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import nodes_with

__all__ = ["FAULT"]


FAULT = Fault(
    name="moving-mean-lost",
    kind=Kind.PARAMETERS,
    provenance="tensorflow-onnx#1726",
    repair="the tensor",
    places=nodes_with(lambda node: constant_of(node, 3) is not None, "BatchNormalization"),
    change=changed_tensor(3, lambda array, _: np.zeros_like(array), "{name}: its mean is zero"),
)
