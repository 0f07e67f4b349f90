"""Branches and loops."""

from __future__ import annotations

from conrepair_lab.generate.bodies import Bodies
from conrepair_lab.generate.settings.ports import MAX_RANK
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import AnyShape, Dims, Either
from conrepair_lab.generate.settings.tensors import TensorType
from conrepair_lab.generate.specifications.specification import operator

_RANKS = range(MAX_RANK + 1)
_ONE = Either([Dims((1,) * max(0, rank - MAX_RANK)) for rank in range(2 * MAX_RANK + 1)])
"""A single element, mostly as a scalar."""


@operator("If")
def branches(s: Setting) -> None:
    s.input("cond", _ONE)
    outer = [s.outer(AnyShape(_RANKS)) for _ in range(s.count(1, 2))]
    bodies = Bodies(s, (), [None] * s.count(1, 2, "outputs"), outer)
    made = bodies.types(s.value("then_branch", bodies))
    s.value("else_branch", Bodies(s, (), made, outer))
    for item in made:
        s.output(item.shape, item.dtype)


@operator()
def loop(s: Setting) -> None:
    trips = s.integer("M", 0, None)
    sure = not s.has("cond")
    goes = TensorType("bool", ()) if sure else s.input("cond", Either((Dims(()), Dims((1,)))))
    carried = [s.input("v_initial", AnyShape(_RANKS)) for _ in range(s.count(1, 2))]
    given = [TensorType("int64", ()), goes, *carried]
    stacked = s.count(len(carried), len(carried) + 1, "v_final_and_scan_outputs") - len(carried)
    bodies = Bodies(s, given, [1, *carried, *[None] * stacked])
    _, *made = bodies.types(s.value("body", bodies))
    for item in made[: len(carried)]:
        s.output(item.shape, item.dtype)
    for item in made[len(carried) :]:
        s.require(trips >= 1, "ONNX Runtime makes all axes 0 of what is stacked never")
        s.output([trips, *item.shape] if sure else [None] * (item.rank + 1), item.dtype)


@operator()
def scan(s: Setting) -> None:
    scans = s.integer("num_scan_inputs", 1, 2)
    states = s.count(scans, scans + 2) - scans
    kept = [s.input(shape=AnyShape(_RANKS)) for _ in range(states)]
    read = [s.input(rank=range(1, 7))]
    for _ in range(scans - 1):
        read.append(s.input(shape=Either((Dims(read[0].shape), AnyShape(range(1, 7))))))
    for size in (size for item in (*kept, *read) for size in item.shape):
        s.require(size >= 1, "a slice without elements")
    axes = [0] * scans
    if s.has("scan_input_axes"):
        axes = list(s.integers("scan_input_axes", [-item.rank for item in read], [item.rank - 1 for item in read]))
    lengths = [item.shape[axis] for item, axis in zip(read, axes, strict=True)]
    for length in lengths[1:]:
        s.equal(length, lengths[0])
    s.maybe(s.integers, "scan_input_directions", 0, 1, scans)
    parts = [_without(item, axis) for item, axis in zip(read, axes, strict=True)]
    stacked = s.count(max(1, states), states + 2, "final_state_and_scan_outputs") - states
    bodies = Bodies(s, [*kept, *parts], [*kept, *[None] * stacked])
    made = bodies.types(s.value("body", bodies))
    for item in made[:states]:
        s.output(item.shape, item.dtype)
    places = [0] * stacked
    if stacked and s.has("scan_output_axes"):
        ranks = [item.rank for item in made[states:]]
        places = list(s.integers("scan_output_axes", [-rank - 1 for rank in ranks], ranks))
    if stacked and s.has("scan_output_directions"):
        s.integers("scan_output_directions", 0, 1, stacked)
    for item, place in zip(made[states:], places, strict=True):
        at = place % (item.rank + 1)
        s.output((*item.shape[:at], lengths[0], *item.shape[at:]), item.dtype)


def _without(made: TensorType, axis: int) -> TensorType:
    shape = list(made.shape)
    del shape[axis]
    return TensorType(made.dtype, tuple(shape))
