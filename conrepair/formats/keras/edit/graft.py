"""Operators of the vocabulary as Keras layers and functions on symbolic tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import keras
import numpy as np

from conrepair.formats.editing.lowering import Writer
from conrepair.formats.editing.lowering_windows import window_of
from conrepair.formats.editing.operation import Operation, Sizes, two_read
from conrepair.formats.editing.operation_shapes import slices_of
from conrepair.formats.keras.edit.settings import activation_layer
from conrepair.formats.keras.read.activations import FUNCTIONS as ACTIVATIONS
from conrepair.formats.keras.read.ops import BINARY, NAMES, REDUCTIONS
from conrepair.formats.networks.parts import depthwise_kernel, in_out_kernel
from conrepair.ground.graph.attributes import as_real
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.graph.operators import FUNCTIONS, OPERATORS

_FLAT, _PICTURES = 2, 4  # axes


def _with_weights(layer: Any, tensor: Any, arrays: Sequence[Array | None]) -> Any:
    """Call a layer and give it its weights."""
    result = layer(tensor)
    layer.set_weights([array.astype(np.float32) for array in arrays if array is not None])
    return result


def _of(operation: Operation) -> Callable[..., Any]:
    """The function of an operator that networks have a name for."""
    function: Callable[..., Any] = getattr(
        keras.ops, re.sub("(?<=[a-z])(?=[A-Z])", "_", NAMES[operation.operator]).lower()
    )
    return function


def _normalization(name: str, *more: str, **settings: Callable[[Operation], Any]) -> Callable[..., Any]:
    """A layer with a scale and a bias where the operation has them, with more weights of some roles, and settings."""

    def make(writer: KerasWriter, operation: Operation, operands: list[Any]) -> Any:
        arrays = [operation.parameters.get(role) for role in ("scale", "bias", *more)]
        scale, bias = (array is not None for array in arrays[:2])
        given = {key: setting(operation) for key, setting in settings.items()}
        layer = getattr(keras.layers, name)(epsilon=operation.real("epsilon", 0.0), scale=scale, center=bias, **given)
        return _with_weights(layer, operands[0], arrays)

    return make


class KerasWriter(Writer[Any]):
    """Calls layers; values are symbolic tensors.

    Attributes:
        names: Of the new layers.
    """

    channels_last = plain_windows = True
    sorts: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(NAMES.keys() & FUNCTIONS, "function"),
        **dict.fromkeys((operator for operator, _ in ACTIVATIONS.values()), "activation"),
        **dict.fromkeys(BINARY.values(), "binary"),
        **dict.fromkeys(REDUCTIONS.values(), "reduction"),
    }

    def __init__(self, label: str) -> None:
        """Make a node.

        Args:
            label: Of the new layers; a number is added from the second one on.
        """
        self._label = label
        self.names: list[str] = []

    def shape(self, value: Any) -> Sizes | None:
        """Sizes; None for the batch's."""
        return tuple(None if size is None else int(size) for size in value.shape)

    def write(self, operation: Operation, operands: Sequence[Any]) -> Any:
        """A layer, or a function."""
        operator = operation.operator
        if operator == "Identity":
            return operands[0]
        make = self._method(operator)
        if make is None:
            self.refuse(f"Keras has no {operator}")
        result = make(operation, list(operands))
        self.names.append(f"{self._label}_{len(self.names)}" if self.names else self._label)
        # Functions of keras.ops are numbered through in the process, which isn't the same each time.
        result._keras_history.operation.name = self.names[-1]
        return result

    def _write_function(self, operation: Operation, operands: list[Any]) -> Any:
        return _of(operation)(operands[0])

    def _write_activation(self, operation: Operation, operands: list[Any]) -> Any:
        if operation.parameters:
            self.refuse(f"{operation.operator} has no {', '.join(operation.parameters)}")
        given = {**OPERATORS[operation.operator].attributes, **operation.attributes}
        return activation_layer(operation.operator, given, None)(operands[0])

    def _write_gelu(self, operation: Operation, operands: list[Any]) -> Any:
        return keras.ops.gelu(operands[0], operation.text("approximate", "") == "tanh")

    def _write_clip(self, operation: Operation, operands: list[Any]) -> Any:
        bounds = [operation.attributes.get(name) for name in ("min", "max")]
        if None in bounds or operation.parameters:
            self.refuse("Keras's clip has two bounds")
        return keras.ops.clip(operands[0], *(as_real(bound) for bound in bounds))

    def _write_softmax(self, operation: Operation, operands: list[Any]) -> Any:
        axis = operation.integer("axis", -1)
        if operation.operator == "LogSoftmax":
            return keras.ops.log_softmax(operands[0], axis=axis)
        return keras.layers.Softmax(axis)(operands[0])

    def _write_binary(self, operation: Operation, operands: list[Any]) -> Any:
        function, layer = _of(operation), getattr(keras.layers, NAMES[operation.operator], None)
        constant = operation.parameters.get("operand")
        if constant is None and len(operands) == 2:
            if layer and tuple(operands[0].shape) == tuple(operands[1].shape):
                return layer()(operands)
            return function(*operands)
        if constant is None:
            self.refuse(f"{operation.operator} takes two operands")
        first = bool(operation.attributes.get("constant_first"))
        number = (
            float(constant.reshape(-1)[0]) if constant.size == 1 and constant.ndim <= len(operands[0].shape) else None
        )
        if number is not None and not first:
            rescaled = {"Mul": (number, 0.0), "Add": (1.0, number), "Sub": (1.0, -number)}
            if operation.operator in rescaled:
                return keras.layers.Rescaling(*rescaled[operation.operator])(operands[0])
        other: Any = constant.astype(np.float32) if number is None else number
        return function(*((other, operands[0]) if first else (operands[0], other)))

    def _write_matmul(self, operation: Operation, operands: list[Any]) -> Any:
        weight, bias = operation.parameters.get("weight"), operation.parameters.get("bias")
        if any(operation.attributes.get(name) for name in ("transpose_a", "transpose_b")):
            self.refuse("Keras's product transposes nothing")
        if weight is not None and weight.ndim == _FLAT:
            layer = keras.layers.Dense(weight.shape[1], use_bias=bias is not None)
            return _with_weights(layer, operands[0], [weight, bias])
        if bias is not None:
            self.refuse("Keras's product of tensors has no bias")
        return keras.ops.matmul(*two_read(operation, operands, lambda array: array))

    def _write_conv(self, operation: Operation, operands: list[Any]) -> Any:
        weight, bias = operation.parameters["weight"], operation.parameters.get("bias")
        axes, group = weight.ndim - 2, operation.integer("group", 1)
        options: dict[str, Any] = {
            "strides": window_of(operation, "strides", 1),
            "dilation_rate": window_of(operation, "dilations", 1),
            "use_bias": bias is not None,
        }
        if group > 1 and group == operands[0].shape[-1] and axes <= _FLAT:
            multiplier = len(weight) // group
            kind = getattr(keras.layers, f"DepthwiseConv{axes}D")
            layer = kind(weight.shape[2:], depth_multiplier=multiplier, **options)
            return _with_weights(layer, operands[0], [depthwise_kernel(weight, group), bias])
        layer = getattr(keras.layers, f"Conv{axes}D")(len(weight), weight.shape[2:], groups=group, **options)
        return _with_weights(layer, operands[0], [in_out_kernel(weight), bias])

    def _write_pool(self, operation: Operation, operands: list[Any]) -> Any:
        kernel, strides = window_of(operation, "kernel_shape", 1), window_of(operation, "strides", 1)
        name = f"{operation.operator.removesuffix('Pool')}Pooling{len(kernel)}D"
        return getattr(keras.layers, name)(kernel, strides)(operands[0])

    def _write_reduction(self, operation: Operation, operands: list[Any]) -> Any:
        axis = operation.integers("axes", range(len(operands[0].shape)))
        return _of(operation)(operands[0], axis=axis, keepdims=bool(operation.attributes.get("keepdims", True)))

    def _write_concat(self, operation: Operation, operands: list[Any]) -> Any:
        if operation.parameters:
            self.refuse("Keras's Concatenate takes no constants")
        return keras.layers.Concatenate(operation.integer("axis"))(operands)

    def _write_transpose(self, operation: Operation, operands: list[Any]) -> Any:
        perm = operation.integers("perm")
        return keras.layers.Permute(perm[1:])(operands[0]) if perm[0] == 0 else keras.ops.transpose(operands[0], perm)

    def _write_pad(self, operation: Operation, operands: list[Any]) -> Any:
        mode = operation.attributes.get("mode", "constant")
        if mode not in {"constant", "reflect", "symmetric"}:
            self.refuse(f"Keras has no Pad of {mode}")
        pairs = np.reshape(operation.integers("pads"), (2, -1)).T.tolist()
        value = operation.real("value", 0.0)
        return keras.ops.pad(operands[0], pairs, mode=mode, **({"constant_values": value} if value else {}))

    def _write_gather(self, operation: Operation, operands: list[Any]) -> Any:
        axis = operation.integer("axis", 0)
        table, indices = operation.parameters.get("table"), operation.parameters.get("indices")
        if table is not None and table.ndim == _FLAT and axis == 0 and len(operands) == 1:
            return _with_weights(keras.layers.Embedding(*table.shape), operands[0], [table])
        if indices is None or indices.ndim > 1:
            self.refuse("Keras's take has constant indices here")
        return keras.ops.take(operands[0], [int(index) for index in indices.reshape(-1)], axis=axis)

    def _write_reshape(self, operation: Operation, operands: list[Any]) -> Any:
        return keras.ops.reshape(operands[0], operation.integers("shape"))

    def _write_slice(self, operation: Operation, operands: list[Any]) -> Any:
        return operands[0][slices_of(operation, len(operands[0].shape))]

    def _write_cast(self, operation: Operation, operands: list[Any]) -> Any:
        return keras.ops.cast(operands[0], operation.text("to"))

    _write_batchnormalization = _normalization("BatchNormalization", "mean", "variance")
    _write_groupnormalization = _normalization(
        "GroupNormalization", groups=lambda operation: operation.integer("groups")
    )
    _write_layernormalization = _normalization(
        "LayerNormalization", axis=lambda operation: operation.integers("axes")
    )
