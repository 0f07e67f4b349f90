"""A scale is applied twice, or not at all."""

from __future__ import annotations

from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


FAULT = Fault(
    name="weights-scaled",
    kind=Kind.PARAMETERS,
    provenance="onnx2tf#942, pytorch#166797",
    repair="the weights, or the scale",
    places=weights(),
    change=changed_tensor(
        1,
        lambda array, generator: array * array.dtype.type(generator.choice([0.5, 1.25, 2.0])),
        "the weights of {name} are scaled",
    ),
)
