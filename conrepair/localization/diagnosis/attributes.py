"""Which attributes of two steps differ, seen through the layouts of their tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Attribute
from conrepair.graph.operators import is_read
from conrepair.localization.diagnosis.steps import Step
from conrepair.localization.layout import Layout

__all__ = ["AttributeDifference", "attribute_differences"]

_AXES = {"axis", "axes"}
_IGNORED = {"constant_first", "batch_first", "return_sequences"}  # the wiring says the one, layouts the others
_SHAPES = {"shape", "sizes", "auto_pad", "kernel_shape", "perm", "starts", "ends", "steps", "repeats", "scales"}
_BY_AXIS = {("Pad", "pads"), ("Resize", "scales"), ("Slice", "axes"), ("Tile", "repeats")}
_GRAPH = {("BatchNormalization", "training_mode"), ("Gelu", "approximate")}
_CLOSE = 1e-6


@dataclass(frozen=True)
class AttributeDifference:
    """An attribute that isn't what it should be.

    Attributes:
        name: Which.
        wanted: What it should be, in the target's layout.
        kind: Of fault.
        words: "pads [0, 0, 1, 1] in the target, [1, 1, 1, 1] in the source".
    """

    name: str
    wanted: Attribute
    kind: Kind
    words: str


def attribute_differences(
    source: Step, target: Step, layouts: Mapping[int, Layout], words: tuple[str, str] = ("the source", "the target")
) -> Iterator[AttributeDifference]:
    """What differs.

    Args:
        source: A step of the source.
        target: The step of the target that stands for it, with the same operator.
        layouts: By the number of axes, how tensors of the source lie in the target hereabouts.
        words: What the two steps belong to.

    """
    names = [name for name in source.attributes if name in target.attributes and name not in _IGNORED]
    same_layout = source.channels_last == target.channels_last and all(
        layout.is_plain and len(layout.source) == len(layout.target) for layout in layouts.values()
    )
    for name in names:
        ours, theirs = source.attributes[name], target.attributes[name]
        if (ours is None or theirs is None) and (source.op != "Clip" or ours == theirs):
            continue
        if not is_read(source.op, name, source.attributes) or (name in _SHAPES and not same_layout):
            continue
        if name in _AXES:
            ours = _moved(ours, source, target, layouts)
            if ours is None:
                continue
        elif (source.op, name) in _BY_AXIS and not same_layout:
            continue
        if not _equal(ours, theirs):
            kind = Kind.GRAPH if (source.op, name) in _GRAPH else Kind.HYPERPARAMETERS
            said = f"{name} {_shown(theirs)} in {words[1]}, {_shown(ours)} in {words[0]}"
            yield AttributeDifference(name, ours, kind, said)


def _moved(value: Attribute, source: Step, target: Step, layouts: Mapping[int, Layout]) -> Attribute:
    """Axes of the source as the target counts them; None when that can't be told."""
    axes = value if isinstance(value, tuple) else (value,)
    numbers = [int(axis) for axis in axes if isinstance(axis, int | np.integer)]
    if len(numbers) != len(axes):
        return None
    for layout in layouts.values():
        if len(layout.source) == len(layout.target) and all(axis < len(layout.source) for axis in numbers):
            where = axis_map(layout)
            if all(axis in where for axis in numbers):
                moved = tuple(sorted(where[axis] for axis in numbers))
                return moved if isinstance(value, tuple) else moved[0]
    return None


def axis_map(layout: Layout) -> dict[int, int]:
    """Which axis of the target each axis of the source is, as far as they are the same ones."""
    if layout.source == layout.target and layout.is_plain:
        return {axis: axis for axis in range(len(layout.source))}
    size = math.prod(layout.source)
    if not size:
        return {}
    strides = np.arange(size).reshape(layout.source)
    moved = layout.to_target(strides)
    found: dict[int, int] = {}
    for axis, length in enumerate(layout.source):
        if length < 2:
            continue
        step = math.prod(layout.source[axis + 1 :])
        for other, extent in enumerate(layout.target):
            if extent != length:
                continue
            ends = [np.take(moved, place, axis=other).flat[0] for place in (0, 1)]
            if int(ends[1]) - int(ends[0]) == step:
                found[axis] = other
    rest = [axis for axis in range(len(layout.source)) if axis not in found]
    free = [axis for axis in range(len(layout.target)) if axis not in found.values()]
    if len(rest) == len(free) == 1:
        found[rest[0]] = free[0]
    elif rest and rest == free:
        found.update({axis: axis for axis in rest})
    return found


def _equal(one: Attribute, two: Attribute) -> bool:
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(itertools.starmap(_equal, zip(one, two, strict=True)))
    if isinstance(one, float) or isinstance(two, float):
        if not isinstance(one, int | float) or not isinstance(two, int | float):
            return one == two
        return math.isclose(one, two, rel_tol=_CLOSE, abs_tol=1e-12)
    return one == two


def _shown(value: Attribute) -> str:
    if isinstance(value, tuple):
        return str(list(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
