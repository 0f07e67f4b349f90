"""What a quantization gives away, or says otherwise than its kernels: no fault, and worth knowing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from conrepair.diagnosis.localization.faces.numbers.zero_points import is_relu
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.judge.quantization import ranges_of
from conrepair.diagnosis.localization.judge.saturation import begins_at_zero
from conrepair.diagnosis.localization.numbers import few_bits
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Parameter
from conrepair.ground.runtime.words import percent, shortened

_NAMED, _NAME = 3, 60


def quantization_notes(graph: LayerGraph, judged: Sequence[Judged]) -> tuple[str, ...]:
    """Which layers tell nothing, and what other scales would win, each with the layers.

    Ranges that are much wider than the values, weights with one scale whose channels differ much in size, ranges on
    both sides of zero for values of one sign, or begun a little below it, and biases in other steps than those of
    the product that they're added to.

    Args:
        graph: Of a quantized target.
        judged: All cuts.
    """
    wide: list[str] = []
    signed: list[str] = []
    above: list[str] = []
    ranges = ranges_of(graph)
    for item in judged:
        name, error = item.cut.pair.target, item.cut.introduced
        producer = graph.producers.get(name)
        if name not in ranges or not error.peak or producer is None:
            continue
        low, high = ranges[name]
        if max(abs(low), high) > few_bits.WIDE * error.peak:
            wide.append(f"{_called(producer)} ({low:.3g} to {high:.3g}, values up to {error.peak:.3g})")
        elif is_relu(producer) and not begins_at_zero((low, high)):
            (signed if -low > high / 2 else above).append(_called(producer))
    gains = [(gain, node) for node in graph.nodes if (gain := _gain(node)) >= few_bits.GAIN]
    per_channel = [f"{_called(node)} ({gain:.1f} times)" for gain, node in sorted(gains, key=lambda item: -item[0])]
    biases = [words for node in graph.nodes if (words := _other_bias(node, graph))]
    found = (
        ("quantization ranges much wider than the values, three bits or more unused", wide),
        ("one scale for the whole weight, where a scale for each channel would give a smaller error", per_channel),
        ("quantization ranges on both sides of zero for values that are never negative, half of them unused", signed),
        ("zero points above the lowest value for values that are never negative, some of them unused", above),
        ("scales of biases that aren't the input's scale times the weight's", biases),
    )
    return (*_untold(graph, judged), *(f"{words}: {_listed(names)}" for words, names in found if names))


def _untold(graph: LayerGraph, judged: Sequence[Judged]) -> Iterator[str]:
    """Layers that passed with an error that a fault may be as well as their quantization."""
    found = [item for item in judged if item.cut.tells and not item.tells]
    if found:
        made = [(graph.producers.get(item.cut.pair.target), item) for item in found]
        names = [f"{_called(node)} ({percent(item.introduced)})" for node, item in made if node is not None]
        most = max(item.allowed for item in found)
        layers = "1 layer is" if len(found) == 1 else f"{len(found)} layers are"
        yield (
            f"can't tell whether {layers} right, as quantization alone may make an error of {percent(most)} there: "
            f"{_listed(names)}. Try your own data, or more of it, or check the scales there"
        )


def _gain(node: Node) -> float:
    """How many times smaller a weight's rounding errors would be with a scale for each channel."""
    weight = node.parameters.get("weight")
    if weight is None or not weight.bits or weight.bits > 8 or len(weight.scales) != 1:
        return 1.0
    values = weight.numpy().astype(np.float64)
    if values.ndim < 2:
        return 1.0
    axis = values.ndim - 1 if node.op == "MatMul" else 0
    peaks = np.abs(values).max(axis=tuple(place for place in range(values.ndim) if place != axis))
    steps = peaks / (2 ** (weight.bits - 1) - 1)
    mean = float(np.sqrt(np.mean(np.square(steps))))
    return weight.scales[0] / mean if mean else 1.0


def _other_bias(node: Node, graph: LayerGraph) -> str:
    bias, weight = node.parameters.get("bias"), node.parameters.get("weight")
    read = graph.tensors.get(node.inputs[0]) if node.inputs else None
    producer = graph.producers.get(read.name) if read is not None else None
    if read is not None and read.quantization is None and producer is not None and producer.op == "DequantizeLinear":
        read = graph.tensors[producer.inputs[0]]
    if not _in_steps(bias) or not _in_steps(weight) or read is None or read.quantization is None:
        return ""
    right = read.quantization.scale * np.asarray(weight.scales if weight else ())
    held = np.asarray(bias.scales if bias else ())
    if right.size not in {1, held.size} or np.all(np.abs(held - right) <= few_bits.SAME_STEP * right):
        return ""
    return f"{_called(node)} ({held.max():.3g} for {right.max():.3g})"


def _in_steps(parameter: Parameter | None) -> bool:
    return parameter is not None and bool(parameter.bits) and bool(parameter.scales)


def _called(node: Node) -> str:
    return f"`{shortened(node.layer, _NAME)}`"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
