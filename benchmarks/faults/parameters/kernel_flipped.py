"""Convolution for correlation: kernels are turned by 180 degrees."""

from __future__ import annotations

from benchmarks.faults.families import weights_fault

__all__ = ["FAULT"]


FAULT = weights_fault(
    "kernel-flipped",
    provenance="keras-onnx#555, tvm#18601",
    repair="the kernels' spatial axes",
    compute=lambda array, _: array[:, :, ::-1, ::-1],
    words="the weights of {name} are turned around",
    condition=lambda array: array.ndim == 4 and array.shape[2] * array.shape[3] > 1,
)
