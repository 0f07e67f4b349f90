"""An operator in one setting, with the data that it's measured on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from conrepair.ground.operators.record import Array

# Sizes around those at which kernels take several values at once, or cut a loop into blocks.
BLOCKS = (1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129)
FEW = (3, 8, 17, 64, 129, 1000, 4096)


@dataclass(frozen=True, eq=False)
class Case:
    """One setting of an operator.

    Attributes:
        operator: The row of the table that it counts for.
        family: "unary", "binary", "reductions", "normalizations", "products" or "windows".
        body: ONNX nodes as text, which compute `y` of the inputs and constants that they name.
        feeds: By name of an input, which data it gets (see `conrepair_lab.accuracy.samples`).
        constants: By name; those in float64 take the network's element type, which holds their values.
        size: Of what is summed, or of the image; 0 where nothing is summed.
        terms: How many numbers are summed for one of the result.
        sums: Whether rounding errors are relative to what the nodes give of all magnitudes: of terms, not of sums.
        scale: Of the values and the inputs in float64: what errors are relative to, where that's something else.
        opset: The first in which the nodes are what they are here.
    """

    operator: str
    family: str
    body: str
    feeds: Mapping[str, str]
    constants: Mapping[str, Array] = field(default_factory=dict)
    size: int = 0
    opset: int = 20
    terms: int = 0
    sums: bool = False
    scale: Callable[..., Array] | None = None

    @property
    def name(self) -> str:
        """The case's name, which no other case has."""
        return f"{self.operator}_{self.size}" if self.size else self.operator
