"""Activations in few bits whose zero point another place in the file, or the source, contradicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from conrepair.diagnosis.localization.faces.differences import pairings_of
from conrepair.diagnosis.localization.faces.region import Finding, Region
from conrepair.diagnosis.localization.judge.quantization import same_values
from conrepair.diagnosis.localization.judge.quantized_rules import BELOW_ZERO, OTHER_GRID
from conrepair.ground.data.tensor_spec import Quantization
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Tensor


@dataclass(frozen=True)
class Grids:
    """A tensor of the target, and what its integers should stand for.

    Attributes:
        tensor: Its name.
        right: Scales and zero points that it may have had, the likeliest first.
        words: For a person, what contradicts the one that it has.
        rule: The same without names.
    """

    tensor: str
    right: tuple[Quantization, ...]
    words: str
    rule: str


def contradicted(region: Region) -> Iterator[Grids]:
    """Tensors of a region whose scale or zero point can't be right.

    All that write and read the same integers must take them for the same numbers. And where the source has a ReLU
    and the target none, the range of its integers stands for it: that begins at zero, which is the lowest integer.
    """
    graph = region.target.graph
    clipped = _clipped(region)
    names = dict.fromkeys(name for node in region.target.nodes for name in (*node.inputs, *node.outputs))
    for name in dict.fromkeys((region.target.end, *names)):
        tensor = graph.tensors.get(name)
        if tensor is None or tensor.quantization is None:
            continue
        if tensor.others:
            each = (tensor.quantization, *tensor.others)
            said = ", ".join(f"{item.scale:.4g} and {item.zero_point}" for item in each)
            words = f"the integers of `{_layer(name, graph)}` have more than one scale and zero point: {said}"
            yield Grids(name, each, words, OTHER_GRID)
        elif name in clipped and (right := _from_zero(tensor)) is not None:
            low, held = tensor.held_by(tensor.quantization)[0], tensor.quantization.zero_point
            words = (
                f"the quantization range of `{_layer(name, graph)}` stands for a ReLU, but begins at {low:.3g}: its "
                f"zero point is {held} and should be {right.zero_point}"
            )
            yield Grids(name, (right,), words, BELOW_ZERO)


def zero_point_findings(region: Region) -> Iterator[Finding]:
    """What is said of such tensors; nothing else in a region is told by what they make of values."""
    for item in contradicted(region):
        layers = (_layer(item.tensor, region.target.graph), *region.target.layers)
        cause = f"grid of {item.tensor}"
        yield Finding(Kind.PRECISION, item.words, region.source.layers, layers, cause, rule=item.rule)


def _from_zero(tensor: Tensor) -> Quantization | None:
    """The grid of a range that should begin at zero, and begins a little lower; None where it does."""
    held = tensor.stored
    if held is None or tensor.quantization is None:
        return None
    lowest = int(np.iinfo(tensor.dtype).min)
    little = 0 < -held[0] < held[1] / 2  # not as in a range that is meant to have zero in its middle
    return Quantization(tensor.quantization.scale, lowest) if little else None


def _clipped(region: Region) -> frozenset[str]:
    """The target's integers whose range is all that's there of a ReLU of the source."""
    ours, theirs = region.source.graph, region.target.graph
    paired = {region.target.end: region.source.end}
    for pairs in pairings_of(region.source, region.target):
        same = [(one, two) for one, two in pairs if one is not None and two is not None and one.op == two.op]
        paired |= {two.outputs[0]: one.outputs[0] for one, two in same if two.outputs[0] not in paired}
        break  # as they're written
    made = {name for node in ours.nodes if is_relu(node) for name in node.outputs}
    found = [name for name, source in paired.items() if source in made or _is_clipped_behind(source, ours)]
    # What a begin holds is given: whether it's clipped behind it is the region's.
    begins = {name: region.partners[name] for name in region.target.begins if name in region.partners}
    found += [name for name, source in begins.items() if _is_clipped_behind(source, ours)]
    integers = {same for name in found for same in same_values(theirs, name)}
    return frozenset(name for name in integers if not any(map(is_relu, _around(name, theirs))))


def _is_clipped_behind(name: str, graph: LayerGraph) -> bool:
    """Whether a ReLU is all that reads a tensor."""
    readers = graph.consumers.get(name, ())
    return len(readers) == 1 and name not in graph.outputs and is_relu(readers[0])


def _around(name: str, graph: LayerGraph) -> Iterator[Node]:
    """What gives a tensor its numbers, and what takes them, but for what stores them."""
    ahead = [graph.producers.get(name), *graph.consumers.get(name, ())]
    for node in filter(None, ahead):
        if node.op == "QuantizeLinear":
            ahead.append(graph.producers.get(node.inputs[0]))
        elif node.op == "DequantizeLinear":
            ahead += graph.consumers.get(node.outputs[0], ())
        yield node


def is_relu(node: Node) -> bool:
    """Whether a node gives nothing below zero, and begins there."""
    return node.op == "Relu" or (node.op == "Clip" and node.attributes.get("min") == 0)


def _layer(name: str, graph: LayerGraph) -> str:
    """What computes a tensor's numbers: not what stores them."""
    producer = graph.made_by(name, lambda node: node.op == "QuantizeLinear" and node.inputs[0] in graph.producers)
    return name if producer is None else producer.layer
