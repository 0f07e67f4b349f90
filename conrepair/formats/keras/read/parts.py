"""A call of a Keras layer as its rules see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

from conrepair.formats.networks.parts import LayerPart, Shape, plain
from conrepair.formats.networks.stored import StoredParameter, stored_parameter
from conrepair.ground.graph.layer_graph import Array, Parameter


@dataclass(frozen=True)
class KerasCall:
    """One call of a layer or function.

    Attributes:
        operation: The layer or function.
        shapes: Of the tensors among its arguments.
        outputs: Shapes of its results.
        tensors: Keras's symbols for the tensors among its arguments.
        args: Positional arguments; tensors among them as Keras's symbols.
        kwargs: Named ones.
        masked: Whether a mask changes its results.
        resolved: Whether all sizes are known; others than the batch's may stand for ones that the model leaves open.
    """

    operation: Any
    shapes: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    tensors: tuple[Any, ...] = ()
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    masked: bool = False
    resolved: bool = True

    def argument(self, position: int, name: str) -> Any:
        """An argument that may be given by position or by name; None when it's left out."""
        return self.args[position] if position < len(self.args) else self.kwargs.get(name)

    def position(self, symbol: Any) -> int:
        """Which of the call's tensors a symbol is.

        Raises:
            ValueError: if it's none of them.
        """
        return [id(tensor) for tensor in self.tensors].index(id(symbol))

    @property
    def rank(self) -> int:
        """Of the first tensor.

        Raises:
            ValueError: if it isn't known; the call is then left as it is.
        """
        shape = self.shapes[0]
        if shape is None:
            raise ValueError("a shape isn't known")
        return len(shape)

    def axis(self, value: int) -> int:
        """Count an axis of the first tensor from 0."""
        return int(value) % self.rank

    def axes(self, value: int | Sequence[int] | None) -> tuple[int, ...]:
        """The axes of a tensor as the vocabulary counts them; None stands for all."""
        given = range(self.rank) if value is None else [value] if isinstance(value, int) else value
        return tuple(sorted(map(self.axis, given)))


def weight(*variables: Any, arrange: Callable[..., Array] | None = None) -> StoredParameter:
    """A parameter that's in a layer's variable, or in one of each direction.

    Args:
        variables: Keras's.
        arrange: Brings the numbers into the vocabulary's convention; None leaves them as they are.
    """
    first = variables[0]
    return stored_parameter(
        getattr(first, "path", ""),
        str(keras.backend.standardize_dtype(first.dtype)),
        lambda: [keras.ops.convert_to_numpy(variable) for variable in variables],
        [variable.shape for variable in variables],
        arrange,
        holders=variables,
    )


def constant(value: Any) -> Parameter:
    """An argument that's numbers."""
    numbers = keras.ops.convert_to_numpy(value) if keras.ops.is_tensor(value) else np.asarray(value)
    return Parameter("", numbers.shape, numbers.dtype.name, lambda: numbers)


def channels_last(layer: Any) -> bool:
    """Whether the layer's channels are its tensors' last axis."""
    chosen = getattr(layer, "data_format", "channels_last") or keras.config.image_data_format()
    return str(chosen) == "channels_last"


_NO_FUNCTION = {"name", "trainable", "dtype"}


def native_part(call: KerasCall, op: str) -> LayerPart:
    """A layer or function that the vocabulary has no word for, with its settings and weights."""
    operation = call.operation
    try:
        settings = operation.get_config()
    except NotImplementedError:  # of layers that can't be saved
        settings = {}
    if not isinstance(operation, keras.Layer):
        settings = {**settings, **vars(operation), **call.kwargs}
    settings = {name: value for name, value in settings.items() if name not in _NO_FUNCTION and name[0] != "_"}
    parameters: dict[str, Parameter] = {}
    for variable in getattr(operation, "weights", ()):
        if "seed_generator" not in variable.path:
            role = variable.path.partition("/")[2] or variable.path
            parameters[role if role not in parameters else f"{role}#{len(parameters)}"] = weight(variable)
    for index, argument in enumerate(call.args):
        if _is_numbers(argument):
            parameters[f"argument_{index}"] = constant(argument)
    return LayerPart(op, plain(settings), parameters, channels_last(operation))


def _is_numbers(argument: Any) -> bool:
    if isinstance(argument, keras.KerasTensor):
        return False
    return isinstance(argument, (bool, int, float, np.ndarray, np.generic)) or keras.ops.is_tensor(argument)
