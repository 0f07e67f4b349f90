"""Changes that several faults have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir

from conrepair.faults.edits import Array, numbers_of, set_constant
from conrepair.faults.fault import Change

__all__ = ["changed_tensor", "flipped"]


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
