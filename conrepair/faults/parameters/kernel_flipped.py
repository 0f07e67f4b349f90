"""Convolution for correlation: kernels are turned by 180 degrees."""

from __future__ import annotations

from conrepair.faults.families import changed_tensor
from conrepair.faults.fault import Fault, Kind
from conrepair.faults.places import weights

__all__ = ["FAULT"]


FAULT = Fault(
    name="kernel-flipped",
    kind=Kind.PARAMETERS,
    provenance="keras-onnx#555, tvm#18601",
    repair="the kernels' spatial axes",
    places=weights(lambda array: array.ndim == 4 and array.shape[2] * array.shape[3] > 1),
    change=changed_tensor(1, lambda array, _: array[:, :, ::-1, ::-1], "the weights of {name} are turned around"),
)
