"""Operators of the vocabulary with numbers of their own, and attributes that become others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import node_functions
import numpy as np

from conrepair.formats.editing.operation import Operation
from conrepair.ground.graph.layer_graph import Array, Attribute, Node, Parameter
from conrepair.ground.graph.operators import ELEMENTWISE_BINARY, FUNCTIONS, OPERATORS, family

SHAPE = (2, 4, 8, 6)


def drawn(*shape: int, seed: int = 0, scale: float = 0.5) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


FEEDS = {"x": drawn(*SHAPE, scale=2), "z": drawn(*SHAPE, seed=1, scale=2)}
"""What the operations read."""


@dataclass(frozen=True)
class Case:
    """An operation of `FEEDS`.

    Attributes:
        operation: In the vocabulary.
        changes: What its attributes may become.
        said: Attributes that a graph of known sizes says otherwise.
        found: Operators of the vocabulary that formats write it as, too.
    """

    operation: Operation
    changes: Mapping[str, Attribute] = field(default_factory=dict)
    said: Mapping[str, Attribute] = field(default_factory=dict)
    found: tuple[str, ...] = ()

    @property
    def changed(self) -> Operation:
        return replace(self.operation, attributes={**self.operation.attributes, **self.changes})


def value_of(operation: Operation) -> Array:
    """What the operator's record says of it, or ONNX Runtime where that says it's ONNX's."""
    known = OPERATORS[operation.operator].attributes
    numbers = {
        role: Parameter(role, array.shape, array.dtype.name, lambda array=array: array)  # type: ignore[misc]
        for role, array in operation.parameters.items()
    }
    given = {**known, **operation.attributes}
    read = tuple(map(str, operation.inputs))
    node = Node("n", "n", operation.operator, "", read, ("y",), given, numbers, operation.channels_last)
    with np.errstate(all="ignore"):
        found = node_functions.compute(node, [FEEDS[name] for name in read if name])
    assert found is not None
    return found[0]


def each(names: Iterable[str], check: Callable[[Sequence[str]], None]) -> None:
    """Look at all at once; if that's wrong, at each alone, so that the one that is wrong fails."""
    every = list(names)
    try:
        check(every)
    except Exception:
        for name in every:
            try:
                check([name])
            except Exception as error:
                error.add_note(f"{name} alone is wrong")
                raise
        raise


def _of(operator: str, parameters: Mapping[str, Array] | None = None, /, **attributes: Any) -> Operation:
    return Operation(operator, ("x",), attributes, parameters or {})


def _two(operator: str) -> Operation:
    return Operation(operator, ("x", "z"))


_WINDOW = {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1), "dilations": (1, 1)}
_SQUARE = {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
_OTHER = {"strides": (1, 2), "pads": (0, 1, 1, 0)}
_NORMAL = {"scale": drawn(4, seed=1), "bias": drawn(4, seed=2)}
_ROW = drawn(6, seed=3)
_CUT = {"starts": (1, 5), "ends": (7, -7), "axes": (2, 3), "steps": (2, -2)}
_PAIRS = tuple(name for name in ELEMENTWISE_BINARY if name != "Mod")  # which ONNX has of whole numbers
_ALSO = {"Square": ("Mul",), "Reciprocal": ("Div",)}
_SLOPED = {"Elu", "Celu", "LeakyRelu", "Swish", "ThresholdedRelu"}
_REDUCED = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceSumSquare")

CASES: Mapping[str, Case] = {
    **{name: Case(_of(name), found=_ALSO.get(name, ())) for name in FUNCTIONS if not OPERATORS[name].logical},
    **{name: Case(_of(name, alpha=0.7), {"alpha": 0.3}) for name in sorted(_SLOPED & OPERATORS.keys())},
    "Clip": Case(_of("Clip", min=-0.25, max=0.5), {"min": -1.0, "max": 0.75}),
    "Clip from below": Case(_of("Clip", min=-0.25), found=("Max",)),
    "a slope over 1": Case(_of("LeakyRelu", alpha=2.0)),
    "PRelu": Case(_of("PRelu", {"slope": drawn(4, 1, 1)})),
    "Gelu": Case(_of("Gelu", approximate="none"), {"approximate": "tanh"}),
    "Gelu by tanh": Case(_of("Gelu", approximate="tanh"), {"approximate": "none"}),
    "HardSigmoid": Case(_of("HardSigmoid", alpha=0.3, beta=0.4), {"alpha": 0.2, "beta": 0.6}),
    "Selu": Case(_of("Selu")),
    "Shrink, hard": Case(_of("Shrink")),
    "Shrink, soft": Case(_of("Shrink", lambd=0.7, bias=0.7)),
    "Shrink with an offset": Case(_of("Shrink", lambd=0.7, bias=0.2), {"lambd": 0.4}),
    **{f"{name} of two": Case(_two(name)) for name in (*_PAIRS, *family("comparison"))},
    **{f"{name} of a row": Case(_of(name, {"operand": _ROW})) for name in _PAIRS},
    **{
        f"{name} of a constant": Case(_of(name, {"operand": np.float32(1.5)}, constant_first=True))
        for name in ("Sub", "Div")
    },
    **{name: Case(_of(name, axes=(1, 3), keepdims=False), {"axes": (2,), "keepdims": True}) for name in _REDUCED},
    "ReduceMean of all places": Case(_of("ReduceMean", axes=(2, 3), keepdims=True)),
    "ArgMax": Case(_of("ArgMax", axis=2, keepdims=True), {"axis": 1}),
    "ArgMin": Case(_of("ArgMin", axis=1, keepdims=False), {"keepdims": True}),
    "CumSum": Case(_of("CumSum", axis=2), {"axis": 1, "exclusive": True, "reverse": True}),
    "Softmax": Case(_of("Softmax", axis=3), {"axis": 2}),
    "Softmax of channels": Case(_of("Softmax", axis=1), {"axis": 3}),
    "LogSoftmax": Case(_of("LogSoftmax", axis=3), {"axis": 1}),
    "BatchNormalization": Case(
        _of("BatchNormalization", {**_NORMAL, "mean": drawn(4), "variance": drawn(4) ** 2}, epsilon=1e-3),
        {"epsilon": 0.5},
    ),
    "InstanceNormalization": Case(_of("InstanceNormalization", _NORMAL, epsilon=1e-3), {"epsilon": 0.5}),
    "GroupNormalization": Case(_of("GroupNormalization", _NORMAL, groups=2, epsilon=1e-3)),
    "LayerNormalization": Case(
        _of("LayerNormalization", {"scale": drawn(8, 6), "bias": drawn(8, 6)}, axes=(2, 3), epsilon=1e-3),
        {"epsilon": 0.5},
    ),
    "RMSNormalization": Case(_of("RMSNormalization", {"scale": _ROW}, axes=(3,), epsilon=1e-3)),
    "MaxPool": Case(_of("MaxPool", **_WINDOW), {**_OTHER, "kernel_shape": (2, 3)}),
    "MaxPool beyond the edge": Case(_of("MaxPool", **_SQUARE, ceil_mode=True), {"ceil_mode": False}),
    "AveragePool": Case(
        _of("AveragePool", **_WINDOW, count_include_pad=False), {**_OTHER, "count_include_pad": True}
    ),
    "AveragePool of pads": Case(_of("AveragePool", **_WINDOW, count_include_pad=True)),
    "Conv": Case(_of("Conv", {"weight": drawn(5, 4, 3, 2), "bias": drawn(5)}, **_WINDOW), _OTHER),
    "Conv in groups": Case(_of("Conv", {"weight": drawn(6, 2, 3, 2), "bias": drawn(6)}, **_WINDOW, group=2)),
    "Conv of each channel": Case(
        _of("Conv", {"weight": drawn(8, 1, 3, 2)}, **{**_WINDOW, "strides": (1, 1)}, group=4), {"dilations": (2, 1)}
    ),
    "ConvTranspose": Case(
        _of(
            "ConvTranspose",
            {"weight": drawn(4, 3, 3, 2), "bias": drawn(3)},
            **_WINDOW,
            output_padding=(0, 0),
        )
    ),
    "MatMul": Case(_of("MatMul", {"weight": drawn(6, 5)})),
    "MatMul with a bias": Case(_of("MatMul", {"weight": drawn(6, 5), "bias": drawn(5)})),
    "MatMul from the left": Case(_of("MatMul", {"left": drawn(5, 8)}), found=("Matmul",)),
    "MatMul of two": Case(Operation("MatMul", ("x", "z"), {"transpose_b": True})),
    "Reshape": Case(_of("Reshape", shape=(2, 32, 6)), {"shape": (2, 8, 24)}),
    "Transpose": Case(_of("Transpose", perm=(0, 2, 3, 1)), {"perm": (0, 3, 1, 2)}),
    "Cast": Case(_of("Cast", to="int32")),
    "Concat": Case(Operation("Concat", ("x", "z"), {"axis": 1}), {"axis": 2}),
    "Concat with a constant": Case(Operation("Concat", ("", "x"), {"axis": 1}, {"operand": drawn(2, 1, 8, 6)})),
    "Stack": Case(Operation("Stack", ("x", "z"), {"axis": 1})),
    "Slice": Case(_of("Slice", **_CUT), {"starts": (0, 4), "ends": (8, 0)}),
    "Slice forwards": Case(
        _of("Slice", starts=(1,), ends=(-1,), axes=(2,), steps=(2,)), {"steps": (1,)}, {"ends": (7,)}
    ),
    "Tile": Case(_of("Tile", repeats=(1, 2, 1, 3)), {"repeats": (1, 1, 2, 1)}),
    "Expand": Case(_of("Expand", shape=(3, 2, 4, 8, 6))),
    "Pad": Case(_of("Pad", pads=(0, 0, 1, 2, 0, 0, 3, 0)), {"pads": (0, 0, 2, 0, 0, 0, 0, 1)}),
    "Pad with a number": Case(_of("Pad", pads=(0, 0, 1, 2, 0, 0, 3, 0), value=0.5), {"value": 0.25}),
    "Pad, mirrored": Case(_of("Pad", pads=(0, 0, 1, 2, 0, 0, 3, 0), mode="reflect")),
    "Pad of edges": Case(_of("Pad", pads=(0, 0, 1, 2, 0, 0, 3, 0), mode="edge"), {"mode": "reflect"}),
    "Gather": Case(_of("Gather", {"indices": np.array([2, 0, 2])}, axis=1), {"axis": 2}),
    "DepthToSpace": Case(_of("DepthToSpace", blocksize=2, mode="DCR"), {"mode": "CRD"}),
    "SpaceToDepth": Case(_of("SpaceToDepth", blocksize=2)),
    "LpNormalization": Case(_of("LpNormalization", p=2, axes=(3,)), {"p": 1}),
    "LRN": Case(_of("LRN", alpha=0.3, beta=0.7, bias=2.0, size=3), {"alpha": 0.1, "size": 5}),
}
