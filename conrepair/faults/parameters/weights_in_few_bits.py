"""Four bits for a whole tensor, where eight for each channel were meant."""

from __future__ import annotations

import numpy as np

from conrepair.faults.edits import Array
from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


def _rounded(
    array: Array,
) -> Array:
    step = np.abs(array).max() / 7 or 1
    return (np.round(array / step) * step).astype(array.dtype)


FAULT = Fault(
    name="weights-in-few-bits",
    kind=Kind.PARAMETERS,
    provenance="fasterai#80, PocketFlow#249",
    repair="quantize each channel, with eight bits",
    places=weights(),
    change=changed_tensor(1, lambda array, _: _rounded(array), "the weights of {name} are rounded to four bits"),
)
