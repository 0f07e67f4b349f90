"""List a TFLite model's layers in the neutral vocabulary.

A layer is called by the tensor that it computes. Padding of kind SAME isn't resolved: it stays `auto_pad`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from conrepair.data.tensor_spec import Quantization
from conrepair.editors.tflite_file import EditedTfliteFile
from conrepair.graph.layer_graph import Array, Attribute, LayerGraph, Node, Parameter, Tensor
from conrepair.graph.operators import ELEMENTWISE_BINARY
from conrepair.networks.tflite_elementwise import BOUNDS, FUSED
from conrepair.networks.tflite_graph import RECURRENT
from conrepair.networks.tflite_linear import GATES, joined_gates

__all__ = [
    "ACTIVATION",
    "LAYOUTS",
    "LINEAR",
    "OPERATORS",
    "constant_behind",
    "gates_of",
    "graph_of_file",
    "is_computed",
]

ACTIVATION = "/activation"
LINEAR = "/unfused"  # as networks of TFLite files call what lies in front of a fused activation

_LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"

OPERATORS = {
    "CONV_2D": "Conv",
    "DEPTHWISE_CONV_2D": "Conv",
    "TRANSPOSE_CONV": "ConvTranspose",
    "FULLY_CONNECTED": "MatMul",
    "BATCH_MATMUL": "MatMul",
    "GATHER": "Gather",
    "EMBEDDING_LOOKUP": "Gather",
    "ADD": "Add",
    "SUB": "Sub",
    "MUL": "Mul",
    "DIV": "Div",
    "POW": "Pow",
    "MAXIMUM": "Max",
    "MINIMUM": "Min",
    "RELU": "Relu",
    **dict.fromkeys(BOUNDS, "Clip"),
    "LEAKY_RELU": "LeakyRelu",
    "ELU": "Elu",
    "GELU": "Gelu",
    "PRELU": "PRelu",
    "HARD_SWISH": "HardSwish",
    "LOGISTIC": "Sigmoid",
    "TANH": "Tanh",
    "SOFTMAX": "Softmax",
    "LOG_SOFTMAX": "LogSoftmax",
    "MAX_POOL_2D": "MaxPool",
    "AVERAGE_POOL_2D": "AveragePool",
    "MEAN": "ReduceMean",
    "REDUCE_MAX": "ReduceMax",
    "CONCATENATION": "Concat",
    "TRANSPOSE": "Transpose",
    "RESHAPE": "Reshape",
    "PAD": "Pad",
    "PADV2": "Pad",
    "MIRROR_PAD": "Pad",
    "RESIZE_BILINEAR": "Resize",
    _LSTM: "LSTM",
}
_POSITIONS = {  # of parameters among the inputs
    "CONV_2D": {"weight": 1, "bias": 2},
    "DEPTHWISE_CONV_2D": {"weight": 1, "bias": 2},
    "TRANSPOSE_CONV": {"weight": 1, "bias": 3},
    "FULLY_CONNECTED": {"weight": 1, "bias": 2},
    "BATCH_MATMUL": {"weight": 1},
    "GATHER": {"table": 0},
    "EMBEDDING_LOOKUP": {"table": 1},
    "PRELU": {"slope": 1},
}
_Layout = tuple[Callable[[Array], Array], Callable[[Array], Array]]
_PLAIN: _Layout = (lambda array: array, lambda array: array)
LAYOUTS: dict[tuple[str, str], _Layout] = {
    ("CONV_2D", "weight"): (lambda array: array.transpose(0, 3, 1, 2), lambda array: array.transpose(0, 2, 3, 1)),
    ("DEPTHWISE_CONV_2D", "weight"): (
        lambda array: array.transpose(3, 0, 1, 2),
        lambda array: array.transpose(1, 2, 3, 0),
    ),
    ("TRANSPOSE_CONV", "weight"): (
        lambda array: array.transpose(3, 0, 1, 2),
        lambda array: array.transpose(1, 2, 3, 0),
    ),
    ("FULLY_CONNECTED", "weight"): (lambda array: array.T, lambda array: array.T),
}
"""To the vocabulary's convention, and back."""


def graph_of_file(file: EditedTfliteFile) -> tuple[LayerGraph, dict[str, Any]]:
    """The layers of the main graph.

    Returns:
        The graph, and each node's operator by the node's name.
    """
    nodes: list[Node] = []
    operators: dict[str, Any] = {}
    tensors = {file.name(index): _tensor(file, index) for index in file.graph.inputs}
    for operator in file.operators:
        if is_computed(file, operator):
            for index in [*operator.inputs, *operator.outputs]:
                if index >= 0:
                    tensors.setdefault(file.name(index), _tensor(file, index))
            for node in _nodes(file, operator):
                nodes.append(node)
                operators[node.name] = operator
                for name in node.outputs:
                    tensors.setdefault(name, _hidden(tensors[node.layer], name))
    inputs = tuple(file.name(index) for index in file.graph.inputs)
    outputs = tuple(file.name(index) for index in file.graph.outputs)
    return LayerGraph(inputs, outputs, tensors, tuple(nodes)), operators


def is_computed(file: EditedTfliteFile, operator: Any) -> bool:
    """Whether an operator's result depends on the network's inputs."""
    return any(_is_variable(file, index) for index in operator.inputs)


def constant_behind(file: EditedTfliteFile, index: int) -> int | None:
    """The constant that a tensor is, or that it's made from by a DEQUANTIZE."""
    if index < 0:
        return None
    if file.constant(index) is not None:
        return index
    producer = file.producer(index)
    if producer is not None and file.kind(producer) == "DEQUANTIZE" and file.constant(producer.inputs[0]) is not None:
        return int(producer.inputs[0])
    return None


def _is_variable(file: EditedTfliteFile, index: int) -> bool:
    if index in file.graph.inputs:
        return True
    producer = file.producer(index) if index >= 0 else None
    return producer is not None and constant_behind(file, index) is None


def _nodes(file: EditedTfliteFile, operator: Any) -> list[Node]:
    layer = file.name(operator.outputs[0])
    kind = file.kind(operator)
    activation = getattr(operator.builtinOptions, "fusedActivationFunction", 0)
    fused = None if kind in RECURRENT else FUSED.get(activation)
    main = Node(
        name=layer,
        layer=layer,
        op=OPERATORS.get(kind, kind),
        native=kind,
        inputs=tuple(file.name(index) for index in operator.inputs if _is_variable(file, index)),
        outputs=tuple(file.name(index) for index in operator.outputs) if fused is None else (layer + LINEAR,),
        attributes=_attributes(file, operator, kind),
        parameters=_parameters(file, operator, kind),
        channels_last=True,
    )
    if fused is None:
        return [main]
    op, values = fused
    return [main, Node(layer + ACTIVATION, layer, op, kind, main.outputs, (layer,), values, {}, True)]


def _attributes(file: EditedTfliteFile, operator: Any, kind: str) -> dict[str, Attribute]:
    options, found = operator.builtinOptions, dict[str, Attribute]()
    if kind in {"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "MAX_POOL_2D", "AVERAGE_POOL_2D"}:
        same = options.padding == schema.Padding.SAME
        found.update({"auto_pad": "SAME_UPPER"} if same else {"pads": (0, 0, 0, 0)})
        found["strides"] = (options.strideH, options.strideW)
    if kind in {"CONV_2D", "DEPTHWISE_CONV_2D"}:
        found["dilations"] = (options.dilationHFactor, options.dilationWFactor)
    elif kind in {"MAX_POOL_2D", "AVERAGE_POOL_2D"}:
        found["kernel_shape"] = (options.filterHeight, options.filterWidth)
    elif kind == "LEAKY_RELU":
        found["alpha"] = float(options.alpha)
    elif kind == "GELU":
        found["approximate"] = "tanh" if options.approximate else "none"
    elif kind in {"SOFTMAX", "LOG_SOFTMAX"}:
        found["axis"] = len(file.shape(operator.inputs[0])) - 1
    elif kind in BOUNDS:
        found.update(BOUNDS[kind])
    elif kind == "RESIZE_BILINEAR":
        half = "half_pixel" if options.halfPixelCenters else "asymmetric"
        found["coordinate_transformation_mode"] = "align_corners" if options.alignCorners else half
    elif kind in {"TRANSPOSE", "PAD", "PADV2", "MIRROR_PAD"}:
        table = file.constant(operator.inputs[1])
        if table is not None:
            name = "perm" if kind == "TRANSPOSE" else "pads"
            found[name] = tuple(int(number) for number in table.T.ravel())
        if kind == "MIRROR_PAD":
            found["mode"] = "symmetric" if options.mode == schema.MirrorPadMode.SYMMETRIC else "reflect"
    return found


def _parameters(file: EditedTfliteFile, operator: Any, kind: str) -> dict[str, Parameter]:
    found = {}
    for role, position in _positions(file, operator, kind).items():
        parameter = _parameter(file, operator, position, LAYOUTS.get((kind, role), _PLAIN)[0])
        if parameter is not None:
            found[role] = parameter
    for role, places in GATES.items() if kind == _LSTM else ():
        gates = [_parameter(file, operator, position, _PLAIN[0]) for position in places]
        if all(gates):
            found[role] = joined_gates([gate for gate in gates if gate is not None], role)
    inner = file.inner_constants(operator)
    files = {subgraph: file.inside(subgraph) for subgraph in {constant.subgraph for constant in inner.values()}}
    for role, constant in inner.items():
        parameter = _of_tensor(files[constant.subgraph], constant.tensor, _PLAIN[0])
        if parameter is not None:
            found[role] = parameter
    return found


def _parameter(
    file: EditedTfliteFile, operator: Any, position: int, convert: Callable[[Array], Array]
) -> Parameter | None:
    """A constant operand; None for others."""
    place = operator.inputs[position] if position < len(operator.inputs) else -1
    index = constant_behind(file, place)
    return None if index is None else _of_tensor(file, index, convert)


def _of_tensor(file: EditedTfliteFile, index: int, convert: Callable[[Array], Array]) -> Parameter | None:
    """A tensor's real numbers; None where it has none."""
    real = file.real(index)
    if real is None:
        return None
    scales = file.scales(index) if file.is_quantized(index) else None
    return Parameter(
        file.name(index),
        tuple(convert(real).shape),
        file.dtype(index),
        _loader(file, index, convert),
        None if scales is None else 8 * np.dtype(file.dtype(index)).itemsize,
        () if scales is None else tuple(map(float, scales)),
    )


def gates_of(kind: str, role: str, array: Array) -> list[tuple[int, Array]]:
    """A parameter of a recurrent operator as the file has it: places of the gates' operands, each with its numbers.

    Args:
        kind: Of the operator.
        role: Of the parameter.
        array: In the vocabulary's convention, of one direction.

    Returns:
        None of them for other operators.
    """
    if kind != _LSTM or role not in GATES:
        return []
    places, rows = GATES[role], array[0]
    if role == "B":  # which the vocabulary has twice, and their sum counts
        rows = rows[: len(rows) // 2] + rows[len(rows) // 2 :]
    return list(zip(places, np.split(rows, len(places)), strict=True))


def _positions(file: EditedTfliteFile, operator: Any, kind: str) -> dict[str, int]:
    """Where a layer's parameters are among its inputs; the constant of an elementwise operator may be either one."""
    if OPERATORS.get(kind) not in ELEMENTWISE_BINARY:
        return _POSITIONS.get(kind, {})
    constant = [place for place, index in enumerate(operator.inputs) if constant_behind(file, index) is not None]
    return {"operand": constant[0]} if len(constant) == 1 else {}


def _loader(file: EditedTfliteFile, index: int, convert: Callable[[Array], Array]) -> Callable[[], Array]:
    def load() -> Array:
        real = file.real(index)
        if real is None:
            raise ValueError(f"{file.name(index)} isn't constant any more")
        return np.asarray(convert(real), order="C")

    return load


def _tensor(file: EditedTfliteFile, index: int) -> Tensor:
    scales = file.scales(index) if file.is_quantized(index) else None
    zeros = file.tensor(index).quantization.zeroPoint if scales is not None else None
    quantization = (
        Quantization(float(scales[0]), int(zeros[0]) if zeros is not None else 0) if scales is not None else None
    )
    return Tensor(file.name(index), file.shape(index), file.dtype(index), quantization)


def _hidden(like: Tensor, name: str) -> Tensor:
    return Tensor(name, like.shape, like.dtype, like.quantization, observable=False)
