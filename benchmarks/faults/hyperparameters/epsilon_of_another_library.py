"""A normalization has the epsilon that another library has by default."""

from __future__ import annotations

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed
from conrepair.ground.graph.kinds import Kind

__all__ = ["EPSILONS", "FAULT", "other_epsilon"]

EPSILONS = (1e-3, 1e-5, 1e-6, 1e-12)
"""Of Keras, of PyTorch, of many vision transformers and RMS norms, of BERT."""

_OPERATORS = ("BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization")


def other_epsilon(epsilon: float, generator: np.random.Generator) -> float:
    """One of those that it isn't."""
    return float(generator.choice([other for other in EPSILONS if not np.isclose(other, epsilon, rtol=0.1, atol=0)]))


FAULT = Fault(
    name="epsilon-of-another-library",
    kind=Kind.HYPERPARAMETERS,
    provenance="tvm#14926, mindone#219, tensorflow-onnx#1726",
    repair="epsilon",
    native=attributes_changed(
        _OPERATORS,
        lambda node, generator: {"epsilon": other_epsilon(node.real("epsilon"), generator)},
    ),
)
