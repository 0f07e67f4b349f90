"""BatchNorm's variance is taken for a standard deviation."""

from __future__ import annotations

from benchmarks.faults.families import normalization_fault

__all__ = ["FAULT"]


FAULT = normalization_fault(
    "deviation-for-variance",
    provenance="onnxmltools#323, tensorflow-onnx#1726",
    repair="the tensor",
    operators=("BatchNormalization",),
    index=4,
    compute=lambda array, _: array**2,
    words="{name}: its variance is squared",
)
