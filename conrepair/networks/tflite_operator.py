"""One operator of a TFLite model as the rules of the operator table see it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conrepair.frameworks.screening.tflite import is_pointer
from conrepair.graph.layer_graph import Array, Attribute, Parameter
from conrepair.networks.tflite_constants import TfliteConstants
from conrepair.networks.tflite_file import TfliteFile, plain

__all__ = [
    "ARITHMETIC",
    "FUNCTIONS",
    "POOLS",
    "REDUCTIONS",
    "WEIGHT_AXES",
    "WRITTEN",
    "Arrange",
    "OperatorView",
    "Rule",
    "TfliteStep",
    "native",
    "same",
]

_SAME = ("EXP", "LOG", "SQRT", "RSQRT", "SQUARE", "NEG", "ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "SIN", "COS")

FUNCTIONS: Mapping[str, str] = {
    **{kind: kind.capitalize() for kind in ("RELU", "TANH", *_SAME)},
    "LOGISTIC": "Sigmoid",
    "HARD_SWISH": "HardSwish",
}
"""Of one number, without options that matter."""

ARITHMETIC: Mapping[str, str] = {
    **{kind: kind.capitalize() for kind in ("ADD", "SUB", "MUL", "DIV", "POW")},
    "MINIMUM": "Min",
    "MAXIMUM": "Max",
}
"""Of two numbers."""

REDUCTIONS: Mapping[str, str] = {
    "MEAN": "ReduceMean",
    "SUM": "ReduceSum",
    "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin",
}
"""Along axes that a constant holds."""

POOLS: Mapping[str, str] = {"MAX_POOL_2D": "MaxPool", "AVERAGE_POOL_2D": "AveragePool"}
"""Of windows."""

_WITH_OPTIONS = {
    "ELU": "Elu",
    "GELU": "Gelu",
    "LEAKY_RELU": "LeakyRelu",
    "SOFTMAX": "Softmax",
    "LOG_SOFTMAX": "LogSoftmax",
}

WRITTEN: Mapping[str, str] = {
    op: kind for names in (FUNCTIONS, ARITHMETIC, REDUCTIONS, POOLS, _WITH_OPTIONS) for kind, op in names.items()
}
"""Back: TFLite's name by the vocabulary's."""

WEIGHT_AXES: Mapping[str, tuple[int, ...]] = {
    "CONV_2D": (0, 3, 1, 2),
    "DEPTHWISE_CONV_2D": (3, 0, 1, 2),
    "CONV_3D": (4, 3, 0, 1, 2),
    "TRANSPOSE_CONV": (3, 0, 1, 2),
    "CONV_3D_TRANSPOSE": (4, 3, 0, 1, 2),
    "FULLY_CONNECTED": (1, 0),
}
"""Which axes of a weight in the file are those of the vocabulary's, in its order."""

Arrange = Callable[[Array], Array]


@dataclass(frozen=True)
class TfliteStep:
    """A node in the making.

    Attributes:
        op: In the vocabulary, or the native name.
        inputs: Names of tensors.
        attributes: In the vocabulary's convention.
        parameters: By role.
        channels_last: See `conrepair.graph.layer_graph.Node`.
        shape: Of the result, when another step follows.
        written: See `conrepair.graph.layer_graph.Node`.
    """

    op: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    channels_last: bool = False
    shape: tuple[int, ...] | None = None
    written: Mapping[str, Attribute] = field(default_factory=dict)


Rule = Callable[["OperatorView"], Sequence[TfliteStep] | TfliteStep | None]
"""Steps whose first reads the operator's inputs; a later one reads "" for what the one before gives. None when the
vocabulary can't say what the operator does."""


def same(array: Array) -> Array:
    """Arrange numbers as they are."""
    return array


class OperatorView:
    """Operands by their position.

    Attributes:
        index: Among the file's operators.
        kind: As the schema calls it.
        options: The schema's object; None for an operator without options.
        inputs: Indices of tensors; -1 for those left out.
        outputs: Indices of tensors.
    """

    def __init__(self, file: TfliteFile, constants: TfliteConstants, index: int) -> None:
        self._file, self._constants = file, constants
        self.index, self.kind = index, file.kinds[index]
        operator = file.operators[index]
        self.options: Any = operator.builtinOptions or operator.builtinOptions2
        self.inputs, self.outputs = file.inputs(index), file.outputs(index)

    def has(self, position: int) -> bool:
        """Whether an operand is there."""
        return position < len(self.inputs) and self.inputs[position] >= 0

    def is_constant(self, position: int) -> bool:
        """Whether an operand is there and depends on no input."""
        return self.has(position) and self.inputs[position] in self._constants

    def varies(self, position: int) -> bool:
        """Whether an operand depends on the network's inputs."""
        return self.has(position) and not self.is_constant(position) and not self._is_state(position)

    def names(self, *positions: int) -> tuple[str, ...]:
        """Names of operands; of all that vary when no position is said."""
        chosen = positions or [place for place in range(len(self.inputs)) if self.varies(place)]
        return tuple(self._file.names[self.inputs[place]] for place in chosen)

    def shape(self, position: int) -> tuple[int, ...] | None:
        """An operand's shape; None where only running tells."""
        if self.is_constant(position):
            return self._constants.shape(self.inputs[position])
        return self._constants.shapes[self.inputs[position]]

    def result_shape(self, position: int = 0) -> tuple[int, ...] | None:
        """A result's shape; None where only running tells."""
        return self._constants.shapes[self.outputs[position]]

    def rank(self, position: int = 0) -> int:
        """Number of an operand's axes, by the file where only running tells the shape."""
        shape = self.shape(position)
        return len(self._file.shape(self.inputs[position]) if shape is None else shape)

    def dtype(self, position: int = 0) -> str:
        """An operand's type."""
        return self._file.dtype(self.inputs[position])

    def result_dtype(self) -> str:
        """The result's type."""
        return self._file.dtype(self.outputs[0])

    def is_quantized(self, position: int = 0) -> bool:
        """Whether an operand stands for real numbers by a scale."""
        return self._file.quantization(self.inputs[position]) is not None

    def result_scales(self) -> tuple[float, int] | None:
        """Scale and zero point of the result."""
        found = self._file.quantization(self.outputs[0])
        return (found.scale, found.zero_point) if found else None

    def scales(self, position: int = 0) -> tuple[float, int] | None:
        """Scale and zero point of an operand."""
        found = self._file.quantization(self.inputs[position])
        return (found.scale, found.zero_point) if found else None

    def integers(self, position: int) -> tuple[int, ...] | None:
        """A constant operand's whole numbers; None when it isn't constant."""
        if not self.is_constant(position):
            return None
        return plain(self._constants.stored(self.inputs[position]).reshape(-1))

    def number(self, position: int) -> float | None:
        """A constant operand's only value; None when it isn't constant."""
        if not self.is_constant(position):
            return None
        return float(self._constants.real(self.inputs[position]).reshape(-1)[0])

    def parameter(
        self,
        position: int,
        arrange: Arrange = same,
        shape: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None,
    ) -> Parameter:
        """A constant operand as a parameter.

        Args:
            position: Of the operand.
            arrange: From the file's convention to the graph's.
            shape: From the file's shape to the graph's; by default both are the same.
        """
        tensor = self.inputs[position]
        stored = self._constants.shape(tensor)
        return self._constants.parameter(tensor, shape(stored) if shape else stored, arrange)

    def transposed(self, position: int, *axes: int) -> Parameter:
        """A constant operand with its axes in another order."""
        return self.parameter(
            position,
            lambda array: np.ascontiguousarray(array.transpose(axes)),
            lambda shape: tuple(shape[axis] for axis in axes),
        )

    def weight(self) -> Parameter:
        """The constant weight, as the vocabulary has it."""
        return self.transposed(1, *WEIGHT_AXES[self.kind])

    def optional(self, **positions: int) -> dict[str, Parameter]:
        """Parameters by role, of operands that are there."""
        return {role: self.parameter(position) for role, position in positions.items() if self.is_constant(position)}

    def inner_parameters(self) -> dict[str, Parameter]:
        """The constants of the subgraphs that it calls; see `conrepair.networks.tflite_subgraphs`."""
        return self._file.inner_parameters(self.index)

    def axis(self, axis: int, position: int = 0) -> int:
        """An axis counted from 0."""
        return axis % max(self.rank(position), 1)

    def _is_state(self, position: int) -> bool:
        return bool(self._file.tensors[self.inputs[position]].isVariable)


def native(view: OperatorView) -> TfliteStep:
    """An operator as the framework has it: constants are parameters by position, options are attributes.

    Constants of the subgraphs that it calls are its parameters, too: a loop has the weights of its body.
    """
    attributes = {
        re.sub("(?<=[a-z0-9])([A-Z])", r"_\1", name).lower(): _plain(value)
        for name, value in (vars(view.options) if view.options is not None else {}).items()
        if name != "fusedActivationFunction" and not is_pointer(name)
    }
    parameters = {
        f"operand_{position}": view.parameter(position)
        for position in range(len(view.inputs))
        if view.is_constant(position)
    }
    return TfliteStep(view.kind, view.names(), attributes, parameters | view.inner_parameters())


def _plain(value: Any) -> Attribute:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (list, np.ndarray)):
        numbers = np.asarray(value)
        return tuple(map(float if numbers.dtype.kind == "f" else int, numbers.reshape(-1)))
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
