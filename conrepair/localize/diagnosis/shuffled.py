"""Moves in front of a composite that no transposition explains: values are laid out in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.faults.fault import Kind
from conrepair.graph.layer_graph import Array, Node
from conrepair.localize.diagnosis.finding import Finding
from conrepair.localize.diagnosis.region import Region, Side
from conrepair.localize.diagnosis.steps import MOVES
from conrepair.localize.diagnosis.wiring import layers_of
from conrepair.localize.layout import layouts

__all__ = ["shuffled_findings"]

_MOST_VALUES = 1 << 20


@dataclass(frozen=True)
class _Moved:
    """Where the values of a cut are, by their places in the source's tensor."""

    nodes: tuple[Node, ...]
    places: Array


def shuffled_findings(region: Region) -> Iterator[Finding]:
    """Follow what's read through reshapes and transpositions, up to the first operator that computes.

    What arrives there must be what the source has, with its axes in any order: otherwise axes were mixed on the way.
    """
    for name in region.target.begins:
        partner, layout = region.partners.get(name), region.layouts.get(name)
        if partner is None or layout is None or not 0 < np.prod(layout.source) <= _MOST_VALUES:
            continue
        places = np.arange(np.prod(layout.source)).reshape(layout.source)
        ours = list(_moves(region.source, partner, places))
        theirs = list(_moves(region.target, name, layout.to_target(places)))
        mixed = [not _is_any_of(stage.places, ours) for stage in theirs]
        if not mixed[-1]:
            continue
        first = theirs[max(place for place, wrong in enumerate([False, *mixed]) if not wrong)]
        if first.nodes and any(_known(stage.places, ours) for stage in (first, theirs[-1])):
            yield _finding(first, region)


def _finding(stage: _Moved, region: Region) -> Finding:
    last = stage.nodes[-1]
    layers = tuple(dict.fromkeys(node.layer for node in reversed(stage.nodes)))
    words = f"`{last.layer}` lays values out in another order: no transposition gives what the source has"
    return Finding(Kind.STRUCTURE, words, layers_of(region.source), layers, f"at {last.layer}")


def _moves(side: Side, begin: str, places: Array) -> Iterator[_Moved]:
    """The tensor as it's read, and behind each move that alone reads the one before."""
    nodes: tuple[Node, ...] = ()
    yield _Moved(nodes, places)
    inside = {node.name for node in side.nodes}
    while True:
        readers = [node for node in side.graph.consumers.get(begin, ()) if node.name in inside]
        moved = _moved(readers[0], places, side) if len(readers) == 1 else None
        if moved is None:
            return
        nodes, places, begin = (*nodes, readers[0]), moved, readers[0].outputs[0]
        yield _Moved(nodes, places)


def _moved(node: Node, places: Array, side: Side) -> Array | None:
    if node.op not in MOVES - {"Expand"}:
        return None
    if node.op == "Transpose":
        perm = node.attributes.get("perm")
        axes = [int(axis) for axis in perm] if isinstance(perm, tuple) else []
        return places.transpose(axes) if len(axes) == places.ndim else None
    shape = side.graph.tensors[node.outputs[0]].shape
    return places.reshape(shape) if shape is not None and np.prod(shape) == places.size else None


def _is_any_of(places: Array, stages: Sequence[_Moved]) -> bool:
    """Whether axes are only in another order, merged or split, than at some stage."""
    return any(
        np.array_equal(layout.to_target(stage.places), places)
        for stage in stages
        for layout in layouts(stage.places.shape, places.shape)
    )


def _known(places: Array, stages: Sequence[_Moved]) -> bool:
    """Whether the sizes are those of a stage, so that each axis should be one of its."""
    sizes = sorted(size for size in places.shape if size > 1)
    return any(sizes == sorted(size for size in stage.places.shape if size > 1) for stage in stages)
