"""What is done to a network's inputs before its first layer: a normalization that's lost, or added."""

from __future__ import annotations

import math

import numpy as np

from conrepair.diagnosis.localization.faces.numbers.parameters import compare_parameters
from conrepair.diagnosis.localization.faces.steps.folding import CHANNELWISE, affine
from conrepair.diagnosis.localization.faces.steps.functions import GRID
from conrepair.diagnosis.localization.faces.steps.steps import Paired, Step
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.layer_graph import LayerGraph, Node

_MOST = 4  # numbers: of colours, or one for all


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
    if np.abs(mean).max() > naming.SINGLE:
        lost.append(f"the mean {_listed(mean)} isn't subtracted from the inputs")
    if np.abs(deviation - 1).max() > naming.SINGLE:
        lost.append(f"{'they' if lost else 'the inputs'} aren't divided by {_listed(deviation)}")
    layers = " and ".join(f"`{name}`" for name in step.layers[::-1])
    return f"{' and '.join(lost)}, as by {layers} in the original" if lost else None


def prepared_in_weights(pairs: Paired, graph: LayerGraph) -> str | None:
    """What the target does to its inputs by a factor in its first weights, where the source has a step of its own.

    Args:
        pairs: Steps of both sides; the source's first ones may have no partner.
        graph: The source's.

    Returns:
        In words; None where weights have no such factor.
    """
    lost = next((one for one, two in pairs if one is not None and two is None and _numbers(one) is not None), None)
    if lost is None or lost_preparation(lost, graph) is None:
        return None
    for one, two in pairs:
        ours, theirs = (None if step is None else step.parameters.get("weight") for step in (one, two))
        if one is not None and two is not None and ours is not None and theirs is not None:
            found = compare_parameters(ours, theirs)
            if found is None or not found.plain or not found.words.startswith("scaled by "):
                return None
            right, held = ours.numpy().astype(np.float64), theirs.numpy().astype(np.float64)
            factor = float(np.vdot(right, held) / np.vdot(right, right))
            told = f"contain a factor of {factor:.3g}, as if inputs were divided by {1 / factor:.4g}"
            return f"the weights of `{two.layer}` {told}"
    return None


def _numbers(step: Step) -> tuple[np.ndarray, np.ndarray] | None:
    """The factor and the offset of each channel."""
    if step.op == "Function" and step.values is not None:
        factor, offset = np.polyfit(GRID, step.values, 1)
        straight = np.allclose(factor * GRID + offset, step.values, rtol=naming.SAME, atol=naming.SAME)
        return (np.array([factor]), np.array([offset])) if straight and factor else None
    held = step.parameters.get("factor" if step.op == CHANNELWISE else "operand")
    found = None if held is None else affine(step, math.prod(held.shape))
    return found if found is not None and found[0].size <= _MOST else None


def _listed(values: np.ndarray) -> str:
    numbers = ", ".join(f"{value:.4g}" for value in values)
    return f"[{numbers}]" if len(values) > 1 else numbers


def before_weights(step: Step, graph: LayerGraph) -> bool:
    """Whether a step reads nothing but the network's inputs."""
    return not any(
        "table" in node.parameters or (node.op != "Gather" and _has_weights(node))
        for node in graph.between((), filter(None, step.inputs))
    )


def _has_weights(node: Node) -> bool:
    return any(role in node.parameters for role in ("weight", "W"))


def feeds_weights(step: Step, graph: LayerGraph) -> bool:
    """Whether a layer with weights reads what a step gives, or what's made of that alone: a mask joins other data."""
    made = [*step.outputs]
    for name in made:  # grows
        for node in graph.consumers.get(name, ()):
            if _has_weights(node):
                return True
            if {*filter(None, node.inputs)} - {name} <= graph.unfed:
                made += (item for item in node.outputs if item not in made)
    return False
