"""A layer's bias is in another order than its channels."""

from __future__ import annotations

import numpy as np

from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import biases

__all__ = ["FAULT"]


FAULT = Fault(
    name="bias-permuted",
    kind=Kind.PARAMETERS,
    provenance="pytorch#166797",
    repair="the bias",
    places=biases,
    change=changed_tensor(2, lambda array, _: np.roll(array, 1, -1), "the bias of {name} is shifted by one channel"),
)
