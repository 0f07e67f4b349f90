"""A layer's bias is lost."""

from __future__ import annotations

import numpy as np

from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import biases

__all__ = ["FAULT"]


FAULT = Fault(
    name="bias-dropped",
    kind=Kind.PARAMETERS,
    provenance="pytorch#95867, keras-onnx#89",
    repair="the bias",
    places=biases,
    change=changed_tensor(2, lambda array, _: np.zeros_like(array), "the bias of {name} is zero"),
)
