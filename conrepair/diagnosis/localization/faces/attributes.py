"""Which attributes of two steps differ, seen through the layouts of their tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from conrepair.diagnosis.localization.align.layout import Layout
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.diagnosis.localization.numbers import naming
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Attribute
from conrepair.ground.graph.operators import OPERATORS, is_read

_AXES = {"axis", "axes"}
_IGNORED = {  # the wiring says the first, layouts the next ones; the rest is for training, or a note
    *("constant_first", "batch_first", "return_sequences"),
    *("momentum", "seed", "consumed_inputs", "is_test", "nodes_hitrates"),
}
_SHAPES = {"shape", "sizes", "auto_pad", "kernel_shape", "perm", "starts", "ends", "steps", "repeats", "scales"}
_BY_AXIS = {("Pad", "pads"), ("Resize", "scales"), ("Slice", "axes"), ("Tile", "repeats")}
_GRAPH = {("BatchNormalization", "training_mode"), ("Gelu", "approximate")}
_BESIDE = ("precision", "round_mode", "saturate", "stash_type")  # what the vocabulary has no names for
_LONG = 8  # entries of a table that are too many to list
_SAME_WORDS = {"bilinear": "linear", "bicubic": "cubic"}  # modes that later opsets call otherwise


@dataclass(frozen=True)
class AttributeDifference:
    """An attribute that isn't what it should be.

    Attributes:
        name: Which.
        wanted: What it should be, in the target's layout; None to say nothing.
        kind: Of fault.
        words: "pads [0, 0, 1, 1] in the target, [1, 1, 1, 1] in the source".
        is_said: Whether both sides say what it is.
    """

    name: str
    wanted: Attribute
    kind: Kind
    words: str
    is_said: bool = True


def is_same_operator(source: Step, target: Step) -> bool:
    """Whether two steps are nodes of one operator, of which the vocabulary may have one only in some of its modes."""
    return source.op == target.op or _is_one_native(source, target)


def _is_one_native(source: Step, target: Step) -> bool:
    """Whether both are a node each, of one operator of one framework, with all that the file says of it."""
    nodes = source.nodes, target.nodes
    if any(len(side) != 1 or not side[0].own for side in nodes):
        return False
    return nodes[0][0].native == nodes[1][0].native


def _told(source: Step, target: Step, *, native: bool) -> list[dict[str, Attribute]]:
    """The attributes of both sides: the framework's own, else those that the vocabulary has names for."""
    if native:
        owns = source.nodes[0].own, target.nodes[0].own
        names = dict.fromkeys([*owns[0], *owns[1]])
        return [{name: own.get(name) for name in names} for own in owns]
    beside = _BESIDE if _is_one_native(source, target) else ()
    return [
        {**step.attributes, **{name: step.nodes[0].own[name] for name in beside if name in step.nodes[0].own}}
        for step in (source, target)
    ]


def attribute_differences(source: Step, target: Step, layouts: Mapping[int, Layout]) -> Iterator[AttributeDifference]:
    """The attributes that differ.

    Args:
        source: A step of the source.
        target: The step of the target that stands for it, with the same operator (`is_same_operator`).
        layouts: By the number of axes, how tensors of the source lie in the target hereabouts.
    """
    native = _is_one_native(source, target) and not source.op == target.op in OPERATORS
    said, given = _told(source, target, native=native)
    operator = source.nodes[0].native if native else source.op
    same_layout = source.channels_last == target.channels_last and all(
        layout.is_plain and len(layout.source) == len(layout.target) for layout in layouts.values()
    )
    for name in (name for name in said if name in given and name not in _IGNORED):
        ours, theirs = said[name], given[name]
        if (ours is None or theirs is None) and ((source.op != "Clip" and not native) or ours == theirs):
            continue
        if not is_read(operator, name, said) or (name in _SHAPES and not same_layout):
            continue
        if name in _AXES and ours is not None:
            ours = _moved(ours, source, target, layouts)
            if ours is None:
                continue
        elif (source.op, name) in _BY_AXIS and not same_layout:
            continue
        if not _equal(ours, theirs):
            kind = Kind.GRAPH if (source.op, name) in _GRAPH else Kind.HYPERPARAMETERS
            words_of = _each if native else _whole
            is_said = source.op == "Clip" or None not in (ours, theirs)
            yield AttributeDifference(name, ours, kind, words_of(name, ours, theirs), is_said)


def _whole(name: str, ours: Attribute, theirs: Attribute) -> str:
    return f"{name} {_shown(theirs)} in the converted model, {_shown(ours)} in the original"


def _each(name: str, ours: Attribute, theirs: Attribute) -> str:
    """Of a framework's own operator: which entries of a table differ, and what isn't said at all."""
    if isinstance(ours, tuple) and isinstance(theirs, tuple) and len(ours) == len(theirs) > 1:
        entries: list[tuple[Attribute, Attribute]] = list(zip(ours, theirs, strict=True))
        places = [place for place, (one, two) in enumerate(entries) if not _equal(one, two)]
        more = f" (and others: {len(places)} of {len(ours)} differ)" if len(places) > 1 else ""
        return _whole(f"{name}[{places[0]}]", ours[places[0]], theirs[places[0]]) + more
    if isinstance(ours, tuple) and isinstance(theirs, tuple) and max(len(ours), len(theirs)) > _LONG:
        return f"{len(theirs)} {name} in the converted model, {len(ours)} in the original"
    one, two = ("not given" if value is None else _shown(value) for value in (theirs, ours))
    return f"{name} {one} in the converted model, {two} in the original"


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
    if not math.prod(layout.source):
        return {}
    lengths = enumerate(layout.target)
    strides = {(size, math.prod(layout.target[axis + 1 :])): axis for axis, size in lengths if size > 1}
    found: dict[int, int] = {}
    for axis, length in enumerate(layout.source):
        if length > 1:
            begin, next_one = layout.positions(np.array([0, math.prod(layout.source[axis + 1 :])]))
            if (moved := (length, int(next_one - begin))) in strides:
                found[axis] = strides[moved]
    rest = [axis for axis in range(len(layout.source)) if axis not in found]
    free = [axis for axis in range(len(layout.target)) if axis not in found.values()]
    if len(rest) == len(free) == 1:
        found[rest[0]] = free[0]
    elif rest and rest == free:
        found.update({axis: axis for axis in rest})
    return found


def _equal(one: Attribute, two: Attribute) -> bool:
    if isinstance(one, tuple) and isinstance(two, tuple):
        if one == two:
            return True  # at once: a forest's tables have a million entries
        return len(one) == len(two) and all(itertools.starmap(_equal, zip(one, two, strict=True)))
    if isinstance(one, float) or isinstance(two, float):
        if not isinstance(one, int | float) or not isinstance(two, int | float):
            return one == two
        return math.isclose(one, two, rel_tol=naming.SINGLE, abs_tol=1e-12)
    if isinstance(one, str) and isinstance(two, str):
        return _SAME_WORDS.get(one, one) == _SAME_WORDS.get(two, two)
    return one == two


def _shown(value: Attribute) -> str:
    if isinstance(value, tuple):
        return str(list(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
