"""See what comes out right of a target that guesses were fed to, and which guesses that proves."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.localization.evidence import Evidence
from conrepair.localization.matching import Pair
from conrepair.localization.samples import Fetch, Matrix, Places, Samples

__all__ = ["has_weights", "learn"]


def learn(evidence: Evidence, fed: Sequence[Pair], names: Sequence[str], values: Fetch) -> bool:
    """Note what comes out right, and the guesses that it was computed from.

    Args:
        evidence: What's known; grows.
        fed: Pairs, known ones and guesses.
        names: Tensors of the target that were computed.
        values: Gives them.

    Returns:
        Whether anything did.
    """
    target, similarity = evidence.target, evidence.similarity
    columns = np.array([target.place[name] for name in names], np.int64)
    found = similarity.again(Samples(names, values))
    guesses = {pair.target: pair for pair in fed if pair.confidence < 1.0}
    same = _alike(evidence, found.rows, found.columns, found.error, columns)
    known = {pair.target for pair in fed} | set(target.graph.inputs)
    feeding = target.graph.feeding(known)
    telling = _telling(target.graph, known)
    marks = {pair.source: 1 << place for place, pair in enumerate(guesses.values())}
    before = dict(zip(evidence.source.names, evidence.source.before_each(marks, evidence.source.names), strict=True))
    ends = set(evidence.source.graph.outputs)
    already = set(similarity.proven.values())
    computed: dict[int, list[Pair]] = {}
    proven: dict[str, Pair] = {}
    for place, candidates in sorted(same.items()):
        name = names[place]
        read = feeding.get(name, ())
        guessed = [guesses[item] for item in read if item in guesses]
        needed = 0
        for pair in guessed:
            needed |= marks[pair.source]
        right = {item for item in candidates if before[item] & needed == needed}
        if not right:
            continue
        computed[place] = guessed
        meant = name in target.graph.outputs and bool(ends & right)
        if len(guessed) < len(read) or meant or int(columns[place]) in already or name in telling:
            proven.update((pair.target, pair) for pair in guessed)
    taken = np.full(len(names), -1)
    for place, guessed in computed.items():
        if all(pair.target in proven for pair in guessed):
            taken[place] = columns[place]
    known_before = similarity.equal(evidence.likeness.error)
    similarity.improve(found, taken)
    for name, pair in proven.items():
        similarity.prove(evidence.source.place[pair.source], target.place[name], pair.layout)
    return bool(proven) or similarity.equal(evidence.likeness.error) > known_before


def _alike(evidence: Evidence, rows: Places, places: Places, error: Matrix, columns: Places) -> dict[int, list[str]]:
    """For each tensor that was computed the source's that have its values and can be its partners."""
    near = (error < evidence.likeness.error) & evidence.similarity.possible(rows, columns[places])
    near[near] = ~evidence.similarity.apart.contradicts(rows[near], columns[places[near]])
    found: dict[int, list[str]] = {}
    for row, place in zip(rows[near].tolist(), places[near].tolist(), strict=True):
        found.setdefault(place, []).append(evidence.source.names[row])
    return found


def _telling(graph: LayerGraph, known: Set[str]) -> set[str]:
    """The tensors whose values depend on weights behind what's fed: others would have given other values."""
    found: set[str] = set()
    for node in graph.nodes:
        if has_weights(node) or any(name in found and name not in known for name in node.inputs):
            found.update(node.outputs)
    return found


def has_weights(node: Node) -> bool:
    """Whether a node has numbers of its own, more than a factor."""
    return any(np.prod(parameter.shape) > 1 for parameter in node.parameters.values())
