"""An operator of TensorFlow as rules see it; TFLite's operators are the same ones, called and stored otherwise."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from conrepair.formats.networks.parts import Shape
from conrepair.ground.graph.layer_graph import Array, Parameter


class TensorflowView(abc.ABC):
    """Operands by their position, options by TensorFlow's names.

    A rule that asks for what isn't known gets a ValueError, KeyError or TypeError: the operator then stays as it is.
    """

    @abc.abstractmethod
    def has(self, position: int) -> bool:
        """Whether an operand is there."""

    @abc.abstractmethod
    def is_constant(self, position: int) -> bool:
        """Whether an operand is there and depends on no input of the network."""

    @abc.abstractmethod
    def shape(self, position: int) -> Shape:
        """Of an operand; None where it isn't known."""

    @abc.abstractmethod
    def result(self, position: int = 0) -> Shape:
        """The shape of a result; None where it isn't known."""

    @property
    @abc.abstractmethod
    def channels_last(self) -> bool:
        """Whether the operator's channels are its tensors' last axis."""

    @abc.abstractmethod
    def channels(self) -> int:
        """Number of the first operand's channels, also where other sizes aren't known."""

    @abc.abstractmethod
    def option(self, name: str) -> Any:
        """A setting, in TensorFlow's words.

        Raises:
            KeyError: if the operator doesn't have it.
        """

    @abc.abstractmethod
    def numbers(self, position: int) -> tuple[int, ...]:
        """An operand that says how the operator works.

        Raises:
            ValueError: if it's no constant of whole numbers.
        """

    @abc.abstractmethod
    def parameter(self, position: int, arrange: Callable[[Array], Array] | None = None) -> Parameter:
        """An operand that's a constant.

        Args:
            position: Of the operand.
            arrange: Brings the numbers into the vocabulary's convention; None leaves them as they are.

        Raises:
            ValueError: if it's none.
        """

    @abc.abstractmethod
    def weight(self) -> Parameter:
        """The constant weight of a convolution, in the vocabulary's convention."""

    def sizes(self, position: int) -> tuple[int, ...]:
        """Shape of an operand that must be known."""
        return _known(self.shape(position))

    def result_sizes(self, position: int = 0) -> tuple[int, ...]:
        """Shape of a result that must be known."""
        return _known(self.result(position))

    def rank(self, position: int = 0) -> int:
        """Number of an operand's axes."""
        return len(self.sizes(position))

    def axis(self, axis: int, position: int = 0) -> int:
        """An operand's axis, counted from 0."""
        return int(axis) % max(self.rank(position), 1)

    def axes(self, position: int, data: int = 0) -> tuple[int, ...]:
        """The axes of an operand that another one names."""
        return tuple(sorted({self.axis(axis, data) for axis in self.numbers(position)}))

    def margins(self, position: int) -> tuple[int, ...]:
        """What's put around each axis, or cut off: pairs in the operand, begins and then ends in the vocabulary."""
        pairs = self.numbers(position)
        return (*pairs[::2], *pairs[1::2])

    def optional(self, **positions: int) -> dict[str, Parameter]:
        """Parameters by role, of the operands that are constants."""
        return {role: self.parameter(position) for role, position in positions.items() if self.is_constant(position)}


def _known(shape: Shape) -> tuple[int, ...]:
    if shape is None:
        raise ValueError("a shape isn't known")
    return shape
