"""Run some segments of a target alone, to evaluate a candidate edit without running the whole model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from conrepair.diagnosis.localization.align.matching import Pair, known_of
from conrepair.diagnosis.localization.faces.steps.steps import MOVES
from conrepair.diagnosis.localization.numbers import judging
from conrepair.diagnosis.localization.run.measurement import Cut, Feeds, introduced
from conrepair.diagnosis.localization.run.reference import Reference
from conrepair.formats.networks.network import Network
from conrepair.ground.graph.layer_graph import LayerGraph, Node
from conrepair.ground.metrics.running_error import RunningError


def errors_alone(
    reference: Reference, target: Network, pairs: Sequence[Pair], ends: Sequence[Pair], batches: Iterable[Feeds]
) -> Mapping[str, RunningError]:
    """The errors that some segments of a target add.

    Args:
        reference: The network that is right.
        target: The one in question.
        pairs: Cuts, as an alignment has found them, of tensors that it has.
        ends: What is computed from the nearest cuts, and compared; likewise.
        batches: Inputs of both; the same ones for each target.

    Returns:
        Introduced errors by the source's tensors.
    """
    errors = {pair.source: RunningError() for pair in ends}
    cuts = [Cut(pair, errors[pair.source]) for pair in ends]
    for _ in introduced(reference, target, pairs, cuts, batches):
        pass  # the errors grow
    return errors


def kept_pieces(
    before: LayerGraph, after: LayerGraph, cuts: Sequence[Pair], ends: Sequence[Pair]
) -> tuple[list[Pair], list[Pair]] | None:
    """The boundaries of some segments in a changed target, where the change lies in those segments.

    What computed an end may be taken out; then what its readers read now stands for it. What moves values may change
    what a tensor's axes are, which an alignment must find out anew.

    Args:
        before: The target as it was aligned.
        after: The changed target.
        cuts: Of the alignment.
        ends: Of the pieces.

    Returns:
        The cuts and the ends; None where pieces alone don't tell what the change does.
    """
    stand_ins = {pair.target: _stand_in(pair.target, before, after) for pair in ends}
    found = [replace(pair, target=name) for pair in ends if (name := stand_ins[pair.target]) is not None]
    kept = [pair for pair in cuts if pair.target in after.tensors]
    lost = {pair.target for pair in cuts} - {pair.target for pair in kept} - stand_ins.keys()
    if lost or len(found) < len(ends):
        return None
    others = {one.target: two.target for one, two in zip(ends, found, strict=True)}
    held = {name: name for name in (*(pair.target for pair in kept), *before.inputs)} | others
    if any(before.tensors[one].shape != after.tensors[two].shape for one, two in held.items()):
        return None
    contents = _contents(before, others), _contents(after, {})
    changed = {name for name in contents[0] | contents[1] if contents[0].get(name) != contents[1].get(name)}
    inside = [*_between(before, cuts, ends), *_between(after, kept, found)]
    if any(node.op in MOVES and not changed.isdisjoint(node.outputs) for node in inside):
        return None
    return (kept, found) if changed <= {name for node in inside for name in node.outputs} else None


def _between(graph: LayerGraph, cuts: Sequence[Pair], ends: Sequence[Pair]) -> Sequence[Node]:
    return graph.between(known_of(graph, cuts), [pair.target for pair in ends])


def _stand_in(name: str, before: LayerGraph, after: LayerGraph) -> str | None:
    """What the readers of a tensor read in the changed graph: the tensor itself where it's still there."""
    if name in after.tensors:
        return name
    for node in before.consumers.get(name, ()):
        result = next(filter(None, node.outputs), None)
        now = None if result is None else after.producers.get(result)
        if now is not None and len(now.inputs) == len(node.inputs):
            return now.inputs[node.inputs.index(name)] or None
    return None


_Content = tuple[str, tuple[str, ...], tuple[str, ...], str, tuple[str, ...]]


def _contents(graph: LayerGraph, others: Mapping[str, str]) -> dict[str, _Content]:
    """What computes each tensor, but for those that are another one by a second name, or that others stand for."""
    same = dict(others)
    found: dict[str, _Content] = {}
    for node in graph.nodes:
        inputs = tuple(same.get(name, name) for name in node.inputs)
        if node.op == "Identity":
            same[node.outputs[0]] = inputs[0]
            continue
        content = node.op, inputs, node.outputs, repr(sorted(node.attributes.items())), tuple(sorted(node.parameters))
        found |= dict.fromkeys(node.outputs, content)
    return found


def is_unchanged(one: RunningError, other: RunningError) -> bool:
    """Whether two results differ from the same reference in the same way, but for rounding."""
    same = one.mismatched == other.mismatched
    sums = (one.difference, other.difference), (one.candidate, other.candidate), (one.product, other.product)
    return same and all(math.isclose(*pair, rel_tol=judging.UNCHANGED) for pair in sums)
