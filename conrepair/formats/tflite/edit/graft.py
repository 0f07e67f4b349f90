"""Operators of the vocabulary as TFLite's, read in place of one of a file's tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.lowering import Writer
from conrepair.formats.editing.lowering_windows import window_of
from conrepair.formats.editing.operation import Operation, Sizes, two_read, what_is_read
from conrepair.formats.editing.operation_shapes import shape_of_result, slices_of
from conrepair.formats.tflite.edit.file import EditedTfliteFile
from conrepair.formats.tflite.read.operator import WEIGHT_AXES
from conrepair.formats.tflite.read.operators import BINARY, BOUNDS, NAMES, POOLS, REDUCTIONS
from conrepair.ground.graph.layer_graph import Array

_OPTIONS = {  # of those whose options aren't called as they are
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), "MaximumMinimum"),
    **dict.fromkeys(POOLS, "Pool2D"),
    **dict.fromkeys(REDUCTIONS, "Reducer"),
    "BATCH_MATMUL": "BatchMatMul",
    "PADV2": "PadV2",
}
_SLOPE = 0.01


def options_for(operator: str, attributes: Mapping[str, Any]) -> tuple[str, Any]:
    """A TFLite operator's name, and its options.

    Raises:
        NotEditableError: if there is none.
    """
    kind = NAMES.get(operator)
    if kind is None:
        raise NotEditableError(f"TFLite has no {operator}")
    options = new_options(kind)
    if kind == "SOFTMAX":
        options.beta = 1.0
    elif kind == "LEAKY_RELU":
        options.alpha = float(attributes.get("alpha", _SLOPE))
    elif kind == "GELU":
        options.approximate = attributes.get("approximate") == "tanh"
    elif kind == "ELU" and attributes.get("alpha", 1.0) != 1.0:
        raise NotEditableError("TFLite's ELU has no alpha")
    return kind, options


def new_options(kind: str, **values: Any) -> Any:
    """Options of a TFLite operator, some of other values than usual; None where it has none."""
    make = getattr(schema, f"{_OPTIONS.get(kind, kind.title().replace('_', ''))}OptionsT", None)
    options = None if make is None else make()
    for name, value in values.items():
        setattr(options, name, value)
    return options


def set_options(operator: Any, options: Any) -> None:
    """Give an operator options, or None, and the number of their type beside them."""
    name = "NONE" if options is None else type(options).__name__.removesuffix("T")
    operator.builtinOptions, operator.builtinOptionsType = options, getattr(schema.BuiltinOptions, name)


_QUANTIZED = {"Relu", "Max", "Min", "Transpose", "Gather", "Reshape", "DequantizeLinear", "Identity"}
_STORED = {"int8", "uint8", "int16"}
_IMAGE = 4  # axes of a batch of pictures
_MATRIX = 2
_MOST = 2**31 - 1
_Inputs = list[int]


def _table(kind: str, name: str) -> Callable[[TfliteWriter, Operation, Sequence[int]], _Written]:
    """An operator that has its attribute as a constant behind its input."""

    def make(writer: TfliteWriter, operation: Operation, operands: Sequence[int]) -> _Written:
        return _made(kind, [operands[0], writer.constant(np.array(operation.integers(name), np.int32))])

    return make


class TfliteWriter(Writer[int]):
    """Makes operators, which the graph doesn't have yet; values are places of tensors.

    Attributes:
        operators: The new ones, each behind those that it reads.
    """

    channels_last = plain_windows = True
    sorts: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(BINARY.values(), "binary"),
        **dict.fromkeys(REDUCTIONS.values(), "reduction"),
    }

    def __init__(self, file: EditedTfliteFile, label: str) -> None:
        """Make an operator.

        Args:
            file: It gets the new tensors.
            label: For the new names.
        """
        self._file, self._label = file, label
        self.operators: list[Any] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def shape(self, value: int) -> Sizes | None:
        """Sizes for the batch that the file says."""
        return self._file.shape(value)

    def write(self, operation: Operation, operands: Sequence[int]) -> int:
        """One of TFLite's operators."""
        operator, file = operation.operator, self._file
        if not operands:
            self.refuse(f"a {operator} of constants alone isn't written to TFLite files")
        if any(file.is_quantized(place) for place in operands):
            same = operator == "DequantizeLinear" or len(operands) == 1
            if operator not in _QUANTIZED or not same:
                self.refuse(f"no {operator} for quantized tensors")
        elif operator == "DequantizeLinear":
            self.refuse("it reads no quantized tensor")
        if operator == "Identity":
            return operands[0]
        make = self._method(operator) or self._plain
        kind, options, inputs = make(operation, operands)
        return self._add(operation, operands, kind, options, inputs)

    def constant(self, array: Array, like: int | None = None) -> int:
        """A constant tensor; one that's quantized as another one is gets its numbers."""
        if like is not None and self._file.is_quantized(like):
            real = array.reshape(array.shape or (1,)).astype(np.float32)
            real = real.reshape((1,) * (len(self._file.shape(like)) - real.ndim) + real.shape)
            return self._file.add_constant(self._file.stored(like, real), f"{self._name()}/operand", like)
        # Not NumPy's contiguous copy, which gives a number an axis: a Gather with one takes an axis away.
        plain = np.asarray(array.astype(np.float32) if array.dtype.kind == "f" else array, order="C")
        key = plain.dtype.name, plain.shape, plain.tobytes()
        if key not in self._constants:  # steps of a recurrent layer have the same ones
            self._constants[key] = self._file.add_constant(plain, f"{self._name()}/operand")
        return self._constants[key]

    def narrow_constant(self, array: Array) -> int:
        """The same, whole numbers in 32 bits."""
        return self.constant(array.astype(np.int32) if array.dtype.kind in "iu" else array)

    def _name(self) -> str:
        return f"{self._label}/{len(self.operators)}"

    def _add(self, operation: Operation, operands: Sequence[int], kind: str, options: Any, inputs: _Inputs) -> int:
        file, first = self._file, operands[0]
        result = file.add_tensor(first, self._name(), _TYPES[kind](operation) if kind in _TYPES else None)
        tensor = file.tensors[result]
        shape = shape_of_result(operation, [file.shape(place) for place in operands])
        if shape is None or any(size is None for size in shape):
            self.refuse(f"the shape of {operation.operator}'s result isn't known")
        tensor.shape = np.array(shape, np.int32)
        signed = shape_of_result(operation, [_open(file, place) for place in operands])
        if signed is not None:
            known = any(size is None for size in signed)
            tensor.shapeSignature = (
                np.array([-1 if size is None else size for size in signed], np.int32) if known else None
            )
        if kind == "QUANTIZE":
            tensor.quantization = _grid(operation)
        made = schema.OperatorT()
        file.set_kind(made, kind)
        made.inputs, made.outputs = inputs, [result]
        set_options(made, options)
        self.operators.append(made)
        return result

    def _plain(self, operation: Operation, operands: Sequence[int]) -> _Written:
        """An operator without constants."""
        if operation.parameters or len(operands) != 1:
            self.refuse(f"TFLite has no {operation.operator} of such operands")
        rank = len(self.shape(operands[0]) or ())
        if "axis" in operation.attributes and operation.integer("axis") % rank != rank - 1:
            self.refuse(f"TFLite's {operation.operator} is along the last axis")
        if operation.operator in BINARY.values():
            self.refuse(f"{operation.operator} takes two operands")
        return (*options_for(operation.operator, operation.attributes), list(operands))

    def _write_binary(self, operation: Operation, operands: Sequence[int]) -> _Written:
        inputs = two_read(operation, operands, lambda array: self.constant(array, operands[0]))
        return (*options_for(operation.operator, {}), list(inputs))

    def _write_matmul(self, operation: Operation, operands: Sequence[int]) -> _Written:
        weight, bias = operation.parameters.get("weight"), operation.parameters.get("bias")
        turned = [bool(operation.attributes.get(name)) for name in ("transpose_a", "transpose_b")]
        if (
            weight is not None
            and weight.ndim == _MATRIX
            and not any(turned)
            and set(operation.parameters) <= {"weight", "bias"}
        ):
            places = [self.constant(weight.T), -1 if bias is None else self.constant(bias)]
            keeps = len(self.shape(operands[0]) or ()) > _MATRIX
            return _made("FULLY_CONNECTED", [operands[0], *places], keepNumDims=keeps)
        if bias is not None:
            self.refuse("TFLite's BATCH_MATMUL has no bias")
        read = two_read(operation, operands, self.constant)
        return _made("BATCH_MATMUL", read, adjX=turned[0], adjY=turned[1])

    def _write_conv(self, operation: Operation, operands: Sequence[int]) -> _Written:
        weight = operation.parameters["weight"]
        shape = self._picture(operation, operands)
        group = operation.integer("group", 1)
        kind = "DEPTHWISE_CONV_2D" if group > 1 and group == shape[-1] else "CONV_2D"
        if group > 1 and kind == "CONV_2D":
            self.refuse("TFLite has no convolution in groups of several channels")
        options = _steps(operation)
        options["dilationHFactor"], options["dilationWFactor"] = window_of(operation, "dilations", 1)
        if kind == "DEPTHWISE_CONV_2D":
            options["depthMultiplier"] = len(weight) // group
        bias = operation.parameters.get("bias", np.zeros(len(weight), np.float32))
        places = [self.constant(weight.transpose(np.argsort(WEIGHT_AXES[kind]))), self.constant(bias)]
        return _made(kind, [operands[0], *places], **options)

    def _write_pool(self, operation: Operation, operands: Sequence[int]) -> _Written:
        self._picture(operation, operands)
        height, width = window_of(operation, "kernel_shape", 1)
        return _made(NAMES[operation.operator], operands, **_steps(operation), filterHeight=height, filterWidth=width)

    def _write_reduction(self, operation: Operation, operands: Sequence[int]) -> _Written:
        table = np.array(operation.integers("axes", range(len(self.shape(operands[0]) or ()))), np.int32)
        keeps = bool(operation.attributes.get("keepdims", True))
        return _made(NAMES[operation.operator], [operands[0], self.constant(table)], keepDims=keeps)

    def _write_concat(self, operation: Operation, operands: Sequence[int]) -> _Written:
        read = what_is_read(operation, operands, self.constant)
        return _made("CONCATENATION", read, axis=operation.integer("axis"))

    def _write_stack(self, operation: Operation, operands: Sequence[int]) -> _Written:
        return _made("PACK", operands, axis=operation.integer("axis"), valuesCount=len(operands))

    _write_transpose, _write_reshape = _table("TRANSPOSE", "perm"), _table("RESHAPE", "shape")

    def _write_pad(self, operation: Operation, operands: Sequence[int]) -> _Written:
        pads = operation.attributes.get("pads")
        mode = operation.attributes.get("mode", "constant")
        if not isinstance(pads, tuple) or mode not in {"constant", "reflect", "symmetric"}:
            self.refuse(f"TFLite has no Pad of {mode}")
        table = self.constant(np.array(pads, np.int32).reshape(2, -1).T)
        value = operation.real("value", 0.0)
        if mode != "constant":
            return _made("MIRROR_PAD", [operands[0], table], mode=getattr(schema.MirrorPadMode, str(mode).upper()))
        if value == 0.0:
            return _made("PAD", [operands[0], table])
        return _made("PADV2", [operands[0], table, self.constant(np.array([value], np.float32))])

    def _write_gather(self, operation: Operation, operands: Sequence[int]) -> _Written:
        read = what_is_read(operation, operands, self.narrow_constant)
        return _made("GATHER", read, axis=operation.integer("axis", 0))

    def _write_slice(self, operation: Operation, operands: Sequence[int]) -> _Written:
        shape = self.shape(operands[0]) or ()
        parts = slices_of(operation, len(shape))
        # Where nothing is said the whole axis is taken, whatever its size.
        begins, ends = (
            sum(1 << axis for axis, part in enumerate(parts) if (part.start, part.stop)[place] is None)
            for place in (0, 1)
        )
        tables = [
            [part.start or 0 for part in parts],
            [0 if part.stop is None else int(part.stop) for part in parts],
            [part.step or 1 for part in parts],
        ]
        places = [self.constant(np.clip(table, -_MOST, _MOST).astype(np.int32)) for table in tables]
        return _made("STRIDED_SLICE", [operands[0], *places], beginMask=begins, endMask=ends)

    def _write_clip(self, operation: Operation, operands: Sequence[int]) -> _Written:
        kind = next((kind for kind, bounds in BOUNDS.items() if bounds == operation.attributes), "")
        if not kind or operation.parameters:
            self.refuse("TFLite has no Clip")
        return _made(kind, operands)

    def _write_dequantizelinear(self, operation: Operation, operands: Sequence[int]) -> _Written:
        return _made("DEQUANTIZE", operands)

    def _write_quantizelinear(self, operation: Operation, operands: Sequence[int]) -> _Written:
        if any(array.size != 1 for array in operation.parameters.values()):
            self.refuse("one scale, and one zero point, can be put in")
        return _made("QUANTIZE", operands)

    def _picture(self, operation: Operation, operands: Sequence[int]) -> Sizes:
        shape = self.shape(operands[0]) or ()
        if len(shape) != _IMAGE:
            self.refuse(f"TFLite's {operation.operator} takes pictures")
        return shape


def _open(file: EditedTfliteFile, place: int) -> Sizes:
    """Sizes, None for those that may be any."""
    signature = file.tensors[place].shapeSignature
    if signature is None or not len(signature):
        return file.shape(place)
    return tuple(None if size < 0 else int(size) for size in signature)


def _grid(operation: Operation) -> Any:
    quantization = schema.QuantizationParametersT()
    quantization.scale = np.asarray(operation.parameters["scale"], np.float32).reshape(1)
    quantization.zeroPoint = np.asarray(operation.parameters.get("zero_point", 0), np.int64).reshape(1)
    return quantization


_Written = tuple[str, Any, _Inputs]


def _made(kind: str, inputs: Sequence[int], **options: Any) -> _Written:
    return kind, new_options(kind, **options), list(inputs)


def _steps(operation: Operation) -> dict[str, Any]:
    down, right = window_of(operation, "strides", 1)
    return {"padding": schema.Padding.VALID, "strideH": down, "strideW": right}


def _stored_type(operation: Operation) -> str:
    zero = operation.parameters.get("zero_point")
    return "int8" if zero is None or zero.dtype.name not in _STORED else zero.dtype.name


_TYPES: Mapping[str, Callable[[Operation], str | None]] = {
    "CAST": lambda operation: operation.text("to"),
    "GATHER": lambda operation: "float32" if "table" in operation.parameters else None,
    "QUANTIZE": _stored_type,
    "DEQUANTIZE": lambda _: "float32",
    **dict.fromkeys(("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), lambda _: "bool"),
}


def place_operators(file: EditedTfliteFile, operators: Sequence[Any], source: int) -> None:
    """Put new operators into the graph, behind what they read and in front of their readers, in place.

    Args:
        file: Of the graph; readers read the new results already.
        operators: The new ones.
        source: The tensor behind which they come.

    Raises:
        NotEditableError: if an operand is computed from a reader.
    """
    producer = file.producer(source)
    place = 0 if producer is None else file.operators.index(producer) + 1
    file.operators[place:place] = operators
    waiting, ready = list(file.operators), list[Any]()
    computed = {index for operator in waiting for index in operator.outputs}
    while waiting:
        # As they stand, as far as possible.
        item = next((item for item in waiting if not computed.intersection(item.inputs)), None)
        if item is None:
            raise NotEditableError(
                f"what is put in place of {file.names[source]} would read what is computed from it"
            )
        waiting.remove(item)
        ready.append(item)
        computed -= set(item.outputs)
    file.operators[:] = ready


def drop_unread(file: EditedTfliteFile, source: int) -> None:
    """Take out what computes a tensor that nothing reads, and what only that reads, in place."""
    operator = file.producer(source)
    if operator is None or any(file.readers(index) or index in file.graph.outputs for index in operator.outputs):
        return
    file.operators.remove(operator)
    for index in dict.fromkeys(place for place in operator.inputs if place >= 0):
        drop_unread(file, index)
