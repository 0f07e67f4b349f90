"""Run some pieces of a target alone: what a change does to them, without a look at all the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.localize.diagnosis.steps import MOVES
from conrepair.localize.isolation import Isolation, add_result
from conrepair.localize.matching import Pair
from conrepair.localize.measurement import Feeds
from conrepair.localize.reference import Reference
from conrepair.metrics.running_error import RunningError
from conrepair.networks.network import Network

__all__ = ["errors_alone", "is_unchanged", "stays_within"]

_ROUNDING = 1e-9  # of sums of squares


def errors_alone(
    reference: Reference, target: Network, pairs: Sequence[Pair], ends: Sequence[Pair], batches: Iterable[Feeds]
) -> Mapping[str, RunningError]:
    """What a target introduces at the end of some pieces.

    Args:
        reference: The network that is right.
        target: The one in question.
        pairs: Cuts, as an alignment has found them; those whose tensor it hasn't are left out.
        ends: What is computed from the nearest cuts, and compared; likewise.
        batches: Inputs of both; the same ones for each target.

    Returns:
        Introduced errors by the source's tensors.
    """
    known = [pair for pair in pairs if pair.target in target.graph.tensors]
    wanted = {pair.target: pair for pair in ends if pair.target in target.graph.tensors}
    errors = {name: RunningError() for name in wanted}
    isolated = Isolation(target, known, list(wanted), keep=True)
    sources = [pair.source for pair in [*known, *wanted.values()]]
    for number, (ours, theirs) in enumerate(batches):
        right = reference.batch(number, ours)
        right.compute(sources, keep=True)
        for name, array in isolated.run(right.__getitem__, theirs):
            add_result(errors[name], wanted[name], right[wanted[name].source], array)
    return {pair.source: errors[name] for name, pair in wanted.items()}


def stays_within(before: LayerGraph, after: LayerGraph, cuts: Sequence[Pair], ends: Sequence[Pair]) -> bool:
    """Whether a change lies in some pieces, so that they tell what it does: the cuts around them are what they were.

    What moves values may change what a tensor's axes are, which an alignment must find out anew.

    Args:
        before: The target as it was aligned.
        after: The changed target.
        cuts: Of the alignment.
        ends: Of the pieces.
    """
    known = {pair.target for pair in cuts} | set(before.inputs)
    wanted = [pair.target for pair in ends]
    shapes = [{name: graph.tensors[name].shape for name in graph.tensors} for graph in (before, after)]
    if any(shapes[0].get(name) != shapes[1].get(name) for name in (*wanted, *known)):
        return False
    contents = [{name: _content(node) for node in graph.nodes for name in node.outputs} for graph in (before, after)]
    changed = {name for name in contents[0] | contents[1] if contents[0].get(name) != contents[1].get(name)}
    if not changed:
        return True
    inside = [node for graph in (before, after) for node in graph.between(known, wanted)]
    other = [node for node in inside if not changed.isdisjoint(node.outputs)]
    return changed <= {name for node in inside for name in node.outputs} and MOVES.isdisjoint(
        node.op for node in other
    )


def _content(node: Node) -> tuple[str, tuple[str, ...], tuple[str, ...], str, tuple[str, ...]]:
    return node.op, node.inputs, node.outputs, repr(sorted(node.attributes.items())), tuple(sorted(node.parameters))


def is_unchanged(one: RunningError, other: RunningError) -> bool:
    """Whether two results differ from the same reference in the same way, but for rounding."""
    same = one.mismatched == other.mismatched
    sums = (one.difference, other.difference), (one.candidate, other.candidate), (one.product, other.product)
    return same and all(math.isclose(*pair, rel_tol=_ROUNDING) for pair in sums)
