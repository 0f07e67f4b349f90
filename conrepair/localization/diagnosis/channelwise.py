"""A factor and an offset per channel as one step: a normalization, or the product and the sum that stand for it."""

from __future__ import annotations

import math
from dataclasses import replace

from conrepair.graph.layer_graph import Array, Parameter
from conrepair.localization.diagnosis.folding import Affine, affine
from conrepair.localization.diagnosis.steps import Step

__all__ = ["CHANNELWISE", "channelwise", "fold_channelwise"]

CHANNELWISE = "Channelwise"
"""What such a step is called; its parameters are "factor" and "offset"."""


def channelwise(step: Step) -> Step:
    """A normalization as such a step; any other as it is."""
    if "variance" not in step.parameters:
        return step
    channels = math.prod(step.parameters["variance"].shape)
    own = affine(step, channels)
    return step if own is None else _made(step, own, channels)


def fold_channelwise(first: Step, second: Step) -> Step | None:
    """One of two that scale or shift channels."""
    sizes = {math.prod(item.shape) for step in (first, second) for item in step.parameters.values()} - {1}
    if len(sizes) != 1 or not _along_one_axis(first, second):
        return None
    (channels,) = sizes
    one, two = (_affine(step, channels) for step in (first, second))
    if one is None or two is None:
        return None

    def both() -> tuple[Array, Array]:
        (factor, offset), (later, last) = one(), two()
        return factor * later, offset * later + last

    return _made(replace(first, nodes=(*second.nodes, *first.nodes), outputs=second.outputs), both, channels)


def _affine(step: Step, channels: int) -> Affine | None:
    if step.op != CHANNELWISE:
        return affine(step, channels)

    def held() -> tuple[Array, Array]:
        return step.parameters["factor"].numpy(), step.parameters["offset"].numpy()

    return held


def _along_one_axis(first: Step, second: Step) -> bool:
    """Whether operands that aren't single numbers have their channels along the same axis."""
    places = set()
    for step in (first, second):
        shape = step.parameters["operand"].shape if "operand" in step.parameters else ()
        places |= {len(shape) - axis for axis, size in enumerate(shape) if size != 1}
    return len(places) <= 1


def _made(step: Step, read: Affine, channels: int) -> Step:
    parameters = {
        "factor": Parameter("", (channels,), "float32", lambda: read()[0]),
        "offset": Parameter("", (channels,), "float32", lambda: read()[1]),
    }
    return replace(step, op=CHANNELWISE, attributes={}, parameters=parameters, values=None)
