"""Four bits for a whole tensor, where eight for each channel were meant."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.faults.edits import Array, numbers_of, set_constant
from conrepair.faults.fault import Change, Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


def _rounded(
    array: Array,
) -> Array:
    step = np.abs(array).max() / 7 or 1
    return (np.round(array / step) * step).astype(array.dtype)


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    array = numbers_of(node, 1)
    set_constant(node, 1, _rounded(array))
    return Change((node,), f"the weights of {node.name} are rounded to four bits")


FAULT = Fault(
    name="weights-in-few-bits",
    kind=Kind.PARAMETERS,
    provenance="fasterai#80, PocketFlow#249",
    repair="quantize each channel, with eight bits",
    places=weights(),
    change=_change,
)
