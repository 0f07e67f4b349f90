"""Changes that several faults have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir

from benchmarks.faults.edits import Array, constant_of, numbers_of, set_constant
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import WEIGHTS, parameter_changed
from benchmarks.faults.places import biases, nodes_with, weights
from conrepair.graph.kinds import Kind

__all__ = ["bias_fault", "changed_tensor", "flipped", "normalization_fault", "weights_fault"]

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
) -> Fault[onnx_ir.Node]:
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
        places=weights(condition),
        change=changed_tensor(1, compute, words),
        native=parameter_changed(WEIGHTS, compute, words, several, real=real),
    )


def bias_fault(name: str, *, provenance: str, repair: str, compute: Compute, words: str) -> Fault[onnx_ir.Node]:
    """A fault in a layer's bias; arguments as for `weights_fault`."""
    return Fault(
        name=name,
        kind=Kind.PARAMETERS,
        provenance=provenance,
        repair=repair,
        places=biases,
        change=changed_tensor(2, compute, words),
        native=parameter_changed(_BIASES, compute, words, lambda array: array.size > 1 and bool(array.any())),
    )


def normalization_fault(
    name: str, *, provenance: str, repair: str, operators: tuple[str, ...], index: int, compute: Compute, words: str
) -> Fault[onnx_ir.Node]:
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
        places=nodes_with(lambda node: constant_of(node, index) is not None, *operators),
        change=changed_tensor(index, compute, words),
        native=parameter_changed(dict.fromkeys(operators, _ROLES[index]), compute, words),
    )


def changed_tensor(
    index: int, compute: Callable[[Array, np.random.Generator], Array], words: str
) -> Callable[[onnx_ir.Node, np.random.Generator], Change]:
    """A change of one constant input.

    Args:
        index: Of the input.
        compute: Its new numbers.
        words: For a person; "{name}" stands for the node's.
    """

    def change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
        set_constant(node, index, compute(numbers_of(node, index), generator))
        return Change((node,), words.format(name=node.name))

    return change


def flipped(attribute: str) -> Callable[[onnx_ir.Node, np.random.Generator], Change]:
    """A change of an attribute that is 0 (by default) or 1."""

    def change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
        before = node.attributes[attribute].as_int() if attribute in node.attributes else 0
        node.attributes[attribute] = onnx_ir.AttrInt64(attribute, 1 - before)
        return Change((node,), f"{node.name}: {attribute} is {1 - before}")

    return change
