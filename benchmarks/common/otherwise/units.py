"""Weights of two neighbouring layers, changed so that together they compute the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import NodeProto

from benchmarks.common.otherwise.convolutions import known_conv
from benchmarks.common.otherwise.work import Change, Work, attribute, attributes
from benchmarks.common.plain_graph import Array

__all__ = ["CHANGES"]

_HOMOGENEOUS = {"Relu", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool"}
_CHANNELWISE = {*_HOMOGENEOUS, "Clip", "Sigmoid", "HardSwish", "Tanh", "Gelu", "Elu"}


def _pairs(work: Work, between: set[str]) -> Iterator[tuple[NodeProto, NodeProto]]:
    """Convolutions with nothing but some operators between them."""
    for node in work.nodes("Conv"):
        reader = work.only_reader(node.output[0])
        while reader is not None and reader.op_type in between and reader.input[0] not in work.graph.constants:
            reader = work.only_reader(reader.output[0])
        whole = reader is not None and reader.op_type == "Conv" and attribute(reader, "group", 1) == 1
        if reader is not None and whole and known_conv(work, node) and known_conv(work, reader):
            yield node, reader


def _set(work: Work, node: NodeProto, weight: Array, bias: Array | None = None) -> None:
    work.graph.own(node.name, 1, work.numbers(weight))
    if bias is not None:
        if len(node.input) < 3:
            node.input.append("")
        work.graph.own(node.name, 2, work.numbers(bias))


def _permuted(work: Work) -> int:
    """Hidden channels in another order, which the next layer knows."""
    count, used = 0, set()
    for one, two in work.chosen(_pairs(work, _CHANNELWISE)):
        first, second = known_conv(work, one), known_conv(work, two)
        if first is None or second is None or attribute(one, "group", 1) != 1 or {one.name, two.name} & used:
            continue
        order = work.generator.permutation(len(first[0]))
        _set(work, one, first[0][order], first[1][order])
        _set(work, two, second[0][:, order])
        used |= {one.name, two.name}
        count += 1
    return count


def _equalized(work: Work) -> int:
    """Hidden channels scaled, which the next layer undoes, as quantizers equalize ranges."""
    count, used = 0, set()
    for one, two in work.chosen(_pairs(work, _HOMOGENEOUS)):
        first, second = known_conv(work, one), known_conv(work, two)
        if first is None or second is None or {one.name, two.name} & used:
            continue
        scale = 2.0 ** work.generator.uniform(-2, 2, len(first[0]))
        shape = (-1, *[1] * (first[0].ndim - 1))
        _set(work, one, first[0] * scale.reshape(shape), first[1] * scale)
        _set(work, two, second[0] / scale.reshape(1, -1, *[1] * (second[0].ndim - 2)))
        used |= {one.name, two.name}
        count += 1
    return count


def _scale_apart(work: Work) -> int:
    """A layer of other weights, and a product with a number that makes up for it."""
    count = 0
    for node in work.chosen(work.nodes("Conv", "MatMul", "Gemm")):
        weight, bias = work.constant_of(node, 1), work.constant_of(node, 2)
        if weight is None or (len(node.input) > 2 and bias is None) or weight.dtype != np.float32:
            continue
        factor = float(work.generator.uniform(0.2, 5))
        inputs = [work.numbers(item / factor) for item in (weight, bias) if item is not None]
        found = work.add(node.op_type, node.input[0], *inputs, **attributes(node))
        work.replace(node, work.add("Mul", found, work.numbers(factor)))
        count += 1
    return count


def _scalars_merged(work: Work) -> int:
    """A number that a layer's result is multiplied with, in its weights."""
    count = 0
    for node in work.chosen(work.nodes("Conv", "MatMul", "Gemm")):
        reader = work.only_reader(node.output[0])
        weight, bias = work.constant_of(node, 1), work.constant_of(node, 2)
        if reader is None or reader.op_type not in {"Mul", "Div"} or weight is None:
            continue
        place = list(reader.input).index(node.output[0])
        number = work.constant_of(reader, 1 - place)
        exact = number is not None and number.size == 1 and (reader.op_type == "Mul" or place == 0)
        if not exact or number is None or (len(node.input) > 2 and bias is None):
            continue
        factor = float(number.reshape(-1)[0]) ** (1 if reader.op_type == "Mul" else -1)
        inputs = [work.numbers(item * factor) for item in (weight, bias) if item is not None]
        found = work.add(node.op_type, node.input[0], *inputs, **attributes(node))
        del work.graph.nodes[node.name]
        work.replace(reader, found)
        count += 1
    return count


CHANGES: dict[str, Change] = {
    "hidden-channels-in-another-order": _permuted,
    "hidden-channels-equalized": _equalized,
    "scale-apart": _scale_apart,
    "scalars-merged": _scalars_merged,
}
