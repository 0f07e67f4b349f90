"""What is done to a network's inputs before its first layer: a normalization that's lost, or added."""

from __future__ import annotations

import math

import numpy as np

from conrepair.graph.layer_graph import LayerGraph
from conrepair.localize.diagnosis.channelwise import CHANNELWISE
from conrepair.localize.diagnosis.folding import affine
from conrepair.localize.diagnosis.steps import Step

__all__ = ["before_weights", "feeds_weights", "lost_preparation"]

_MOST = 4  # numbers: of colours, or one for all
_SAME = 1e-6


def lost_preparation(step: Step, graph: LayerGraph) -> str | None:
    """A factor and an offset of the inputs that only the source has, in words; None where a step is no such thing.

    Args:
        step: Of the source.
        graph: Its.
    """
    numbers = _numbers(step)
    if numbers is None or not (before_weights(step, graph) and feeds_weights(step, graph)):
        return None
    factor, offset = numbers
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, deviation = -offset / factor, 1 / factor
    if not (np.isfinite(mean).all() and np.isfinite(deviation).all()):
        return None
    lost = []
    if np.abs(mean).max() > _SAME:
        lost.append(f"the mean {_listed(mean)} isn't taken away from the inputs")
    if np.abs(deviation - 1).max() > _SAME:
        lost.append(f"{'they' if lost else 'the inputs'} aren't divided by {_listed(deviation)}")
    layers = " and ".join(f"`{name}`" for name in step.layers[::-1])
    return f"{' and '.join(lost)}, as by {layers} in the source" if lost else None


def _numbers(step: Step) -> tuple[np.ndarray, np.ndarray] | None:
    """The factor and the offset of each channel."""
    if step.op == CHANNELWISE:
        found = step.parameters["factor"].numpy(), step.parameters["offset"].numpy()
    else:
        operand = step.parameters.get("operand")
        read = None if operand is None else affine(step, math.prod(operand.shape))
        if read is None:
            return None
        found = read()
    return found if found[0].size <= _MOST else None


def _listed(values: np.ndarray) -> str:
    numbers = ", ".join(f"{value:.4g}" for value in values)
    return f"[{numbers}]" if len(values) > 1 else numbers


def before_weights(step: Step, graph: LayerGraph) -> bool:
    """Whether a step reads nothing but the network's inputs."""
    tensors, seen = list(step.inputs), set[str]()
    while tensors:
        name = tensors.pop()
        node = graph.producers.get(name)
        if node is None or name in seen:
            continue
        seen.add(name)
        if any(role in node.parameters for role in ("weight", "W", "table")) and node.op != "Gather":
            return False
        if node.op == "Gather" and "table" in node.parameters:
            return False
        tensors += filter(None, node.inputs)
    return True


def feeds_weights(step: Step, graph: LayerGraph) -> bool:
    """Whether a layer with weights reads what a step gives, or what's made of that alone: a mask joins other data."""
    tensors, seen = list(step.outputs), set[str]()
    while tensors:
        name = tensors.pop()
        for node in graph.consumers.get(name, ()) if name not in seen else ():
            if any(role in node.parameters for role in ("weight", "W")):
                return True
            others = {item for item in node.inputs if item and item != name}
            if not any(_varies(item, graph) for item in others):
                tensors += node.outputs
        seen.add(name)
    return False


def _varies(name: str, graph: LayerGraph) -> bool:
    """Whether a tensor depends on an input."""
    tensors, seen = [name], set[str]()
    while tensors:
        item = tensors.pop()
        if item in graph.inputs:
            return True
        node = graph.producers.get(item)
        if node is not None and item not in seen:
            tensors += filter(None, node.inputs)
        seen.add(item)
    return False
