"""The slope of an activation is another library's default."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULT"]

# What ONNX takes by default, then what others do.
_DEFAULTS = {"Elu": (1.0, 0.5), "HardSigmoid": (0.2, 1 / 6), "LeakyRelu": (0.01, 0.3), "ThresholdedRelu": (1.0, 0.5)}


def _other(operator: str, alpha: float) -> float:
    return next(value for value in _DEFAULTS[operator] if abs(value - alpha) > 1e-4)


FAULT = Fault(
    name="slope-of-another-library",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnxconverter-common#117, tvm#7259, Paddle#44820, ncnn#2859",
    repair="alpha",
    native=attributes_changed(
        tuple(_DEFAULTS),
        lambda node, _: {"alpha": _other(node.op, node.real("alpha"))},
        lambda _, node: "alpha" in node.attributes,
    ),
)
