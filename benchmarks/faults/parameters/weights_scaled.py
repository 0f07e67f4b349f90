"""A scale is applied twice, or not at all."""

from __future__ import annotations

from benchmarks.faults.families import weights_fault

__all__ = ["FAULT"]


FAULT = weights_fault(
    "weights-scaled",
    provenance="onnx2tf#942, pytorch#166797",
    repair="the weights, or the scale",
    compute=lambda array, generator: array * array.dtype.type(generator.choice([0.5, 1.25, 2.0])),
    words="the weights of {name} are scaled",
)
