"""Fold steps into the one that they are a part of elsewhere: pads, blocks, normalizations, factors and biases."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.ground.graph.layer_graph import Array, Attribute, Parameter
from conrepair.ground.graph.operators import OPERATORS

CHANNELWISE = "Channelwise"
"""A factor and an offset per channel as one step, whose parameters they are: a normalization, or the product and the
sum that stand for it."""

_WINDOWS = {"Conv", "MaxPool", "AveragePool"}
_LOWEST = -1e30  # what stands for minus infinity, that no value is smaller than
_AFFINE = ("arithmetic.sum", "arithmetic.product")  # families
LINEAR = {"Conv": 0, "ConvTranspose": 1, "MatMul": -1}
"""Layers of sums of products, and which axis of their weights is the results'."""

Fold = Callable[[Step, Step], Step | None]
"""Makes one of a step and its only reader; None where they aren't one."""

Affine = tuple[Array, Array]
"""A factor and an offset for each channel, in float64."""


def fold_pad(first: Step, second: Step) -> Step | None:
    """What a Pad puts in front of a window is its pads, where the window would take the same for them."""
    pads, own = first.attributes.get("pads"), second.attributes.get("pads")
    if first.op != "Pad" or first.attributes.get("mode") != "constant" or second.op not in _WINDOWS:
        return None
    if not isinstance(pads, tuple) or not isinstance(own, tuple):
        return None
    value = first.attributes.get("value")
    number = float(value) if isinstance(value, int | float) else 0.0
    attributes = dict(second.attributes)
    if second.op == "MaxPool":
        if number > _LOWEST:
            return None
    elif number:
        return None
    if second.op == "AveragePool":
        if any(own):
            return None
        attributes["count_include_pad"] = True
    rank = len(pads) // 2
    spatial = list(range(1, rank - 1)) if second.channels_last else list(range(2, rank))
    outer = [axis for axis in range(rank) if axis not in spatial]
    if any(pads[axis] or pads[axis + rank] for axis in outer) or len(own) != 2 * len(spatial):
        return None
    added = _integers([pads[axis] for axis in spatial] + [pads[axis + rank] for axis in spatial])
    if any(size < 0 for size in added):
        return None  # what's cut off isn't there for the window's own pads to bring back
    together = tuple(a + b for a, b in zip(added, _integers(own), strict=True))
    return replace(
        second, attributes={**attributes, "pads": together}, nodes=(*second.nodes, *first.nodes), inputs=first.inputs
    )


def fold_batches(first: Step, second: Step) -> Step | None:
    """A plain convolution of blocks as pictures of their own is one with dilations."""
    if first.op == "SpaceToBatch" and second.op == "Conv":
        plain = not any(_integers(_numbers(second, "pads"))) and set(_numbers(second, "strides")) == {1}
        if not plain or set(_numbers(second, "dilations")) != {1}:
            return None
        attributes = {"dilations": first.attributes["block"], "pads": first.attributes["pads"]}
        return _joined(first, second, "BlockConv", attributes)
    if first.op == "BlockConv" and second.op == "BatchToSpace":
        if first.attributes["dilations"] != second.attributes["block"]:
            return None
        crops = _integers(_numbers(second, "crops"))
        pads = tuple(pad - crop for pad, crop in zip(_integers(_numbers(first, "pads")), crops, strict=True))
        return replace(_joined(first, second, "Conv", {"pads": pads}), channels_last=first.channels_last)
    return None


def _joined(first: Step, second: Step, op: str, changed: Mapping[str, Attribute]) -> Step:
    """Two steps as the convolution that one of them is."""
    layer, other = (second, first) if second.op == "Conv" else (first, second)
    return replace(
        layer,
        op=op,
        attributes={**layer.attributes, **changed},
        nodes=(*layer.nodes, *other.nodes),
        inputs=first.inputs,
        outputs=second.outputs,
    )


def _numbers(step: Step, name: str) -> tuple[object, ...]:
    value = step.attributes.get(name)
    return value if isinstance(value, tuple) else ()


def _integers(values: Iterable[object]) -> list[int]:
    return [value for value in values if isinstance(value, int)]


def fold_linear(first: Step, second: Step) -> Step | None:
    """A factor and an offset per output channel, behind a layer with weights, are its weights and bias."""
    if first.op not in LINEAR or "weight" not in first.parameters:
        return None
    found = affine_of(second, first)
    if found is None:
        return None
    factor, offset = found
    axis = LINEAR[first.op]
    weight, bias = first.parameters["weight"], first.parameters.get("bias")
    channels = _channels(first)

    def scaled_weight() -> Array:
        array = weight.numpy()
        if first.op == "ConvTranspose" and factor.size not in (1, array.shape[1]):
            return _by_group(array, factor)
        shape = [1] * array.ndim
        shape[axis] = factor.size
        return np.asarray(array * factor.reshape(shape))

    def scaled_bias() -> Array:
        start = np.zeros(channels) if bias is None else bias.numpy()
        return np.asarray(start * factor + offset)

    new = {
        "weight": Parameter(weight.name, weight.shape, "float32", scaled_weight),
        "bias": Parameter("" if bias is None else bias.name, (channels,), "float32", scaled_bias),
    }
    return replace(
        first, parameters={**first.parameters, **new}, nodes=(*first.nodes, *second.nodes), outputs=second.outputs
    )


def _by_group(weight: Array, factor: Array) -> Array:
    """Scale [in, out / group, ...] by a factor for each output."""
    groups = factor.size // weight.shape[1]
    blocks = weight.reshape(groups, -1, *weight.shape[1:])
    factors = factor.reshape(groups, 1, weight.shape[1], *[1] * (weight.ndim - 2))
    return np.asarray((blocks * factors).reshape(weight.shape))


def _channels(step: Step) -> int:
    shape = step.parameters["weight"].shape
    if step.op == "ConvTranspose":
        return int(shape[1]) * int(step.attributes.get("group") or 1)  # type: ignore[arg-type]
    return int(shape[LINEAR[step.op]])


def affine_of(step: Step, first: Step) -> Affine | None:
    """The factor and offset per channel that a step behind a layer is; None when it isn't that."""
    channels, operand = _channels(first), step.parameters.get("operand")
    shape = () if operand is None else operand.shape
    if math.prod(shape) > 1 and not _along_channels(shape, first, channels):
        return None
    return affine(step, channels)


def affine(step: Step, channels: int) -> Affine | None:
    """The factor and offset that a step is, for so many channels; None when it isn't that."""
    parameters = step.parameters
    if step.op == CHANNELWISE:
        return parameters["factor"].numpy(), parameters["offset"].numpy()
    one, zero = np.ones(channels), np.zeros(channels)
    if step.op == "BatchNormalization" and not step.attributes.get("training_mode"):
        epsilon = float(step.attributes.get("epsilon") or 0.0)  # type: ignore[arg-type]
        held = {role: parameter.numpy().astype(np.float64) for role, parameter in parameters.items()}
        factor = held.get("scale", one) / np.sqrt(held["variance"] + epsilon)
        return factor, held.get("bias", zero) - held["mean"] * factor
    operand, record = parameters.get("operand"), OPERATORS.get(step.op)
    if operand is None or record is None or record.family not in _AFFINE or step.attributes.get("constant_first"):
        return None
    if math.prod(operand.shape) not in (1, channels):
        return None
    values = np.broadcast_to(operand.numpy().astype(np.float64).reshape(-1), (channels,))
    with np.errstate(divide="ignore", invalid="ignore"):
        offset = record.compute(zero, values)
        return record.compute(one, values) - offset, offset


def _along_channels(shape: tuple[int, ...], step: Step, channels: int) -> bool:
    """Whether a constant of as many numbers as channels is broadcast along them."""
    if step.op == "MatMul" or step.channels_last:
        return shape[-1] == channels
    rank = len(step.parameters["weight"].shape)
    return len(shape) >= rank - 1 and shape[len(shape) - rank + 1] == channels


def channelwise(step: Step) -> Step:
    """A normalization as a factor and an offset per channel; any other step as it is."""
    found = affine(step, math.prod(step.parameters["variance"].shape)) if "variance" in step.parameters else None
    return step if found is None else _scaling(step, found)


def fold_channelwise(first: Step, second: Step) -> Step | None:
    """One of two steps that scale or shift channels."""
    sizes = {math.prod(item.shape) for step in (first, second) for item in step.parameters.values()} - {1}
    if len(sizes) != 1 or not _along_one_axis(first, second):
        return None
    (channels,) = sizes
    one, two = (affine(step, channels) for step in (first, second))
    if one is None or two is None:
        return None
    both = one[0] * two[0], one[1] * two[0] + two[1]
    return _scaling(replace(first, nodes=(*second.nodes, *first.nodes), outputs=second.outputs), both)


def _along_one_axis(first: Step, second: Step) -> bool:
    """Whether operands that aren't single numbers have their channels along the same axis."""
    places = set()
    for step in (first, second):
        shape = step.parameters["operand"].shape if "operand" in step.parameters else ()
        places |= {len(shape) - axis for axis, size in enumerate(shape) if size != 1}
    return len(places) <= 1


def _scaling(step: Step, numbers: Affine) -> Step:
    parameters = {
        role: Parameter("", array.shape, "float32", functools.partial(np.asarray, array))
        for role, array in zip(("factor", "offset"), numbers, strict=True)
    }
    return replace(step, op=CHANNELWISE, attributes={}, parameters=parameters, values=None)
