"""A bias that one side has in its layer, and the other as an Add somewhere behind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from conrepair.diagnosis.localization.faces.region import Region
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.ground.graph.layer_graph import LayerGraph, Node

_Pair = tuple[Step | None, Step | None]
_CHANNELS = {"Conv": 0, "MatMul": -1}


def with_whole_biases(pairs: Sequence[_Pair], graphs: tuple[LayerGraph, LayerGraph]) -> list[_Pair]:
    """Give an Add that only one side has to the layer that it's the bias of on the other side.

    It need not follow the layer: what a fault puts in between would hide it. And the other side's layer may have lost
    its bias, if it's of a sort that has one.

    Args:
        pairs: Of steps, None where only the other side has one.
        graphs: That they are from.
    """
    result = list(pairs)
    for side in (0, 1):
        biased = graphs[1 - side].with_bias
        for place, pair in enumerate(result):
            one, other = pair[side], pair[1 - side]
            channels = None if one is None or "bias" in one.parameters else _channels(one)
            if one is None or other is None or other.op != one.op or other.nodes[0].native not in biased:
                continue
            for later in range(place + 1, len(result)):
                added, nobody = result[later][side], result[later][1 - side]
                if nobody is None and added is not None and _is_bias(added, channels):
                    whole = _with_bias(one, added)
                    result[place] = (whole, other) if side == 0 else (other, whole)
                    del result[later]
                    break
    return result


def bias_lost_before(step: Step, region: Region) -> bool:
    """Whether a step that only the source has adds the bias of a layer that could have one in the target.

    Without it that layer computes what the source's does without it, so that it lies in front of the region.
    """
    theirs = {source: target for target, source in region.partners.items()}
    node = region.target.graph.producers.get(theirs.get(step.inputs[0], ""))
    if node is None or node.native not in region.target.graph.with_bias or not _is_bias(step, _channels(node)):
        return False
    bias = node.parameters.get("bias")
    return bias is None or not bias.numpy().any()


def _channels(layer: Step | Node) -> int | None:
    """How many results with a bias each a layer has; None for what has none."""
    axis, weight = _CHANNELS.get(layer.op), layer.parameters.get("weight")
    return None if axis is None or weight is None else weight.shape[axis]


def _is_bias(step: Step, channels: int | None) -> bool:
    operand = step.parameters.get("operand")
    return step.op == "Add" and operand is not None and math.prod(operand.shape) == channels


def _with_bias(step: Step, added: Step) -> Step:
    parameters = {**step.parameters, "bias": added.parameters["operand"]}
    return replace(step, parameters=parameters, nodes=(*step.nodes, *added.nodes))
