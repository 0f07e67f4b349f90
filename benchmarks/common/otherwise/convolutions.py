"""Convolutions written otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto

from benchmarks.common.otherwise.work import Change, Work, attribute, attributes
from benchmarks.common.plain_graph import Array

__all__ = ["CHANGES", "known_conv"]


def known_conv(work: Work, node: NodeProto) -> tuple[Array, Array] | None:
    """Weight and bias (zeros where it has none), if they're known."""
    weight, bias = work.constant_of(node, 1), work.constant_of(node, 2)
    if weight is None or (len(node.input) > 2 and bias is None):
        return None
    return weight, np.zeros(len(weight), np.float32) if bias is None else bias


def _batch_norm_folded(work: Work) -> int:
    count = 0
    for node in work.chosen(work.nodes("BatchNormalization")):
        maker = next((item for item in work.nodes("Conv") if item.output[0] == node.input[0]), None)
        numbers = [work.constant_of(node, place) for place in range(1, 5)]
        if maker is None or work.only_reader(maker.output[0]) is None or any(item is None for item in numbers):
            continue
        held = known_conv(work, maker)
        if held is None:
            continue
        scale, shift, mean, variance = (np.asarray(item, np.float64) for item in numbers)
        factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
        weight = held[0] * factor.reshape(-1, *[1] * (held[0].ndim - 1))
        inputs = work.numbers(weight), work.numbers((held[1] - mean) * factor + shift)
        work.replace(node, work.add("Conv", maker.input[0], *inputs, **attributes(maker)))
        count += 1
    return count


def _batch_norm_unfolded(work: Work) -> int:
    """A convolution without its bias, and a BatchNorm of drawn statistics behind it."""
    count = 0
    for node in work.chosen(work.nodes("Conv")):
        held = known_conv(work, node)
        if held is None:
            continue
        weight, bias = held
        size, draw = len(weight), work.generator
        scale, mean, variance = draw.uniform(0.5, 1.5, size), draw.normal(0, 0.5, size), draw.uniform(0.3, 3, size)
        factor = scale / np.sqrt(variance + 1e-5)
        plain = weight / factor.reshape(-1, *[1] * (weight.ndim - 1))
        found = work.add("Conv", node.input[0], work.numbers(plain), **attributes(node))
        statistics = [work.numbers(item) for item in (scale, bias + mean * factor, mean, variance)]
        work.replace(node, work.add("BatchNormalization", found, *statistics, epsilon=1e-5))
        count += 1
    return count


def _bias_apart(work: Work) -> int:
    """A convolution's bias as a sum of its own."""
    count = 0
    for node in work.chosen(work.nodes("Conv")):
        weight, bias = work.constant_of(node, 1), work.constant_of(node, 2)
        if weight is None or bias is None:
            continue
        found = work.add("Conv", node.input[0], node.input[1], **attributes(node))
        work.replace(node, work.add("Add", found, bias.reshape(-1, *[1] * (weight.ndim - 2))))
        count += 1
    return count


def _conv_split(work: Work) -> int:
    """Two convolutions of some output channels each, and what they give together."""
    count = 0
    for node in work.chosen(node for node in work.nodes("Conv") if attribute(node, "group", 1) == 1):
        held = known_conv(work, node)
        if held is None or len(held[0]) < 2:
            continue
        cut = int(work.generator.integers(1, len(held[0])))
        parts = [
            work.add("Conv", node.input[0], held[0][rows], held[1][rows], **attributes(node))
            for rows in (slice(cut), slice(cut, None))
        ]
        work.replace(node, work.add("Concat", *parts, axis=1))
        count += 1
    return count


def _conv_of_input_halves(work: Work) -> int:
    """The sum of two convolutions of some input channels each."""
    count = 0
    for node in work.chosen(node for node in work.nodes("Conv") if attribute(node, "group", 1) == 1):
        held = known_conv(work, node)
        if held is None or held[0].shape[1] < 2:
            continue
        sizes = [held[0].shape[1] // 2, held[0].shape[1] - held[0].shape[1] // 2]
        first = work.add("Split", node.input[0], np.array(sizes, np.int64), outputs=2, axis=1)
        second = f"{first.removesuffix('0')}1"
        one = work.add("Conv", first, np.ascontiguousarray(held[0][:, : sizes[0]]), held[1], **attributes(node))
        two = work.add("Conv", second, np.ascontiguousarray(held[0][:, sizes[0] :]), **attributes(node))
        work.replace(node, work.add("Add", one, two))
        count += 1
    return count


def _conv_of_groups(work: Work) -> int:
    """A convolution in groups as one for each."""
    count = 0
    for node in work.chosen(node for node in work.nodes("Conv") if 1 < attribute(node, "group", 1) <= 16):
        held, groups = known_conv(work, node), attribute(node, "group", 1)
        if held is None:
            continue
        size = held[0].shape[1]
        pieces = work.add("Split", node.input[0], np.array([size] * groups, np.int64), outputs=groups, axis=1)
        rows = len(held[0]) // groups
        rest = attributes(node) | {"group": 1}
        parts = [
            work.add(
                "Conv",
                f"{pieces.removesuffix('0')}{place}",
                held[0][place * rows : (place + 1) * rows],
                held[1][place * rows : (place + 1) * rows],
                **rest,
            )
            for place in range(groups)
        ]
        work.replace(node, work.add("Concat", *parts, axis=1))
        count += 1
    return count


def _conv_of_more_dimensions(work: Work) -> int:
    """A convolution of a series as one of pictures with one row."""
    count = 0
    for node in work.chosen(work.nodes("Conv")):
        held = known_conv(work, node)
        if held is None or held[0].ndim != 3:
            continue
        pads = attribute(node, "pads", [0, 0])
        more: dict[str, Any] = {
            "pads": [0, pads[0], 0, pads[1]],
            "strides": [1, *attribute(node, "strides", [1])],
            "dilations": [1, *attribute(node, "dilations", [1])],
            "group": attribute(node, "group", 1),
        }
        wide = work.add("Unsqueeze", node.input[0], axes=[2])
        found = work.add("Conv", wide, np.ascontiguousarray(held[0][:, :, None]), held[1], **more)
        work.replace(node, work.add("Squeeze", found, axes=[2]))
        count += 1
    return count


def _pointwise_by_product(work: Work) -> int:
    """A convolution of single pixels as a product of what lies channels last."""
    count = 0
    for node in work.chosen(work.nodes("Conv")):
        held = known_conv(work, node)
        plain = all(attribute(node, name, [1, 1]) == [1, 1] for name in ("strides", "dilations"))
        plain = plain and not any(attribute(node, "pads", [0])) and attribute(node, "group", 1) == 1
        if held is None or held[0].shape[2:] != (1, 1) or not plain:
            continue
        turned = work.add("Transpose", node.input[0], perm=[0, 2, 3, 1])
        found = work.add("MatMul", turned, np.ascontiguousarray(held[0][:, :, 0, 0].T))
        work.replace(node, work.add("Transpose", work.add("Add", found, held[1]), perm=[0, 3, 1, 2]))
        count += 1
    return count


def _pads_in(work: Work) -> int:
    """Padding by zeros as an attribute of the convolution behind it."""
    count = 0
    for node in work.chosen(work.nodes("Pad")):
        amounts, reader = work.constant_of(node, 1), work.only_reader(node.output[0])
        number = work.constant_of(node, 2)
        zero = number is None or not number.any()
        plain = attribute(node, "mode", b"constant") == b"constant" and zero and len(node.input) < 4
        if amounts is None or not plain or reader is None or reader.op_type != "Conv":
            continue
        half = len(amounts) // 2
        if amounts[:2].any() or amounts[half : half + 2].any() or (amounts < 0).any():
            continue
        more = [*amounts[2:half], *amounts[half + 2 :]]
        pads = [int(a + b) for a, b in zip(attribute(reader, "pads", [0] * len(more)), more, strict=True)]
        found = work.add("Conv", node.input[0], *reader.input[1:], **attributes(reader) | {"pads": pads})
        del work.graph.nodes[node.name]
        work.replace(reader, found)
        count += 1
    return count


CHANGES: dict[str, Change] = {
    "batch-norm-folded": _batch_norm_folded,
    "batch-norm-unfolded": _batch_norm_unfolded,
    "bias-apart": _bias_apart,
    "output-channels-apart": _conv_split,
    "input-channels-apart": _conv_of_input_halves,
    "groups-apart": _conv_of_groups,
    "series-as-pictures": _conv_of_more_dimensions,
    "pointwise-by-product": _pointwise_by_product,
    "pads-in-convolutions": _pads_in,
}
