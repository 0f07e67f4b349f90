"""Match the tensors of two networks: by their values where these are the same, by structure where they aren't."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np
import scipy

from conrepair.diagnosis.localization.align.layout import Layout, layouts
from conrepair.diagnosis.localization.align.neighbourhood import Neighbourhood
from conrepair.diagnosis.localization.align.refinement import refined
from conrepair.diagnosis.localization.align.samples import Matrix, Places
from conrepair.diagnosis.localization.align.similarity import Similarity
from conrepair.diagnosis.localization.faces.steps.steps import moved_by, moves_before, moves_behind
from conrepair.diagnosis.localization.numbers import pairing
from conrepair.ground.graph.layer_graph import LayerGraph

_NOT_PAIRED = 16.0  # cost of a tensor without a partner, more than a pair can be worth
_MOST_VALUES = 1 << 20  # that are followed through moves
_SURMISE = 0.9  # how sure a pair is that only structure tells


@dataclass(frozen=True)
class Pair:
    """A tensor of the source and the tensor of the target that stands for it.

    Attributes:
        source: Name.
        target: Name.
        layout: How the one lies in the other.
        confidence: 0 to 1; 1 only where values say so.
        evidence: In words.
    """

    source: str
    target: str
    layout: Layout
    confidence: float
    evidence: str


@dataclass(frozen=True)
class Likeness:
    """When two tensors are taken for the same one by their values: as it is made, of targets that compute with reals.

    Attributes:
        error: Relative L2 below which they are.
        closer: Times the error to the closest tensor that they may differ by.
    """

    error: float = field(default_factory=lambda: pairing.EQUAL)
    closer: float = field(default_factory=lambda: pairing.CLOSEST)


@dataclass(frozen=True)
class ComparedNetworks:
    """What two networks are compared by.

    Attributes:
        source: Tensors of the network that is right, down.
        target: Of the other, across.
        similarity: Of values; grows.
        likeness: When values are the same.
    """

    source: Neighbourhood
    target: Neighbourhood
    similarity: Similarity
    likeness: Likeness = field(default_factory=Likeness)


def match(sides: ComparedNetworks) -> list[Pair]:
    """Pair the tensors of two networks.

    Values decide where they are equal; of several equal ones, structure. What has no partner then is paired by
    structure alone.

    Args:
        sides: Their tensors.

    Returns:
        In the target's order.
    """
    rows, columns, error = _equal(sides)
    equal = dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), error.tolist(), strict=True))
    results = sides.source.results, sides.target.results

    def fits(row: int, column: int) -> bool:
        return bool(results[0][row] == results[1][column]) and sides.similarity.possible(row, column)

    told = dict(refined(sides.source, sides.target, equal.keys(), fits))
    pairs = dict(told.keys())
    taken = set(pairs.values())
    left = np.array([row not in pairs and column not in taken for row, column in equal], np.bool_)
    if left.any():
        chosen = _assigned(rows[left], columns[left], error[left], sides.similarity.size)
        pairs |= dict(zip(rows[left][chosen].tolist(), columns[left][chosen].tolist(), strict=True))
    found = [
        _shown(sides, *pair, equal[pair]) if pair in equal else _guessed(sides, *pair, told[pair])
        for pair in pairs.items()
    ]
    found.sort(key=lambda item: sides.target.place[item[0].target])
    return _moved(sides, _with_usual_layouts([pair for pair, _ in found], [by_values for _, by_values in found]))


def _equal(sides: ComparedNetworks) -> tuple[Places, Places, Matrix]:
    """Tensors that may be the same ones by their values, and relative L2 of each two."""
    source, target, likeness = sides.source, sides.target, sides.likeness
    near = sides.similarity.near
    close = near.error < likeness.error
    alike = near.error <= likeness.closer * np.maximum(sides.similarity.closest()[near.columns], pairing.ROUNDING)
    equal = ((source.results[near.rows] == target.results[near.columns]) | close) & alike & close
    return near.rows[equal], near.columns[equal], near.error[equal]


def _assigned(rows: Places, columns: Places, error: Matrix, size: tuple[int, int]) -> Places:
    """Which of some equal pairs are chosen: as many as can be, the nearest by values and by place, no tensor twice.

    Each tensor may stay alone (Jonker and Volgenant's algorithm for sparse matrices, as scipy.sparse.csgraph has it).
    """
    (left, down), (right, across) = (np.unique(side, return_inverse=True) for side in (rows, columns))
    with np.errstate(divide="ignore"):
        digits = np.clip(-np.log10(error), 0, pairing.DIGITS) / pairing.DIGITS
    wish = 1.0 + digits - pairing.PLACE * np.abs(rows / size[0] - columns / size[1])
    alone = np.arange(len(left))
    costs = np.concatenate([_NOT_PAIRED - wish, np.full(len(left), _NOT_PAIRED)])
    places = np.concatenate([down, alone]), np.concatenate([across, len(right) + alone])
    matrix = scipy.sparse.csr_array((costs, places), shape=(len(left), len(right) + len(left)))
    found = scipy.sparse.csgraph.min_weight_full_bipartite_matching(matrix)
    pair = {key: place for place, key in enumerate(zip(down.tolist(), across.tolist(), strict=True))}
    return np.array(
        [pair[key] for key in zip(*(side.tolist() for side in found), strict=True) if key in pair], np.int64
    )


def _shown(sides: ComparedNetworks, row: int, column: int, error: float) -> tuple[Pair, bool]:
    layout = sides.similarity.layout(row, column)
    words = f"the same values (relative error {error:.1e}, {layout})"
    return Pair(sides.source.names[row], sides.target.names[column], layout, 1.0, words), True


def _guessed(sides: ComparedNetworks, row: int, column: int, told_by: str) -> tuple[Pair, bool]:
    """A pair that structure tells, and whether values tell its layout."""
    layout, correlation = sides.similarity.likeliest(row, column)
    words = f"{told_by} (correlation of the values {correlation:.2f})"
    pair = Pair(sides.source.names[row], sides.target.names[column], layout, _SURMISE, words)
    return pair, correlation >= pairing.CORRELATED


def _with_usual_layouts(pairs: list[Pair], told: list[bool]) -> list[Pair]:
    """Where values don't tell the layout: the one that most tensors of as many axes have, by values or by shape."""
    counts: dict[tuple[int, int], Counter[tuple[int, ...]]] = {}
    for pair, known in zip(pairs, told, strict=True):
        layout = pair.layout
        if known:
            counts.setdefault(_ranks(layout), Counter())[layout.axes] += pairing.BY_VALUES
        elif layout.view != tuple(layout.view[axis] for axis in layout.axes):
            counts.setdefault(_ranks(layout), Counter())[layouts(layout.source, layout.target)[0].axes] += 1
    return [
        pair if known else replace(pair, layout=_usual(pair.layout, counts))
        for pair, known in zip(pairs, told, strict=True)
    ]


def _usual(layout: Layout, counts: Mapping[tuple[int, int], Counter[tuple[int, ...]]]) -> Layout:
    choices = layouts(layout.source, layout.target)
    for axes, _ in counts.get(_ranks(layout), Counter()).most_common():
        for choice in choices:
            if choice.axes == axes:
                return choice
    return choices[0]


def _moved(sides: ComparedNetworks, pairs: Sequence[Pair]) -> list[Pair]:
    """Guesses that are a pair before them moved, in the layout that moves give; none where moves differ.

    Nor are tensors a pair that have an order of values in common, and no axes: [2, 8] and [4, 4].
    """
    found, graphs = {pair.target: pair for pair in pairs}, (sides.source.graph, sides.target.graph)
    for pair in pairs:
        if pair.layout.splits_otherwise and pair.target not in graphs[1].outputs:
            del found[pair.target]
            continue
        before = (found.get(node.inputs[0]) for node in moves_before(graphs[1], pair.target))
        read = next(filter(None, before), None)
        if read is None or pair.confidence == 1.0 or math.prod(read.layout.source) > _MOST_VALUES:
            continue
        ours, theirs = (
            graph.between({begin}, [end])
            for graph, begin, end in zip(graphs, (read.source, read.target), (pair.source, pair.target), strict=True)
        )
        chains = (*ours, *moves_behind(graphs[0], pair.source)), (*theirs, *moves_behind(graphs[1], pair.target))
        if not operator.eq(*([(node.op, node.attributes.get("perm")) for node in chain] for chain in chains)):
            continue  # which of them is too many, or permutes otherwise, is told where values arrive
        places = np.arange(math.prod(read.layout.source)).reshape(read.layout.source)
        wanted = moved_by(ours, places, graphs[0])
        given = moved_by(theirs, read.layout.to_target(places), graphs[1])
        if wanted is None or given is None:
            continue
        ways = layouts(wanted.shape, given.shape)
        layout = next((way for way in ways if np.array_equal(way.to_target(wanted), given)), None)
        if layout is None:
            del found[pair.target]
        else:
            found[pair.target] = replace(pair, layout=layout)
    return list(found.values())


def _ranks(layout: Layout) -> tuple[int, int]:
    return len(layout.source), len(layout.target)


# How the cuts of a network hang together: what each is computed from, and what is computed from it.


Feeding = Mapping[str, Sequence[str]]
"""The cuts that each tensor of the target is computed from."""


def known_of(graph: LayerGraph, pairs: Sequence[Pair]) -> Set[str]:
    """The target's tensors that are known: cuts, and what the network is fed.

    Args:
        graph: The target's.
        pairs: All cuts but its inputs.
    """
    return frozenset({*(pair.target for pair in pairs), *graph.inputs})


def feeding_of(graph: LayerGraph, pairs: Sequence[Pair]) -> Feeding:
    """The cuts that each tensor of the target is computed from.

    Args:
        graph: The target's.
        pairs: All cuts but its inputs, which are known too.
    """
    return graph.feeding(known_of(graph, pairs))


def readers_of(pairs: Sequence[Pair], feeding: Feeding) -> dict[str, list[str]]:
    """The other way round: the pairs that are computed from each cut, by the target's names."""
    readers: dict[str, list[str]] = {}
    for pair in pairs:
        for fed in feeding.get(pair.target, ()):
            readers.setdefault(fed, []).append(pair.target)
    return readers
