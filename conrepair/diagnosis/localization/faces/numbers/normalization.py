"""Whether weights with a folded normalization differ as another epsilon, or lost statistics, would make them."""

from __future__ import annotations

import numpy as np

from conrepair.diagnosis.localization.faces.numbers.parameters import ParameterDifference, stored_as
from conrepair.diagnosis.localization.faces.steps.folding import CHANNELWISE
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node


def explain_folding(source: Step, target: Step, role: str) -> tuple[Kind, str, str] | None:
    """Explain a difference of weights by the normalization that one side has folded into them.

    Args:
        source: With a normalization among its nodes.
        target: The step that stands for it.
        role: Of the parameter that differs.

    Returns:
        The kind of fault, its words, and those that are the same for other layers; None when the normalization
        doesn't explain it.
    """
    nodes = [node for node in source.nodes if node.op == "BatchNormalization"]
    if (
        len(nodes) != 1
        or role not in {"weight", "bias", "factor", "offset"}
        or any(node.op == "BatchNormalization" for node in target.nodes)
    ):
        return None
    if target.op != source.op or not {"weight", "factor"} & target.parameters.keys() & source.parameters.keys():
        return None
    if target.op not in {"Conv", "MatMul", CHANNELWISE}:
        return None
    node = nodes[0]
    variance = node.parameters["variance"].numpy().astype(np.float64)
    epsilon = float(node.attributes.get("epsilon") or 0.0)  # type: ignore[arg-type]
    factors = _factors(source, target)
    if factors is None or factors.shape != variance.shape or not (factors > 0).all():
        return None
    deviations = (variance + epsilon) ** -0.5
    sums = (variance + epsilon) / factors**2
    other, rounding = sums - variance, naming.SINGLE * sums
    common = float(other[np.argmin(rounding)])  # where the variance hides it least
    if (
        (np.abs(other - common) <= naming.ALMOST * abs(common) + 1e-2 * epsilon + rounding).all()
        and common > 0
        and abs(common - epsilon) > 1e-2 * epsilon + 2 * rounding.min()
    ):
        found = Kind.HYPERPARAMETERS, f"epsilon of {{}} is {common:.3g}, in the original {epsilon:g}"
    elif np.allclose(factors, deviations, naming.ALMOST) and not np.allclose(deviations, 1.0, naming.ALMOST):
        found = Kind.PARAMETERS, "the variance of {} is used as a standard deviation"
    else:
        return None
    return found[0], found[1].format(f"`{node.layer}`"), found[1].format(node.native)


def lost_statistics(source: Step, target: Step, graph: LayerGraph) -> tuple[Node, str] | None:
    """A normalization of the target whose numbers are all one, where the network's other normalizations have many.

    Args:
        source: With that normalization folded into its weights.
        target: With the normalization among its nodes.
        graph: Of the target.

    Returns:
        The normalization, and what's wrong with it in words.
    """
    if any(node.op == "BatchNormalization" for node in source.nodes):
        return None
    for node in target.nodes:
        others = [other for other in graph.nodes if other.op == "BatchNormalization" and other is not node]
        if node.op != "BatchNormalization" or not others:
            continue
        for role, parameter in node.parameters.items():
            held = parameter.numpy()
            spread = [np.ptp(other.parameters[role].numpy()) > 0 for other in others if role in other.parameters]
            if held.size > 1 and np.ptp(held) == 0 and spread and all(spread):
                return node, f"the {role} of `{node.layer}` is {held.flat[0]:g} everywhere"
    return None


def lacks_normalization(source: Step, target: Step, graph: LayerGraph) -> bool:
    """Whether a layer's weights are the source's but for a factor per channel, and the others are normalized.

    Args:
        source: With a normalization folded into its weights, perhaps.
        target: Without one among its nodes.
        graph: Of the target.
    """
    if target.op not in {"Conv", "MatMul"} or source.op != target.op or "weight" not in source.parameters:
        return False
    if any(node.op == "BatchNormalization" for node in (*source.nodes, *target.nodes)):
        return False
    others = [node for node in graph.nodes if node.op == target.op and node is not target.nodes[0]]
    read = [{reader.op for reader in graph.consumers.get(node.outputs[0], ())} for node in others]
    normalized = sum("BatchNormalization" in operators for operators in read)
    if not normalized or 2 * normalized < len(others):
        return False
    factors = _factors(source, target)
    if factors is None or not (factors > 0).all():
        return False
    return not bool(np.ptp(factors) <= naming.ALMOST * factors.max())


def rounded_before_folding(
    difference: ParameterDifference, source: Step, target: Step, role: str
) -> ParameterDifference:
    """A difference, or what explains it: that the target's file has the weights in fewer bits."""
    own, given = (step.nodes[0].parameters.get(role) for step in (target, source))
    if len(target.nodes) < 2 or own is None or given is None or difference.kind is Kind.PRECISION:
        return difference
    kept = stored_as(own.numpy())
    if kept is None or stored_as(given.numpy()) is not None:
        return difference
    return ParameterDifference(Kind.PRECISION, f"rounded to {kept}", difference.relative)


def _factors(source: Step, target: Step) -> np.ndarray | None:
    """What each output channel's weights, or channel's factor, are multiplied by."""
    if source.op == CHANNELWISE:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(target.parameters["factor"].numpy() / source.parameters["factor"].numpy())
    axis = 0 if source.op == "Conv" else -1
    one, two = (step.parameters["weight"].numpy().astype(np.float64) for step in (source, target))
    if one.shape != two.shape:
        return None
    first, second = (np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1) for array in (one, two))
    squares = np.einsum("ij,ij->i", first, first)
    if not squares.all():
        return None
    factors = np.einsum("ij,ij->i", first, second) / squares
    if np.linalg.norm(second - factors[:, None] * first) > naming.ALMOST * np.linalg.norm(second):
        return None
    return np.asarray(factors)
