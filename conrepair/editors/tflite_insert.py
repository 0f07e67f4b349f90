"""TFLite operators from steps in the neutral vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from conrepair.editors.editor import NotEditableError, Step
from conrepair.editors.tflite_file import TfliteFile
from conrepair.graph.layer_graph import Array

__all__ = ["insert_steps", "options_for"]

_KINDS = {
    "Relu": "RELU",
    "Softmax": "SOFTMAX",
    "Mul": "MUL",
    "Sub": "SUB",
    "Add": "ADD",
    "Sigmoid": "LOGISTIC",
    "Tanh": "TANH",
    "Elu": "ELU",
    "HardSwish": "HARD_SWISH",
    "Gelu": "GELU",
    "LeakyRelu": "LEAKY_RELU",
    "Div": "DIV",
    "Max": "MAXIMUM",
    "Min": "MINIMUM",
    "MaxPool": "MAX_POOL_2D",
    "AveragePool": "AVERAGE_POOL_2D",
    "ReduceMean": "MEAN",
    "ReduceMax": "REDUCE_MAX",
}
_OPTIONS = {
    "MUL": "Mul",
    "SUB": "Sub",
    "ADD": "Add",
    "DIV": "Div",
    "MAXIMUM": "MaximumMinimum",
    "MINIMUM": "MaximumMinimum",
    "SOFTMAX": "Softmax",
    "GELU": "Gelu",
    "LEAKY_RELU": "LeakyRelu",
    "HARD_SWISH": "HardSwish",
    "GATHER": "Gather",
    "TRANSPOSE": "Transpose",
    "CAST": "Cast",
    "QUANTIZE": "Quantize",
    "DEQUANTIZE": "Dequantize",
}
_HALF = 10  # ONNX's number for float16
_SLOPE = 0.01


def options_for(operator: str, attributes: Mapping[str, Any]) -> tuple[str, Any, int]:
    """A TFLite operator's name, its options, and their type.

    Raises:
        NotEditableError: if there is none.
    """
    kind = _KINDS.get(operator)
    if kind is None:
        raise NotEditableError(f"TFLite has no {operator}")
    options, number = _new_options(kind)
    if kind == "SOFTMAX":
        options.beta = 1.0
    elif kind == "LEAKY_RELU":
        options.alpha = float(attributes.get("alpha", _SLOPE))
    elif kind == "GELU":
        options.approximate = attributes.get("approximate") == "tanh"
    elif kind == "ELU" and attributes.get("alpha", 1.0) != 1.0:
        raise NotEditableError("TFLite's ELU has no alpha")
    return kind, options, number


def insert_steps(file: TfliteFile, source: int, steps: Sequence[Step], label: str) -> tuple[list[Any], int]:
    """Operators that compute a chain from a tensor; they aren't in the graph yet.

    Args:
        file: The model; it gets the new tensors.
        source: What the chain reads.
        steps: The chain.
        label: For the new names.

    Returns:
        The operators, and the tensor that the last one computes.

    Raises:
        NotEditableError: if a step can't be expressed for the tensor's type.
    """
    operators: list[Any] = []
    current = source
    for operator, attributes, constants in steps:
        for kind, options, extra, dtype in _parts(file, current, operator, attributes, constants):
            name = f"{file.name(source)}/{label}/{len(operators)}"
            inputs = [file.add_constant(array, f"{name}/operand", like) for array, like in extra]
            result = file.add_tensor(current, name, dtype)
            if operator == "Transpose":
                _permute(file.tensor(result), attributes["perm"])
            if kind == "QUANTIZE":
                file.tensor(result).quantization = _grid(float(constants[0]))
            operators.append(_operator(file, kind, options, [current, *inputs], result))
            current = result
    return operators, current


_Part = tuple[str, tuple[Any, int], list[tuple[Array, int | None]], str | None]


def _parts(
    file: TfliteFile, source: int, operator: str, attributes: Mapping[str, Any], constants: Sequence[Array]
) -> list[_Part]:
    """Operators: name, options, constants (each with a tensor whose quantization it has), another type."""
    quantized = file.is_quantized(source)
    like = source if quantized else None
    if operator == "Transpose":
        return [("TRANSPOSE", _new_options("TRANSPOSE"), [(np.array(attributes["perm"], np.int32), None)], None)]
    if operator == "Gather":
        options, number = _new_options("GATHER")
        options.axis = int(attributes["axis"])
        return [("GATHER", (options, number), [(constants[0].astype(np.int32), None)], None)]
    if operator == "Clip" and constants:
        low, high = (_operand(file, source, array) for array in constants)
        return [
            ("MAXIMUM", _new_options("MAXIMUM"), [(low, like)], None),
            ("MINIMUM", _new_options("MINIMUM"), [(high, like)], None),
        ]
    if operator == "DequantizeLinear":
        return [("DEQUANTIZE", _new_options("DEQUANTIZE"), [], "float32")]
    if quantized and operator != "Relu":
        raise NotEditableError(f"no {operator} for quantized tensors")
    if operator in {"Mul", "Sub", "Add", "Div"}:
        kind, options, number = options_for(operator, {})
        return [(kind, (options, number), [(constants[0].reshape(1).astype(np.float32), None)], None)]
    if operator == "Cast":
        half = attributes["to"] == _HALF
        return [("CAST", _new_options("CAST"), [], "float16" if half else "float32")]
    if operator == "QuantizeLinear":
        return [("QUANTIZE", _new_options("QUANTIZE"), [], "int8")]
    kind, options, number = options_for(operator, attributes)
    return [(kind, (options, number), [], None)]


def _operand(file: TfliteFile, source: int, array: Array) -> Array:
    real = array.reshape((1,) * max(1, len(file.shape(source)))).astype(np.float32)
    return file.stored(source, real) if file.is_quantized(source) else real


def _operator(file: TfliteFile, kind: str, options: tuple[Any, int], inputs: list[int], result: int) -> Any:
    operator = schema.OperatorT()
    file.set_kind(operator, kind)
    operator.inputs, operator.outputs = inputs, [result]
    operator.builtinOptions, operator.builtinOptionsType = options
    return operator


def _new_options(kind: str) -> tuple[Any, int]:
    name = _OPTIONS.get(kind)
    if name is None:
        return None, schema.BuiltinOptions.NONE
    return getattr(schema, f"{name}OptionsT")(), getattr(schema.BuiltinOptions, f"{name}Options")


def _permute(tensor: Any, perm: Sequence[int]) -> None:
    tensor.shape = np.asarray(tensor.shape)[list(perm)]
    if tensor.shapeSignature is not None:
        tensor.shapeSignature = np.asarray(tensor.shapeSignature)[list(perm)]


def _grid(scale: float) -> Any:
    quantization = schema.QuantizationParametersT()
    quantization.scale, quantization.zeroPoint = np.array([scale], np.float32), np.array([0], np.int64)
    return quantization
