"""What a recurrent layer has become, however the target writes it: told from its results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from conrepair.faults.fault import Kind
from conrepair.graph.layer_graph import Array, Node
from conrepair.localize.diagnosis.computing import compute
from conrepair.localize.diagnosis.finding import Finding
from conrepair.localize.diagnosis.recurrence import Layer, Values, layer_of, wrong_forms
from conrepair.localize.diagnosis.region import Region
from conrepair.localize.diagnosis.steps import MOVES
from conrepair.localize.diagnosis.wiring import layers_of
from conrepair.metrics.running_error import relative_l2

__all__ = ["recurrent_findings"]

_CLOSE = 1e-4  # relative L2 to what a framework has computed in float32
_BETTER = 0.01  # of the error is left at most
_PARTS = {"weight": "the input's weights are", "recurrent": "the recurrent weights are", "bias": "the bias is"}
_MOST = 1 << 30  # products of numbers, for one form


def recurrent_findings(region: Region) -> Iterator[Finding]:
    """The form of the source's layer that gives what the target computes.

    The layer is computed in NumPy as it is, which must give the source's result; then in forms that conversions give
    it by mistake. That needs no look at how the target writes it: as a loop, unrolled, or as one operator.

    Args:
        region: Guilty, with one recurrent layer in the source.
    """
    nodes = [node for node in region.source.nodes if node.op in {"LSTM", "GRU", "RNN"}]
    layer = layer_of(nodes[0]) if len(nodes) == 1 else None
    x = None if layer is None else _read(region, nodes[0].inputs[0])
    if layer is None or x is None or x.size // x.shape[-1] * (layer.weight.size + layer.recurrent.size) > _MOST:
        return
    expected, computed = region.expected, region.computed
    if expected.shape != computed.shape:
        return
    right = _forms(layer, x)
    errors = {name: _error(region, nodes[0], results, expected) for name, results in right.items()}
    form = min(errors, key=lambda name: errors[name])
    if errors[form] > _CLOSE:
        return
    close = min(_CLOSE, _BETTER * relative_l2(expected, computed))

    def error(other: Layer) -> float:
        return _error(region, nodes[0], _forms(other, x)[form], computed)

    found = next(((words, other) for words, other in wrong_forms(layer) if error(other) <= close), None)
    found = found or _scaled(layer, error, close)
    if found is not None:
        yield _finding(region, nodes[0], *found, layer)


def _scaled(layer: Layer, error: Callable[[Layer], float], close: float) -> tuple[str, Layer] | None:
    """The layer with one of its parameters times a number, which is looked for; in words, too."""
    from scipy.optimize import minimize_scalar  # takes half a second to import

    for name, role in _PARTS.items():

        def scaled(factor: float, name: str = name) -> Layer:
            return replace(layer, **{name: factor * getattr(layer, name)})

        best = minimize_scalar(lambda factor, scaled=scaled: error(scaled(factor)) ** 2, (0.5, 1.5), method="brent")
        factor = float(best.x)
        if error(scaled(factor)) <= close:
            return f"{role} scaled by {factor:.4g}", scaled(factor)
    return None


def _finding(region: Region, node: Node, words: str, other: Layer, layer: Layer) -> Finding:
    first = [item.layer for item in region.target.nodes if item.op not in {*MOVES, "Slice"}]
    target = tuple(dict.fromkeys([*first, *layers_of(region.target)]))
    return Finding(
        Kind.PARAMETERS if _options(other) == _options(layer) else Kind.HYPERPARAMETERS,
        f"the target computes what the {node.op} `{node.layer}` does where {words}",
        (node.layer, *layers_of(region.source)),
        target,
        f"at {target[0]}",
        rule=words,
    )


def _options(layer: Layer) -> tuple[object, ...]:
    return layer.activations, layer.reverse, layer.linear_before_reset


def _read(region: Region, name: str) -> Values | None:
    """What the layer reads, as the source has it."""
    for begin in region.target.begins:
        if region.partners.get(begin) == name and begin in region.layouts:
            array = region.layouts[begin].to_source(region.fed(begin))
            return np.asarray(array, np.float64) if array.ndim == 3 else None
    return None


def _forms(layer: Layer, x: Values) -> Mapping[str, tuple[Values, Values]]:
    """What a layer gives: the states [batch, steps, hidden], of which its first output has all or one; and the last."""
    states = layer.run(x)
    last, first = states[:, -1], states[:, 0]
    given = {"states": states, "steps first": states.swapaxes(0, 1), "last": last, "first": first}
    return {name: (values, first if layer.reverse else last) for name, values in given.items()}


def _error(region: Region, layer: Node, results: Sequence[Values], wanted: Array) -> float:
    """What the source would be off by if its layer gave these results; infinite where that can't be computed."""
    graph = region.source.graph
    shapes = [tensor.shape if (tensor := graph.tensors.get(name)) else None for name in layer.outputs]
    given = {
        name: values.reshape(shape)
        for name, shape, values in zip(layer.outputs, shapes, results, strict=False)
        if shape is not None and math.prod(shape) == values.size
    }
    behind = [node for node in region.source.nodes if node is not layer]
    result = (compute(behind, given, graph) or {}).get(region.source.end)
    return (
        math.inf
        if result is None or result.size != wanted.size
        else relative_l2(wanted, result.reshape(wanted.shape))
    )
