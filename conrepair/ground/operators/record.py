"""What is known of an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Attribute = int | float | str | bool | None | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]
Function = Callable[..., Any]
BY_CHANNEL = "where its channels stand is said by the node; ONNX's reference computes it"
"""Why an operator's value isn't said."""
STEP = "a step: 0 but where it jumps"
"""The reason why an operator has no derivative."""


@dataclass(frozen=True)
class Operator:
    """An operator: what its nodes may have, what it computes, and what follows from that.

    Attributes:
        value: In NumPy, of arrays of any float type and attributes by name; or why it isn't said.
        derivative: Of the same: in its operand; in each of its operands, where it has two. Or why there's none.
        parameters: Roles, each with the axes of its array in words.
        attributes: With the values they have when nothing is said; None where there is no default.
        family: Of operators that do the like, so that one can stand in another's place; from coarse to fine, with a
            dot between.
        operands: How many it reads element by element; 0 of what computes otherwise.
        turns: Where values turn or jump as operands grow, maybe by attributes: it's monotone in between. None where
            `conrepair.verdicts.truth.rules` has a rule for its rounding bound.
        exact: Whether it rounds nothing.
        commutes: Whether its operands may be exchanged.
        logical: Whether it's of truth values.
        domain: Of what it reads, where it's finite; None for all numbers.
        unbounded: Why there's no bound of its rounding.
        terms: Of what it reads and its attributes, how large what cancels on the way is, which a rounding error is
            relative to: 0 where nothing does. None where nothing does anywhere.
    """

    value: Function | str
    derivative: Function | str
    parameters: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    family: str = ""
    operands: int = 0
    turns: Sequence[float] | Callable[..., Sequence[float]] | None = None
    exact: bool = False
    commutes: bool = False
    logical: bool = False
    domain: tuple[float, float] | None = None
    unbounded: str = ""
    terms: Function | None = None

    def compute(self, *operands: Array, **attributes: Any) -> Any:
        """Its value, of operands and a node's attributes.

        Raises:
            NotImplementedError: if it isn't said, with the reason.
        """
        if isinstance(self.value, str):
            raise NotImplementedError(self.value)
        return self.value(*operands, **self.given(attributes))

    def given(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """This operator's attributes that have a value: as a node says, or as when nothing is said.

        Not in which order a constant is read: operands are given in order.

        Args:
            attributes: Of the node.
        """
        said = {name: value for name, value in attributes.items() if name in self.attributes and value is not None}
        usual = {name: value for name, value in self.attributes.items() if value is not None}
        return {name: value for name, value in {**usual, **said}.items() if name != "constant_first"}
