"""Sequences of tensors: their members are known while importing, so they are tuples of values."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.values import Value

_INDEX = ("position",)


@operator("SequenceEmpty", "SequenceConstruct", ignores=("dtype",))
def construct(node: ImportedNode) -> Any:
    return [tuple(node.value(index) for index in range(len(node.inputs)))]


@operator(constant=_INDEX)
def sequence_at(node: ImportedNode) -> Any:
    members = _members(node)
    return [members[_position(node, 1, len(members))]]


@operator(constant=_INDEX)
def sequence_insert(node: ImportedNode) -> Any:
    members = list(_members(node))
    members.insert(_position(node, 2, len(members) + 1) if node.has(2) else len(members), node.value(1))
    return [tuple(members)]


@operator(constant=_INDEX)
def sequence_erase(node: ImportedNode) -> Any:
    members = list(_members(node))
    del members[_position(node, 1, len(members)) if node.has(1) else -1]
    return [tuple(members)]


@operator()
def sequence_length(node: ImportedNode) -> Any:
    return np.array(len(_members(node)), np.int64)


@operator()
def concat_from_sequence(node: ImportedNode) -> Any:
    members, axis = [node.stored(value) for value in _members(node)], node.attribute("axis")
    name = "stack" if node.attribute("new_axis", 0) else "concatenate"
    constant = all(isinstance(member, np.ndarray) for member in members)
    return getattr(np if constant else ops, name)(members, axis=axis)


@operator(constant=("split",))
def split_to_sequence(node: ImportedNode) -> Any:
    axis = node.axis(0)
    size = node.known_shape(0, [axis])[0]
    lengths, alone = _lengths(node, size), not node.has(1) and not node.attribute("keepdims", 1)
    x, ends = node.tensor(0), np.cumsum(lengths).tolist()
    members: list[Value] = []
    for length, end in zip(lengths, ends, strict=True):
        part = end - 1 if alone else slice(end - length, end)
        member = x[(*[slice(None)] * axis, part)]
        if isinstance(member, np.ndarray):
            members.append(member)
            continue
        shape = list(node.shape(0))
        shape[axis : axis + 1] = [] if alone else [length]
        members.append(node.output(member, None, shape))
    return [tuple(members)]


def _lengths(node: ImportedNode, size: int) -> list[int]:
    split = node.constant(1)
    if split is None:
        return [1] * size
    if split.ndim:
        return [int(length) for length in split]
    each = int(split)
    return [min(each, size - start) for start in range(0, size, each)]


def _members(node: ImportedNode) -> tuple[Value, ...]:
    value: Any = node.value(0)
    if not isinstance(value, tuple):
        node.refuse("its sequence is an input of the model, and only sequences made inside are done")
    return value


def _position(node: ImportedNode, index: int, length: int) -> int:
    position = int(np.asarray(node.constant(index)).item())
    if not -length <= position < length:
        node.refuse(f"position {position} lies outside a sequence of {length}")
    return position % length
