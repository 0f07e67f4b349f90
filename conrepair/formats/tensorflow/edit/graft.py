"""Operations as operators of TensorFlow: traced in a graph of their own, then put among a file's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from conrepair.formats.editing.lowering import Writer
from conrepair.formats.editing.operation import Operation, Sizes, two_read, what_is_read
from conrepair.formats.editing.operation_shapes import slices_of
from conrepair.formats.networks.parts import REDUCTIONS
from conrepair.formats.tensorflow.edit.file import TensorFlowFile
from conrepair.formats.tensorflow.edit.windows import WINDOWS
from conrepair.formats.tensorflow.read.operators import NAMES, RESIZES
from conrepair.formats.tensorflow.read.pieces import data_inputs, operator_of
from conrepair.formats.tensorflow.read.shared import COORDINATES, NEAREST
from conrepair.ground.data.following import reached
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.graph.operators import OPERATORS

_NAMES = {**NAMES, "Erfc": "Erfc", "SquaredDifference": "SquaredDifference"}
_REDUCTIONS = {op: name for name, op in REDUCTIONS.items()}
_SIZED = {mode: getattr(tf.raw_ops, name) for name, mode in RESIZES.items()}
_TWO, _PICTURES = 2, 4


def _is_bias(operation: Operation, tensor: Any) -> bool:
    """As layers of TensorFlow write it, so that it's recognized as one."""
    numbers = operation.parameters["operand"]
    return bool(
        numbers.ndim == 1 and tensor.shape.rank and tensor.shape[-1] == len(numbers) and tensor.shape.rank > 1
    )


def _constant(numbers: Any, like: Any) -> Any:
    """In the type of a tensor, if both are real."""
    dtype = like.dtype if like.dtype.is_floating and numbers.dtype.kind == "f" else None
    return tf.constant(numbers, dtype)


def _constants_like(like: Any) -> Callable[[Any], Any]:
    return lambda numbers: _constant(numbers, like)


def _largest(function: Callable[..., Any]) -> Callable[[TensorFlowWriter, Operation, Sequence[Any]], Any]:
    def make(writer: TensorFlowWriter, operation: Operation, operands: Sequence[Any]) -> Any:
        axis = operation.integer("axis", 0)
        found = function(operands[0], axis)
        return tf.expand_dims(found, axis) if operation.attributes.get("keepdims", True) else found

    return make


class TensorFlowWriter(Writer[Any]):
    """Traces operations; values are symbolic tensors, open sizes stay open."""

    channels_last = True
    sorts: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(_REDUCTIONS, "reduction"),
        **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), "blocks"),
        **dict.fromkeys(("SpaceToBatch", "BatchToSpace"), "batches"),
    }

    def __init__(self, file: TensorFlowFile) -> None:
        """Make a node.

        Args:
            file: Whose tensors are read.
        """
        self._file = file
        self._graph = tf.Graph()
        self._read: dict[str, Any] = {}

    def shape(self, value: Any) -> Sizes | None:
        """Sizes, None for the batch."""
        return None if value.shape.rank is None else tuple(value.shape.as_list())

    def operand(self, place: str) -> Any:
        """What stands for a tensor of the file."""
        if place not in self._read:
            shape, dtype = self._file.specs[place]
            with self._graph.as_default():
                self._read[place] = tf.compat.v1.placeholder(dtype, shape, f"operand_{len(self._read)}")
        return self._read[place]

    def write(self, operation: Operation, operands: Sequence[Any]) -> Any:
        """One operator; some of the vocabulary's are a few of TensorFlow's."""
        named = self._named if operation.operator in _NAMES else None
        make = self._method(operation.operator) or WINDOWS.get(operation.operator, named)
        if make is None:
            self.refuse(f"TensorFlow has no {operation.operator}")
        with self._graph.as_default():
            # TensorFlow refuses what doesn't fit with errors of these types.
            try:
                return make(operation, operands)
            except (ValueError, TypeError, KeyError, tf.errors.OpError) as error:
                self.refuse(f"TensorFlow's {operation.operator} refuses: {error}")

    def put_in(self, result: Any, label: str, known: Mapping[str, Array]) -> str:
        """Add what was traced to the file.

        Args:
            result: From `compute`.
            label: Begins the new names.
            known: Numbers by tensors of the file: constants that are the same are read there.

        Returns:
            The tensor of the result.
        """
        with self._graph.as_default():
            result = tf.identity(result, "result")
        places = {f"{tensor.op.name}:0": place for place, tensor in self._read.items()}
        definitions = {item.name: item for item in self._graph.as_graph_def().node}
        wanted = reached([result.op.name], lambda name: map(operator_of, data_inputs(definitions[name])))
        for operator in self._graph.get_operations():  # each is made behind what it reads
            item = definitions[operator.name]
            if operator.name not in wanted or f"{operator.name}:0" in places:
                continue
            same = _same_constant(item, known)
            if same is not None:
                places[f"{operator.name}:0"] = same
                continue
            sources = [places[name] for name in data_inputs(item)]
            del item.input[:]
            item.input.extend(sources)
            specs = [(tensor.shape, tensor.dtype) for tensor in operator.outputs]
            first = self._file.add(item, f"{label}/{operator.name}", specs)
            places |= {f"{operator.name}:{index}": f"{operator_of(first)}:{index}" for index in range(len(specs))}
        self._file.reshaped = True
        return places[result.name]

    def _named(self, operation: Operation, operands: Sequence[Any]) -> Any:
        """What networks have one name for, of one tensor or two."""
        fixed = OPERATORS[operation.operator].attributes if operation.operator in {"Elu", "Selu"} else {}
        for name, usual in fixed.items():
            if operation.attributes.get(name, usual) != usual:
                self.refuse(f"TensorFlow's {operation.operator} has no {name}")
        # RealDiv has no kernel of integers.
        native = "Div" if operation.operator == "Div" and operands[0].dtype.is_integer else _NAMES[operation.operator]
        arguments = op_def_registry.get(native).input_arg
        read = operands if len(arguments) == 1 else two_read(operation, operands, _constants_like(operands[0]))
        if operation.operator == "Add" and "operand" in operation.parameters and _is_bias(operation, operands[0]):
            return tf.nn.bias_add(*read)
        return getattr(tf.raw_ops, native)(**{item.name: value for item, value in zip(arguments, read, strict=True)})

    def _write_matmul(self, operation: Operation, operands: Sequence[Any]) -> Any:
        numbers = operation.parameters
        first, second = two_read(operation, operands, _constants_like(operands[0]))
        turned = [bool(operation.attributes.get(name)) for name in ("transpose_a", "transpose_b")]
        if "weight" in numbers and first.shape.rank != _TWO and numbers["weight"].ndim == _TWO and not turned[0]:
            letters = "abcdefgh"[: first.shape.rank - 1]
            result = tf.einsum(f"{letters}x,xy->{letters}y", first, tf.transpose(second) if turned[1] else second)
        else:
            result = tf.matmul(first, second, transpose_a=turned[0], transpose_b=turned[1])
        return tf.nn.bias_add(result, _constant(numbers["bias"], operands[0])) if "bias" in numbers else result

    def _write_einsum(self, operation: Operation, operands: Sequence[Any]) -> Any:
        return tf.einsum(operation.text("equation"), *what_is_read(operation, operands, _constants_like(operands[0])))

    def _write_concat(self, operation: Operation, operands: Sequence[Any]) -> Any:
        return tf.concat(what_is_read(operation, operands, _constants_like(operands[0])), operation.integer("axis"))

    def _write_clip(self, operation: Operation, operands: Sequence[Any]) -> Any:
        bounds = operation.attributes.get("min"), operation.attributes.get("max")
        if bounds != (0.0, 6.0) or operation.parameters:
            self.refuse("TensorFlow's Relu6 is between 0 and 6")
        return tf.nn.relu6(operands[0])

    def _write_reduction(self, operation: Operation, operands: Sequence[Any]) -> Any:
        keep = bool(operation.attributes.get("keepdims", True))
        function = getattr(tf, f"reduce_{_REDUCTIONS[operation.operator].lower()}")
        return function(operands[0], operation.attributes.get("axes"), keep)

    def _write_pad(self, operation: Operation, operands: Sequence[Any]) -> Any:
        pads, mode = operation.attributes["pads"], operation.attributes.get("mode", "constant")
        if mode not in {"constant", "reflect", "symmetric"}:
            self.refuse(f"TensorFlow has no Pad of {mode}")
        pairs = np.array(pads, np.int32).reshape(2, -1).T
        value = operation.real("value", 0.0)
        return tf.pad(operands[0], pairs, str(mode).upper(), value)

    def _write_slice(self, operation: Operation, operands: Sequence[Any]) -> Any:
        return operands[0][slices_of(operation, operands[0].shape.rank)]

    def _write_gather(self, operation: Operation, operands: Sequence[Any]) -> Any:
        return tf.gather(*two_read(operation, operands, tf.constant), axis=operation.integer("axis", 0))

    def _write_where(self, operation: Operation, operands: Sequence[Any]) -> Any:
        return tf.where(*what_is_read(operation, operands, tf.constant))

    def _write_cumsum(self, operation: Operation, operands: Sequence[Any]) -> Any:
        backwards = {name: bool(operation.attributes.get(name)) for name in ("exclusive", "reverse")}
        return tf.cumsum(operands[0], operation.integer("axis", 0), **backwards)

    def _write_resize(self, operation: Operation, operands: Sequence[Any]) -> Any:
        given, shape = operation.attributes, operands[0].shape
        transformation, scales, mode = (
            given.get(name) for name in ("coordinate_transformation_mode", "scales", "mode")
        )
        known = next((places for places, named in COORDINATES.items() if named == transformation), None)
        if (
            known is None
            or not isinstance(scales, tuple)
            or shape.rank != _PICTURES
            or not operation.channels_last
            or None in shape[1:3]
        ):
            self.refuse("TensorFlow resizes pictures of known sizes, channels last")
        corners, half = known
        if (mode == "nearest" and given.get("nearest_mode") != NEAREST[known]) or (mode == "cubic" and not half):
            self.refuse(f"TensorFlow's resizing of kind {mode} rounds otherwise")
        factors = [float(item) for item in scales[1:3]]
        size = [round(old * factor) for old, factor in zip(shape[1:3], factors, strict=True)]
        return _SIZED[str(mode)](images=operands[0], size=size, align_corners=corners, half_pixel_centers=half)

    def _write_blocks(self, operation: Operation, operands: Sequence[Any]) -> Any:
        size, mode = operation.integer("blocksize"), operation.attributes.get("mode", "DCR")
        if not operation.channels_last or mode != "DCR":
            self.refuse("TensorFlow moves blocks with the channels last, depth first")
        move = tf.nn.depth_to_space if operation.operator == "DepthToSpace" else tf.nn.space_to_depth
        return move(operands[0], size)

    def _write_batches(self, operation: Operation, operands: Sequence[Any]) -> Any:
        there = operation.operator == "SpaceToBatch"
        margins = np.array(operation.attributes["pads" if there else "crops"], np.int32).reshape(2, -1).T
        block = np.array(operation.attributes["block"], np.int32)
        return (tf.space_to_batch if there else tf.batch_to_space)(operands[0], block, margins)

    def _write_lrn(self, operation: Operation, operands: Sequence[Any]) -> Any:
        """TensorFlow's alpha is of each neighbour, ONNX's of their sum."""
        size = operation.integer("size")
        if not operation.channels_last or size % _TWO == 0:
            self.refuse("TensorFlow's LRN has its channels last, and an odd size")
        alpha, beta, bias = (operation.real(name) for name in ("alpha", "beta", "bias"))
        return tf.nn.local_response_normalization(operands[0], size // _TWO, bias, alpha / size, beta)

    def _write_softmax(self, operation: Operation, operands: Sequence[Any]) -> Any:
        function = tf.nn.log_softmax if operation.operator.startswith("Log") else tf.nn.softmax
        return function(operands[0], operation.integer("axis", -1))

    def _write_leakyrelu(self, operation: Operation, operands: Sequence[Any]) -> Any:
        return tf.nn.leaky_relu(operands[0], operation.real("alpha", 0.01))

    def _write_cast(self, operation: Operation, operands: Sequence[Any]) -> Any:
        return tf.cast(operands[0], operation.text("to"))

    def _write_reshape(self, operation: Operation, operands: Sequence[Any]) -> Any:
        return tf.reshape(operands[0], operation.integers("shape"))

    def _write_transpose(self, operation: Operation, operands: Sequence[Any]) -> Any:
        return tf.transpose(operands[0], operation.integers("perm"))

    def _write_tile(self, operation: Operation, operands: Sequence[Any]) -> Any:
        return tf.tile(operands[0], operation.integers("repeats"))

    def _write_stack(self, operation: Operation, operands: Sequence[Any]) -> Any:
        return tf.stack(list(operands), operation.integer("axis"))

    _write_argmax, _write_argmin = _largest(tf.argmax), _largest(tf.argmin)


def _same_constant(item: Any, known: Mapping[str, Array]) -> str | None:
    if item.op != "Const":
        return None
    array = tf.make_ndarray(item.attr["value"].tensor)
    for place, numbers in known.items():
        if numbers.dtype == array.dtype and numbers.shape == array.shape and np.array_equal(numbers, array):
            return place
    return None
