"""What moves or holds values, written otherwise; and the order of sums."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from benchmarks.common.otherwise.work import Change, Work, attribute, attributes

__all__ = ["CHANGES"]

_POINTWISE = {
    *(
        "Relu",
        "Sigmoid",
        "Tanh",
        "Clip",
        "HardSwish",
        "HardSigmoid",
        "LeakyRelu",
        "Elu",
        "Exp",
        "Sqrt",
        "Gelu",
        "Erf",
    ),
    *("Neg", "Abs", "Softplus", "Identity"),
}
_LAST = {3: [0, 2, 1], 4: [0, 2, 3, 1]}
_FIRST = {3: [0, 2, 1], 4: [0, 3, 1, 2]}


def _identities(work: Work) -> int:
    """Behind nodes, as Identity or Dropout."""
    places = work.chosen(
        node for node in work.graph.nodes.values() if len(node.output) == 1 and node.output[0] in work.shapes
    )[:12]
    places = [node for node in places if node.output[0] not in work.graph.outputs]
    for node in places:
        value = node.output[0]
        # Dropout takes real numbers only; who computes a shape or a place stays as it is.
        real = node.op_type in {*_POINTWISE, "Conv", "Gemm", "MatMul", "Softmax"}
        same = work.add("Dropout" if real and work.generator.random() < 0.4 else "Identity", value)
        work.graph.redirect(value, same, but=[same.removesuffix("_output_0")])
    return len(places)


def _identities_gone(work: Work) -> int:
    count = 0
    for node in work.nodes("Identity", "Dropout"):
        if node.output[0] not in work.graph.outputs and not any(work.graph.readers(_second(node))):
            work.graph.bypass(node.name)
            count += 1
    return count


def _second(node: NodeProto) -> str:
    return node.output[1] if len(node.output) > 1 else "\0"


def _channels_last(work: Work) -> int:
    """Islands of what lies channels last, around activations, poolings and sums of two."""
    count = 0
    for node in work.chosen(work.nodes(*_POINTWISE, "Add", "Mul")):
        data = node.input if node.op_type in {"Add", "Mul"} else node.input[:1]
        ranks = {work.rank(value) for value in data}
        rank = ranks.pop() if len(ranks) == 1 else None
        if rank not in _LAST or any(value in work.graph.constants for value in data):
            continue
        turned = [work.add("Transpose", value, perm=_LAST[rank]) for value in data]
        found = work.add(node.op_type, *turned, *node.input[len(data) :], **attributes(node))
        work.replace(node, work.add("Transpose", found, perm=_FIRST[rank]))
        count += 1
    return count


def _transposed_twice(work: Work) -> int:
    """One transposition as two."""
    count = 0
    for node in work.chosen(work.nodes("Transpose")):
        perm = attribute(node, "perm", None)
        if perm is None:
            continue
        first = [int(axis) for axis in work.generator.permutation(len(perm))]
        then = [first.index(axis) for axis in perm]
        work.replace(node, work.add("Transpose", work.add("Transpose", node.input[0], perm=first), perm=then))
        count += 1
    return count


def _transposed_later(work: Work) -> int:
    """A transposition behind the activation or the scalar that stood behind it."""
    count = 0
    for node in work.chosen(work.nodes("Transpose")):
        reader = work.only_reader(node.output[0])
        if reader is None or not (reader.op_type in _POINTWISE or _scalar(work, reader)):
            continue
        place = list(reader.input).index(node.output[0])
        inputs = [*reader.input]
        inputs[place] = node.input[0]
        found = work.add(reader.op_type, *inputs, **attributes(reader))
        del work.graph.nodes[node.name]
        work.replace(reader, work.add("Transpose", found, **attributes(node)))
        count += 1
    return count


def _scalar(work: Work, node: NodeProto) -> bool:
    numbers = [work.graph.constants.get(name) for name in node.input]
    return node.op_type in {"Mul", "Div", "Add", "Sub"} and any(
        item is not None and item.ndim == 0 for item in numbers
    )


def _sums_in_another_order(work: Work) -> int:
    """(a + b) + c as a + (b + c), and what's left with exchanged operands."""
    count = 0
    for node in work.chosen(work.nodes("Add", "Mul")):
        if node.name not in work.graph.nodes:
            continue
        reader = work.only_reader(node.output[0])
        if reader is not None and reader.op_type == node.op_type and list(reader.input).count(node.output[0]) == 1:
            (third,) = [name for name in reader.input if name != node.output[0]]
            inner = work.add(node.op_type, node.input[1], third)
            del work.graph.nodes[node.name]
            work.replace(reader, work.add(node.op_type, node.input[0], inner))
        else:
            node.input[0], node.input[1] = node.input[1], node.input[0]
        count += 1
    return count


def _flatten_by_reshape(work: Work) -> int:
    """Flatten as Reshape, and a Reshape to two axes as Flatten."""
    count = 0
    for node in work.chosen(work.nodes("Flatten", "Reshape")):
        if node.op_type == "Flatten" and attribute(node, "axis", 1) == 1:
            work.replace(node, work.add("Reshape", node.input[0], np.array([0, -1], np.int64)))
            count += 1
            continue
        shape = work.constant_of(node, 1)
        fits = shape is not None and len(shape) == 2 and shape[0] in {0, -1} and (work.rank(node.input[0]) or 0) > 2
        sizes = work.shapes.get(node.input[0], [])
        whole = fits and None not in sizes[1:] and shape is not None and shape[1] in {-1, np.prod(sizes[1:])}
        if node.op_type == "Reshape" and whole:
            work.replace(node, work.add("Flatten", node.input[0], axis=1))
            count += 1
    return count


def _squeeze_by_reshape(work: Work) -> int:
    count = 0
    for node in work.chosen(work.nodes("Squeeze", "Unsqueeze")):
        sizes = work.shapes.get(node.output[0])
        given = work.shapes.get(node.input[0])
        if not sizes or not given or None in sizes[1:] or given[0] != sizes[0]:
            continue
        shape = [-1 if sizes[0] is None else sizes[0], *sizes[1:]]
        work.replace(node, work.add("Reshape", node.input[0], np.array(shape, np.int64)))
        count += 1
    return count


def _concat_in_turn(work: Work) -> int:
    count = 0
    for node in work.chosen(node for node in work.nodes("Concat") if len(node.input) > 2):
        axis = attribute(node, "axis", 0)
        first = work.add("Concat", *node.input[:2], axis=axis)
        work.replace(node, work.add("Concat", first, *node.input[2:], axis=axis))
        count += 1
    return count


def _split_by_slices(work: Work) -> int:
    count = 0
    for node in work.chosen(work.nodes("Split")):
        sizes = work.constant_of(node, 1)
        if sizes is None or work.rank(node.input[0]) is None:
            continue
        ends = np.cumsum(sizes)
        axis = np.array([attribute(node, "axis", 0)], np.int64)
        del work.graph.nodes[node.name]
        for start, end, value in zip(ends - sizes, ends, list(node.output), strict=True):
            bounds = np.array([start], np.int64), np.array([end], np.int64)
            found = work.add("Slice", node.input[0], *bounds, axis)
            work.graph.nodes[found.removesuffix("_output_0")].output[0] = value
        count += 1
    return count


CHANGES: dict[str, Change] = {
    "identities-put-in": _identities,
    "identities-gone": _identities_gone,
    "islands-channels-last": _channels_last,
    "transposed-twice": _transposed_twice,
    "transposed-later": _transposed_later,
    "sums-in-another-order": _sums_in_another_order,
    "flatten-or-reshape": _flatten_by_reshape,
    "squeeze-by-reshape": _squeeze_by_reshape,
    "concat-in-turn": _concat_in_turn,
    "split-by-slices": _split_by_slices,
}
