"""Moves that lay values out in another order than the layer behind them needs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.faces.region import Finding, Region, Side
from conrepair.diagnosis.localization.faces.steps.steps import moved_by, moves_before
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, Node

_MOST_VALUES = 1 << 20
_MOST_AXES = 6  # whose orders are tried
_NEAR = 4  # operators in front of a piece that keep the order of what they read
_PROBABLY = 0.5  # weight of a layout that nothing undoes


@dataclass(frozen=True)
class _Moved:
    """Where the values of a cut are, by their places in the source's tensor."""

    nodes: tuple[Node, ...]
    places: Array


def is_mixed(region: Region) -> bool:
    """Whether what arrives behind moves is what arrives there in the source, in no layout."""
    return any(not _is_any_of(theirs[-1].places, ours[-1:]) for _, ours, theirs in _read(region))


def shuffled_findings(region: Region) -> Iterator[Finding]:
    """Follow what's read through reshapes and transpositions, up to the first operator that computes.

    What arrives there must be what the source has, with its axes in any order: otherwise axes were mixed on the way.
    """
    for _, ours, theirs in _read(region):
        mixed = [not _is_any_of(stage.places, ours) for stage in theirs]
        if not mixed[-1]:
            continue
        first = theirs[max(place for place, wrong in enumerate([False, *mixed]) if not wrong)]
        if first.nodes and any(_known(stage.places, ours) for stage in (first, theirs[-1])):
            yield _finding(first, ours, region)


def turned_findings(region: Region) -> Iterator[Finding]:
    """A layer that gets the right values in another order, which another permutation in front of it would undo.

    What a transposition gives is a right tensor in some layout, so it may lie just before the region.
    """
    for name, ours, theirs in _read(region):
        wanted, begin, given = ours[-1], theirs[0].places, theirs[-1]
        before = region.target.graph.producers.get(name)
        chain, places = given.nodes, begin
        if before is not None and (back := _undone(before, begin)) is not None:
            chain, places = (before, *chain), back
        if given.places.shape == wanted.places.shape and not np.array_equal(given.places, wanted.places):
            yield from itertools.islice(_turned(chain, places, wanted.places, region), 1)


def origin_findings(region: Region) -> Iterator[Finding]:
    """What gives right values with its axes in another order, though what it reads isn't so: nobody turns them back.

    Of moves behind one another, the first is named that has no tensor of the source's order before it.
    """
    for name in region.target.begins:
        partner, layout = region.partners.get(name), region.layouts.get(name)
        node = None if layout is None or layout.is_plain else _origin(name, region)
        if partner is None or node is None:
            continue
        moves = list(moves_before(region.target.graph, node.outputs[0]))
        settled = (place for place, item in enumerate(moves, 1) if _is_settled(item, region))
        moves = moves[: next(settled, None)] or [node]  # back to the first that's known to be in the source's order
        chain = [other.layer for other in moves]
        other = region.source.graph.producers.get(region.partners.get(node.outputs[0], partner))
        words = f"`{chain[-1]}` gives the original's values with axes in another order ({layout})"
        ours = region.source.layers if other is None else (other.layer, *region.source.layers)
        yield Finding(
            Kind.STRUCTURE,
            words,
            ours,
            (*reversed(chain), *region.target.layers),
            f"turned {chain[-1]}",
            _PROBABLY,
            f"{moves[-1].native} gives axes in another order",
        )


def _origin(name: str, region: Region) -> Node | None:
    """Of operators behind one another whose results are turned, the first; None where that's far before."""
    for _ in range(_NEAR):
        node = region.target.graph.producers.get(name)
        if node is None:
            return None
        read = [item for item in node.inputs if item in region.layouts]
        if not read or any(region.layouts[item].is_plain for item in read):
            return node
        name = read[0]
    return None


def _is_settled(node: Node, region: Region) -> bool:
    """Whether what a node reads is in the source's order, and where axes of one are expanded, has them there, too."""
    layout = region.layouts.get(node.inputs[0])
    return layout is not None and layout.is_plain and (node.op != "Expand" or layout.source == layout.target)


def _turned(chain: Sequence[Node], places: Array, wanted: Array, region: Region) -> Iterator[Finding]:
    for node in reversed(chain):
        perm = node.attributes.get("perm")
        if node.op != "Transpose" or not isinstance(perm, tuple) or len(perm) > _MOST_AXES:
            continue
        right = []
        for order in itertools.permutations(range(len(perm))):
            changed = [replace(item, attributes={"perm": order}) if item is node else item for item in chain]
            moved = moved_by(changed, places, region.target.graph)
            right += [order] if moved is not None and np.array_equal(moved, wanted) else []
        if right and tuple(range(len(perm))) not in right:  # or else it's one too many
            words = f"`{node.layer}` has perm {list(perm)}; {list(right[0])} would give the original's order"
            rule = f"{node.native} has the wrong perm"
            yield Finding(Kind.HYPERPARAMETERS, words, region.source.layers, (node.layer,), rule=rule)


def _undone(node: Node, places: Array) -> Array | None:
    """What a transposition has read; None for other operators."""
    perm = node.attributes.get("perm")
    if node.op != "Transpose" or not isinstance(perm, tuple) or len(perm) != places.ndim:
        return None
    return places.transpose(np.argsort(perm))


def _finding(stage: _Moved, ours: Sequence[_Moved], region: Region) -> Finding:
    last, shape = stage.nodes[-1], stage.places.shape
    others = [other.places.shape for other in ours if other.places.ndim == len(shape) and other.places.shape != shape]
    sizes = f" ({list(shape)}, in the original {list(others[0])})" if others else ""
    layers = tuple(node.layer for node in reversed(stage.nodes))
    words = f"`{last.layer}` reshapes values in another order{sizes}: no Transpose gives the original's values"
    rule = f"{last.native} reshapes values in another order"
    return Finding(Kind.STRUCTURE, words, region.source.layers, layers, rule=rule)


def _read(region: Region) -> Iterator[tuple[str, list[_Moved], list[_Moved]]]:
    """Tensors that the target reads, with the transpositions and reshapes behind them in both networks."""
    for name in region.target.begins:
        partner, layout = region.partners.get(name), region.layouts.get(name)
        if partner is not None and layout is not None and 0 < np.prod(layout.source) <= _MOST_VALUES:
            places = np.arange(np.prod(layout.source)).reshape(layout.source)
            theirs = list(_moves(region.target, name, layout.to_target(places)))
            yield name, list(_moves(region.source, partner, places)), theirs


def _moves(side: Side, begin: str, places: Array) -> Iterator[_Moved]:
    """The tensor as it's read, and behind each move that alone reads the one before."""
    nodes: tuple[Node, ...] = ()
    yield _Moved(nodes, places)
    inside = {node.name for node in side.nodes}
    while True:
        readers = [node for node in side.graph.consumers.get(begin, ()) if node.name in inside]
        moved = moved_by(readers, places, side.graph) if len(readers) == 1 else None
        if moved is None:
            return
        nodes, places, begin = (*nodes, readers[0]), moved, readers[0].outputs[0]
        yield _Moved(nodes, places)


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
