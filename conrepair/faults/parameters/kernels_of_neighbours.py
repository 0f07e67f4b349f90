"""Input channels of a convolution are exchanged."""

from __future__ import annotations

import numpy as np

from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


FAULT = Fault(
    name="kernels-of-neighbours",
    kind=Kind.PARAMETERS,
    provenance="onnx2tf#105",
    repair="the order of the input channels",
    places=weights(lambda array: array.ndim == 4 and array.shape[1] > 1),
    change=changed_tensor(
        1,
        lambda array, _: array[:, np.roll(np.arange(array.shape[1]), 1)],
        "the weights of {name} have their input channels rotated",
    ),
)
