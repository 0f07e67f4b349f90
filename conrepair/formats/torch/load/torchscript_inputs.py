"""What a TorchScript network takes, by its first layers with weights: the file itself doesn't say it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from conrepair.ground.data.tensor_spec import TensorSpec

_SAME_SHAPE = {
    f"aten::{name}"
    for name in ("add", "sub", "rsub", "mul", "div", "neg", "abs", "clamp", "to", "type_as", "contiguous", "float",
                 "detach", "clone", "dropout", "relu", "sigmoid", "tanh")
}  # fmt: skip
_Shapes = list[TensorSpec]


def inputs_of_graph(module: torch.jit.ScriptModule, names: Sequence[str]) -> Iterator[tuple[TensorSpec, ...]]:
    """What a network may take; whether it does shows when it's run.

    Args:
        module: In evaluation mode.
        names: Of its inputs.

    Returns:
        The likeliest first; none where an input goes into no layer that tells its shape.
    """
    try:
        graph = torch.jit.freeze(module).graph  # weights as constants, calls written out
    except RuntimeError:
        return
    inputs = list(graph.inputs())[1:]
    found: dict[str, _Shapes] = {}
    for node in _nodes(graph):
        tell = _LAYERS.get(node.kind())
        place = 1 if node.kind() == "aten::embedding" else 0
        source = None if tell is None else _origin(list(node.inputs())[place])
        if tell is not None and source is not None and source.debugName() not in found:
            found[source.debugName()] = tell([item.toIValue() for item in node.inputs()])
    told = [found.get(value.debugName(), []) for value in inputs]
    for combination in itertools.product(*told):
        yield tuple(TensorSpec(name, spec.shape, spec.dtype) for name, spec in zip(names, combination, strict=True))


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _origin(value: Any) -> Any | None:
    """The graph's input that a value is, but for changes that keep its shape."""
    node = value.node()
    if node.kind() == "prim::Param":
        return value
    if node.kind() == "prim::If":
        ways = [list(block.outputs())[value.offset()] for block in node.blocks()]
        return next(filter(None, map(_origin, ways)), None)
    return _origin(next(node.inputs())) if node.kind() in _SAME_SHAPE else None


def _convolution(groups: int) -> Callable[[list[Any]], _Shapes]:
    """Tells by a convolution; its number of groups stands at this place."""

    def tell(values: list[Any]) -> _Shapes:
        weight = values[1]
        if not isinstance(weight, torch.Tensor):
            return []
        spatial = ("length",) if weight.ndim == 3 else ("depth", "height", "width")[5 - weight.ndim :]
        return [_spec(("batch", weight.shape[1] * values[groups], *spatial), weight)]

    return tell


def _linear(values: list[Any]) -> _Shapes:
    weight = values[1]
    if not isinstance(weight, torch.Tensor):
        return []
    return [_spec(("batch", *between, weight.shape[1]), weight) for between in ((), ("length",))]


def _embedding(values: list[Any]) -> _Shapes:
    return [TensorSpec("", ("batch", "length"), "int64"), TensorSpec("", ("batch",), "int64")]


def _recurrent(values: list[Any]) -> _Shapes:
    weights = values[2]
    if not weights:
        return []
    ends = ("batch", "length") if values[-1] else ("length", "batch")
    return [_spec((*ends, weights[0].shape[1]), weights[0])]


def _spec(shape: tuple[int | str, ...], weight: torch.Tensor) -> TensorSpec:
    return TensorSpec("", shape, str(weight.dtype).removeprefix("torch."))


_LAYERS: dict[str, Callable[[list[Any]], _Shapes]] = {
    "aten::_convolution": _convolution(8),
    "aten::conv1d": _convolution(6),
    "aten::conv2d": _convolution(6),
    "aten::conv3d": _convolution(6),
    "aten::linear": _linear,
    "aten::embedding": _embedding,
    "aten::lstm": _recurrent,
    "aten::gru": _recurrent,
}
