"""The weights of a layer are lost."""

from __future__ import annotations

import numpy as np

from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


FAULT = Fault(
    name="weights-zeroed",
    kind=Kind.PARAMETERS,
    provenance="pytorch#95867, onnx#3992",
    repair="the weights",
    places=weights(),
    change=changed_tensor(1, lambda array, _: np.zeros_like(array), "the weights of {name} are zeros"),
)
