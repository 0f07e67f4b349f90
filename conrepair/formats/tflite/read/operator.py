"""One operator of a TFLite model as the rules of the operator table see it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from conrepair.formats.networks.parts import LayerPart
from conrepair.formats.networks.stored import StoredParameter
from conrepair.formats.tensorflow.read.view import TensorflowView
from conrepair.formats.tflite.load.screening import is_pointer
from conrepair.formats.tflite.read.constants import Arrange, TfliteConstants
from conrepair.formats.tflite.read.file import TfliteFile, plain
from conrepair.ground.graph.layer_graph import Attribute, Parameter

WEIGHT_AXES: Mapping[str, tuple[int, ...]] = {
    "CONV_2D": (0, 3, 1, 2),
    "DEPTHWISE_CONV_2D": (3, 0, 1, 2),
    "CONV_3D": (4, 3, 0, 1, 2),
    "TRANSPOSE_CONV": (3, 0, 1, 2),
    "CONV_3D_TRANSPOSE": (4, 3, 0, 1, 2),
    "FULLY_CONNECTED": (1, 0),
}
"""Which axes of a weight in the file are those of the vocabulary's, in its order."""

_SAME = 0  # as the schema's Padding


class OperatorView(TensorflowView):
    """Operands by their position.

    Attributes:
        index: Among the file's operators.
        kind: As the schema calls it.
        options: The schema's object; None for an operator without options.
        inputs: Indices of tensors; -1 for those left out.
        outputs: Indices of tensors.
    """

    channels_last = True

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

    @property
    def varying(self) -> tuple[int, ...]:
        """Operands that depend on the network's inputs."""
        tensors = self._file.tensors
        return tuple(
            place
            for place, tensor in enumerate(self.inputs)
            if self.has(place) and not self.is_constant(place) and not tensors[tensor].isVariable
        )

    def name(self, position: int) -> str:
        """Of an operand; "" for a constant."""
        return "" if self.is_constant(position) else self._file.names[self.inputs[position]]

    def shape(self, position: int) -> tuple[int, ...] | None:
        """An operand's shape; None where only running tells."""
        if self.is_constant(position):
            return self._constants.shape(self.inputs[position])
        return self._constants.shapes[self.inputs[position]]

    def result(self, position: int = 0) -> tuple[int, ...] | None:
        """A result's shape; None where only running tells."""
        return self._constants.shapes[self.outputs[position]]

    def rank(self, position: int = 0) -> int:
        """Number of an operand's axes, by the file where only running tells the shape."""
        shape = self.shape(position)
        return len(self._file.shape(self.inputs[position]) if shape is None else shape)

    def channels(self) -> int:
        """By the file where only running tells the shape."""
        return (self.shape(0) or self._file.shape(self.inputs[0]))[-1]

    def scales(self, tensor: int) -> tuple[float, int] | None:
        """Scale and zero point of an operand or a result."""
        found = self._file.quantization(tensor)
        return (found.scale, found.zero_point) if found else None

    def option(self, name: str) -> Any:
        """An option by the name, and in the words, that TensorFlow has for it."""
        if name in _DERIVED:
            return _DERIVED[name](self)
        words = name.split("_")
        own = _CALLED.get(name, words[0] + "".join(map(str.capitalize, words[1:])))
        if not hasattr(self.options, own):
            raise KeyError(name)
        return getattr(self.options, own)

    def along_window(self, what: str) -> tuple[int, ...]:
        """Options of the axes of pictures, as TensorFlow lists them: of the batch and of the channels, too."""
        names = [name for name in (what.format(axis) for axis in _AXES) if hasattr(self.options, name)]
        if not names:
            raise KeyError(what)
        return (1, *(int(getattr(self.options, name)) for name in names), 1)

    def dtypes(self) -> tuple[str, str]:
        """Types of the first operand and of the result."""
        return self._file.dtype(self.inputs[0]), self._file.dtype(self.outputs[0])

    def numbers(self, position: int) -> tuple[int, ...]:
        """A constant operand's whole numbers."""
        if not self.is_constant(position):
            raise ValueError("no constant")
        return plain(self._constants.stored(self.inputs[position]).reshape(-1))

    def parameter(self, position: int, arrange: Arrange | None = None) -> StoredParameter:
        """A constant operand."""
        if not self.is_constant(position):
            raise ValueError("no constant")
        return self._constants.parameter(self.inputs[position], arrange)

    def weight(self) -> Parameter:
        """The constant weight, as the vocabulary has it."""
        return self.parameter(1, lambda array: array.transpose(WEIGHT_AXES[self.kind]))

    def inner_parameters(self) -> dict[str, Parameter]:
        """The constants of the subgraphs that it calls; see `conrepair.formats.tflite.read.subgraphs`."""
        return self._file.inner_parameters(self.index)


_AXES = ("D", "H", "W")
_CALLED = {"depth_radius": "radius"}
"""Options that aren't called as TensorFlow's."""

_DERIVED: Mapping[str, Callable[[OperatorView], Any]] = {
    "strides": lambda view: view.along_window("stride{}"),
    "dilations": lambda view: view.along_window("dilation{}Factor"),
    "ksize": lambda view: (1, view.options.filterHeight, view.options.filterWidth, 1),
    "padding": lambda view: "SAME" if view.options.padding == _SAME else "VALID",
    "mode": lambda view: "SYMMETRIC" if view.options.mode else "REFLECT",
    "N": lambda view: len(view.inputs),
    "num_split": lambda view: len(view.outputs),
    "SrcT": lambda view: view.dtypes()[0],
    "DstT": lambda view: view.dtypes()[1],
}
"""Options that TensorFlow has in other words."""


def native(view: OperatorView) -> LayerPart:
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
    return LayerPart(view.kind, attributes, parameters | view.inner_parameters())


def _plain(value: Any) -> Attribute:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (list, np.ndarray)):
        numbers = np.asarray(value)
        return tuple(map(float if numbers.dtype.kind == "f" else int, numbers.reshape(-1)))
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
