"""Faults that converters make in every layer of a sort, put straight into graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

from benchmarks.common.otherwise.work import attribute, attributes
from benchmarks.common.plain_graph import Array, PlainGraph
from benchmarks.systematic.formats import FORMATS, Rounding
from conrepair.faults.fault import Kind

__all__ = ["FAULTS", "SystematicFault"]

_CNN = ("mobilenet-v2", "efficientnet-lite0", "resnet50", "mobilenet-v3-small")
_ALL = (*_CNN, "vit", "lstm", "dilated", "decoder", "encoder")
_LEAST = 32  # numbers of a weight
_KERAS_EPSILON, _TORCH_EPSILON = 1e-3, 1e-5

Places = Callable[[PlainGraph], list[str]]
Change = Callable[[PlainGraph, NodeProto], None]


@dataclass(frozen=True)
class SystematicFault:
    """What's wrong with every layer of a sort.

    Attributes:
        name: In the names of cases.
        kind: What a diagnosis should call it.
        networks: That have such layers.
        places: Names of nodes.
        change: Puts it into one of them.
        unfolded: Whether BatchNorm must be nodes of its own.
    """

    name: str
    kind: Kind
    networks: Sequence[str]
    places: Places
    change: Change
    unfolded: bool = False


def _of(*operators: str, when: Callable[[PlainGraph, NodeProto], bool] = lambda *_: True) -> Places:
    def find(graph: PlainGraph) -> list[str]:
        return [name for name, node in graph.nodes.items() if node.op_type in operators and when(graph, node)]

    return find


def _known(graph: PlainGraph, node: NodeProto, place: int = 1) -> Array | None:
    return graph.constants.get(node.input[place]) if place < len(node.input) else None


def _has_weight(graph: PlainGraph, node: NodeProto) -> bool:
    weight = _known(graph, node)
    return weight is not None and weight.dtype == np.float32 and weight.size >= _LEAST


_WEIGHTED = _of("Conv", "Gemm", "MatMul", "LSTM", when=_has_weight)


def _rounded(rounding: Rounding) -> Change:
    def change(graph: PlainGraph, node: NodeProto) -> None:
        axis = -1 if node.op_type == "MatMul" or (node.op_type == "Gemm" and not attribute(node, "transB", 0)) else 0
        for place in (1, 2) if node.op_type == "LSTM" else (1,):
            array = graph.constants[node.input[place]]
            graph.own(node.name, place, rounding(array, 1 if node.op_type == "LSTM" else axis))

    return change


def _set(**wanted: Any) -> Change:
    """Other attributes."""

    def change(graph: PlainGraph, node: NodeProto) -> None:
        outputs = list(node.output)
        graph.add(node.name, node.op_type, *node.input, outputs=len(outputs), **attributes(node) | wanted)
        graph.nodes[node.name].output[:] = outputs

    return change


def _instead(operator: str, **wanted: Any) -> Change:
    """Another operator of the first input."""

    def change(graph: PlainGraph, node: NodeProto) -> None:
        outputs = list(node.output)
        graph.add(node.name, operator, node.input[0], **wanted)
        graph.nodes[node.name].output[:] = outputs

    return change


def _bias_lost(graph: PlainGraph, node: NodeProto) -> None:
    graph.own(node.name, 2, np.zeros_like(graph.constants[node.input[2]]))


def _has_bias(graph: PlainGraph, node: NodeProto) -> bool:
    bias = _known(graph, node, 2)
    return bias is not None and bool(bias.any())


def _other_epsilon(graph: PlainGraph, node: NodeProto) -> None:
    now = attribute(node, "epsilon", _TORCH_EPSILON)
    _set(epsilon=_TORCH_EPSILON if now > 2 * _TORCH_EPSILON else _KERAS_EPSILON)(graph, node)


def _input_changed(place: int, change: Callable[[Array], Array]) -> Change:
    return lambda graph, node: graph.own(node.name, place, change(graph.constants[node.input[place]]))


def _is_six(graph: PlainGraph, node: NodeProto) -> bool:
    high = _known(graph, node, 2)
    return high is not None and high.size == 1 and float(high.reshape(-1)[0]) == 6.0


def _tanh_for_erf(graph: PlainGraph, node: NodeProto) -> None:
    """erf(u) by the tanh that GELU is approximated by: u is the value over the root of two."""
    name, value = node.name, node.input[0]
    cube = graph.add(f"{name}/pow", "Pow", value, graph.constant(f"{name}/three", 3.0))
    cube = graph.add(f"{name}/cubic", "Mul", cube, graph.constant(f"{name}/factor", 0.08943))
    inner = graph.add(f"{name}/sum", "Add", value, cube)
    inner = graph.add(f"{name}/root", "Mul", inner, graph.constant(f"{name}/2/pi", float(2 / np.sqrt(np.pi))))
    node.op_type, node.input[0] = "Tanh", inner


def _layer_norm_epsilon(graph: PlainGraph, node: NodeProto) -> None:
    if node.op_type == "LayerNormalization":
        _set(epsilon=_KERAS_EPSILON)(graph, node)
    else:
        graph.own(node.name, 1, _KERAS_EPSILON)


def _adds_epsilon(graph: PlainGraph, node: NodeProto) -> bool:
    """A LayerNorm, or the sum of a mean square with a small number."""
    if node.op_type == "LayerNormalization":
        return True
    number = _known(graph, node)
    return number is not None and number.size == 1 and 0 < float(number.reshape(-1)[0]) < _KERAS_EPSILON / 2


def _two_sided(graph: PlainGraph, node: NodeProto, step: int) -> bool:
    pads = attribute(node, "pads", [0])
    return all(pads) and len(pads) == 4 and attribute(node, "strides", [1, 1])[0] == step


def _padded_apart(graph: PlainGraph, node: NodeProto) -> None:
    """What's outside a picture is its edge, not zero."""
    pads = attribute(node, "pads", [0] * 4)
    half = len(pads) // 2
    amounts = graph.constant(f"{node.name}/amounts", [0, 0, *pads[:half], 0, 0, *pads[half:]])
    padded = graph.add(f"{node.name}/pad", "Pad", node.input[0], amounts, mode="edge")
    node.input[0] = padded
    _set(pads=[0] * len(pads))(graph, node)


def _dilation_ignored(graph: PlainGraph, node: NodeProto) -> None:
    by = attribute(node, "dilations", [1, 1])[0]
    _set(dilations=[1, 1], pads=[pad // by for pad in attribute(node, "pads", [0] * 4)])(graph, node)


def _channels_rolled(graph: PlainGraph, node: NodeProto) -> None:
    graph.own(node.name, 1, np.roll(graph.constants[node.input[1]], 1, axis=0))


def _depthwise(graph: PlainGraph, node: NodeProto) -> bool:
    return _known(graph, node) is not None and attribute(node, "group", 1) > 1


def _gates(graph: PlainGraph, node: NodeProto) -> None:
    """In PyTorch's order (input, forget, cell, output) for ONNX's (input, output, forget, cell)."""
    for place in (1, 2, 3):
        array = graph.constants[node.input[place]]
        parts = np.split(array, array.shape[1] // (array.shape[1] // (8 if place == 3 else 4)), axis=1)
        order = [0, 2, 3, 1] if place != 3 else [0, 2, 3, 1, 4, 6, 7, 5]
        graph.own(node.name, place, np.concatenate([parts[index] for index in order], axis=1))


_N, _H, _G, _P = Kind.PARAMETERS, Kind.HYPERPARAMETERS, Kind.GRAPH, Kind.PRECISION
_NORMS, _CONVS = _of("BatchNormalization"), _of("Conv")
_NORMED = (*_CNN, "dilated")

FAULTS: dict[str, SystematicFault] = {
    fault.name: fault
    for fault in (
        *(SystematicFault(name, _P, _ALL, _WEIGHTED, _rounded(item)) for name, item in FORMATS.items()),
        SystematicFault("batch-norm-epsilon", _H, _NORMED, _NORMS, _other_epsilon, unfolded=True),
        SystematicFault("batch-norm-deviation", _N, _NORMED, _NORMS, _input_changed(4, np.sqrt), unfolded=True),
        SystematicFault("batch-norm-mean-lost", _N, _NORMED, _NORMS, _input_changed(3, np.zeros_like), unfolded=True),
        SystematicFault(
            "biases-lost", _N, (*_CNN, "vit", "dilated"), _of("Conv", "Gemm", when=_has_bias), _bias_lost
        ),
        SystematicFault("relu-for-relu6", _G, _CNN[:2], _of("Clip", when=_is_six), _instead("Relu")),
        SystematicFault("slope-ignored", _H, ("dilated",), _of("LeakyRelu"), _set(alpha=0.01)),
        SystematicFault("gelu-by-tanh", _G, ("vit", "encoder"), _of("Erf"), _tanh_for_erf),
        SystematicFault(
            "layer-norm-epsilon",
            _H,
            ("vit", "decoder", "encoder", "lstm"),
            _of("LayerNormalization", "Add", when=_adds_epsilon),
            _layer_norm_epsilon,
        ),
        SystematicFault(
            "pads-upper",
            _H,
            _CNN,
            _of("Conv", when=lambda graph, node: _two_sided(graph, node, 2) and attribute(node, "pads", [0])[0] == 1),
            _set(pads=[0, 0, 1, 1]),
        ),
        SystematicFault(
            "pads-shifted",
            _H,
            (*_CNN, "dilated"),
            _of("Conv", when=lambda graph, node: _two_sided(graph, node, 1) and attribute(node, "pads", [0])[0] == 1),
            _set(pads=[0, 0, 2, 2]),
        ),
        SystematicFault(
            "padding-by-edges",
            _G,
            (*_CNN, "dilated"),
            _of("Conv", when=lambda _, node: any(attribute(node, "pads", [0]))),
            _padded_apart,
        ),
        SystematicFault("sigmoid-for-hard-sigmoid", _G, _CNN[3:], _of("HardSigmoid"), _instead("Sigmoid")),
        SystematicFault("relu-for-hard-swish", _G, _CNN[3:], _of("HardSwish"), _instead("Relu")),
        SystematicFault("softmax-axis", _H, ("vit", "decoder", "encoder"), _of("Softmax"), _set(axis=-2)),
        SystematicFault("gate-order", _N, ("lstm",), _of("LSTM", when=_has_weight), _gates),
        SystematicFault(
            "dilations-ignored",
            _H,
            ("dilated",),
            _of("Conv", when=lambda _, node: attribute(node, "dilations", [1])[0] > 1),
            _dilation_ignored,
        ),
        SystematicFault("depthwise-order", _N, _CNN[:2], _of("Conv", when=_depthwise), _channels_rolled),
    )
}
