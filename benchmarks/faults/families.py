"""Changes that several faults have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import WEIGHTS, parameter_changed
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array

__all__ = ["bias_fault", "normalization_fault", "weights_fault"]

Compute = Callable[[Array, np.random.Generator], Array]

_BIASES = dict.fromkeys(("Conv", "ConvTranspose", "MatMul"), "bias")
_ROLES = {1: "scale", 2: "bias", 3: "mean", 4: "variance"}  # of a normalization's inputs


def weights_fault(
    name: str,
    *,
    kind: Kind = Kind.PARAMETERS,
    provenance: str,
    repair: str,
    compute: Compute,
    words: str,
    condition: Callable[[Array], bool] = lambda _: True,
    real: bool = False,
) -> Fault:
    """A fault in a layer's weights.

    Args:
        name: See `Fault`, as for the next ones.
        kind: What a diagnosis should call it.
        provenance: Where it was seen.
        repair: What fixes it.
        compute: Their new numbers; convolutions' are [out, in / group, *kernel].
        words: What was done to "{name}".
        condition: On the numbers.
        real: Whether it's none where they're stored in few bits.
    """

    def several(array: Array) -> bool:
        return array.size > 1 and condition(array)

    return Fault(
        name=name,
        kind=kind,
        provenance=provenance,
        repair=repair,
        native=parameter_changed(WEIGHTS, compute, words, several, real=real),
    )


def bias_fault(name: str, *, provenance: str, repair: str, compute: Compute, words: str) -> Fault:
    """A fault in a layer's bias; arguments as for `weights_fault`."""
    return Fault(
        name=name,
        kind=Kind.PARAMETERS,
        provenance=provenance,
        repair=repair,
        native=parameter_changed(_BIASES, compute, words, lambda array: array.size > 1 and bool(array.any())),
    )


def normalization_fault(
    name: str, *, provenance: str, repair: str, operators: tuple[str, ...], index: int, compute: Compute, words: str
) -> Fault:
    """A fault in one of a normalization's tensors.

    Args:
        name: See `weights_fault`, as for the others.
        provenance: Where it was seen.
        repair: What fixes it.
        operators: Which normalizations.
        index: Of the tensor among ONNX's inputs.
        compute: Its new numbers.
        words: What was done to "{name}".
    """
    return Fault(
        name=name,
        kind=Kind.PARAMETERS,
        provenance=provenance,
        repair=repair,
        native=parameter_changed(dict.fromkeys(operators, _ROLES[index]), compute, words),
    )
