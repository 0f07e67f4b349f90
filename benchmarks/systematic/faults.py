"""Faults that converters make in every layer of a sort, put straight into graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from benchmarks.common.otherwise.work import attribute
from benchmarks.common.plain_graph import Array, PlainGraph
from benchmarks.systematic import edits
from benchmarks.systematic.edits import Change
from benchmarks.systematic.formats import FORMATS
from conrepair.ground.graph.kinds import Kind

__all__ = ["FAULTS", "SystematicFault"]

_CNN = ("mobilenet-v2", "efficientnet-lite0", "resnet50", "mobilenet-v3-small")
_ALL = (*_CNN, "vit", "lstm", "dilated", "decoder", "encoder")
_LEAST = 32  # numbers of a weight

Places = Callable[[PlainGraph], list[str]]


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


def _has_bias(graph: PlainGraph, node: NodeProto) -> bool:
    return edits.bias_place(graph, node) >= 0


def _is_six(graph: PlainGraph, node: NodeProto) -> bool:
    high = _known(graph, node, 2)
    return high is not None and high.size == 1 and float(high.reshape(-1)[0]) == 6.0


def _adds_epsilon(graph: PlainGraph, node: NodeProto) -> bool:
    """A LayerNorm, or the sum of a mean square with a small number."""
    if node.op_type == "LayerNormalization":
        return True
    number = _known(graph, node)
    return number is not None and number.size == 1 and 0 < float(number.reshape(-1)[0]) < edits.KERAS_EPSILON / 2


def _two_sided(graph: PlainGraph, node: NodeProto, step: int) -> bool:
    pads = attribute(node, "pads", [0])
    return all(pads) and len(pads) == 4 and attribute(node, "strides", [1, 1])[0] == step


def _depthwise(graph: PlainGraph, node: NodeProto) -> bool:
    return _known(graph, node) is not None and attribute(node, "group", 1) > 1


_N, _H, _G, _P = Kind.PARAMETERS, Kind.HYPERPARAMETERS, Kind.GRAPH, Kind.PRECISION
_NORMS, _CONVS = _of("BatchNormalization"), _of("Conv")
_BIASED = _of("Conv", "Gemm", "Add", when=_has_bias)
_PADDED = ("mobilenet-v2", "resnet50", "mobilenet-v3-small")
_NORMED = (*_CNN, "dilated")

FAULTS: dict[str, SystematicFault] = {
    fault.name: fault
    for fault in (
        *(SystematicFault(name, _P, _ALL, _WEIGHTED, edits.rounded(item)) for name, item in FORMATS.items()),
        SystematicFault("batch-norm-epsilon", _H, _NORMED, _NORMS, edits.other_epsilon, unfolded=True),
        SystematicFault("batch-norm-deviation", _N, _NORMED, _NORMS, edits.input_changed(4, np.sqrt), unfolded=True),
        SystematicFault(
            "batch-norm-mean-lost", _N, _NORMED, _NORMS, edits.input_changed(3, np.zeros_like), unfolded=True
        ),
        SystematicFault("biases-lost", _N, (*_CNN, "dilated", "encoder"), _BIASED, edits.bias_lost),
        SystematicFault("relu-for-relu6", _G, _CNN[:2], _of("Clip", when=_is_six), edits.other_operator("Relu")),
        SystematicFault("slope-ignored", _H, ("dilated",), _of("LeakyRelu"), edits.with_attributes(alpha=0.01)),
        SystematicFault("gelu-by-tanh", _G, ("vit", "encoder"), _of("Erf"), edits.tanh_for_erf),
        SystematicFault(
            "layer-norm-epsilon",
            _H,
            ("vit", "decoder", "encoder"),
            _of("LayerNormalization", "Add", when=_adds_epsilon),
            edits.layer_norm_epsilon,
        ),
        SystematicFault(
            "pads-upper",
            _H,
            _PADDED,
            _of("Conv", when=lambda graph, node: _two_sided(graph, node, 2) and attribute(node, "pads", [0])[0] == 1),
            edits.with_attributes(pads=[0, 0, 1, 1]),
        ),
        SystematicFault(
            "pads-shifted",
            _H,
            _PADDED[:2],
            _of("Conv", when=lambda graph, node: _two_sided(graph, node, 1) and attribute(node, "pads", [0])[0] == 1),
            edits.with_attributes(pads=[0, 0, 2, 2]),
        ),
        SystematicFault(
            "padding-by-edges",
            _G,
            (*_PADDED, "dilated"),
            _of("Conv", when=lambda _, node: any(attribute(node, "pads", [0]))),
            edits.padded_apart,
        ),
        SystematicFault("pads-lower", _H, _CNN[1:2], _of("Pad"), edits.sides_exchanged),
        SystematicFault("pads-of-edges", _H, _CNN[1:2], _of("Pad"), edits.with_attributes(mode="edge")),
        SystematicFault(
            "sigmoid-for-hard-sigmoid", _G, _CNN[3:], _of("HardSigmoid"), edits.other_operator("Sigmoid")
        ),
        SystematicFault("relu-for-hard-swish", _G, _CNN[3:], _of("HardSwish"), edits.other_operator("Relu")),
        SystematicFault(
            "softmax-axis", _H, ("vit", "decoder", "encoder"), _of("Softmax"), edits.with_attributes(axis=-2)
        ),
        SystematicFault("gate-order", _N, ("lstm",), _of("LSTM", when=_has_weight), edits.gates),
        SystematicFault(
            "dilations-ignored",
            _H,
            ("dilated",),
            _of("Conv", when=lambda _, node: attribute(node, "dilations", [1])[0] > 1),
            edits.dilation_ignored,
        ),
        SystematicFault("depthwise-order", _N, _CNN[:2], _of("Conv", when=_depthwise), edits.channels_rolled),
    )
}
