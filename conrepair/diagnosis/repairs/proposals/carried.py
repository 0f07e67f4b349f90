"""Give the pieces of a layer the numbers that the source has for the whole of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from conrepair.diagnosis.localization.faces.numbers.carried import CarriedParameter, carried_pairs
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, ProposalSetting, set_to
from conrepair.ground.graph.layer_graph import Array, Node

_MOST = 3  # arrangements of one parameter
_MOST_AXES = 4  # whose orders are tried


def carried_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The parameters of a composite, in the pieces that should carry them; then one alone, arranged in likely ways.

    Where the pieces carry all of them, a square matrix may still be turned over: which order a piece wants its axes
    in isn't known.
    """
    pairs = list(carried_pairs(setting.region))
    each = [list(_given(theirs.nodes, theirs.role, _arrangements(ours, theirs), setting)) for ours, theirs in pairs]
    if len(each) > 1 and all(each):
        yield tuple(edit for proposals in each for edit in proposals[0])
    yield from itertools.chain.from_iterable(each)
    if pairs:
        return
    alone = {node.name for step in setting.extra for node in step.nodes}
    turned: dict[bytes, tuple[list[Node], str, Array]] = {}
    for node in setting.region.target.nodes:
        for role, parameter in node.parameters.items():
            if node.name in alone and len(parameter.shape) == 2 and len(set(parameter.shape)) == 1:
                values = np.ascontiguousarray(parameter.numpy().T)
                turned.setdefault(values.tobytes(), ([], role, values))[0].append(node)
    for nodes, role, values in turned.values():
        if not np.array_equal(values, values.T):
            yield from _given(nodes, role, [values], setting)


def _given(
    nodes: Sequence[Node], role: str, arrangements: Sequence[Array], setting: ProposalSetting
) -> Iterator[Proposal]:
    """Other numbers for all nodes that share them; none for integers whose steps are elsewhere."""
    places = [setting.in_editor.of(node) for node in nodes]
    held = [place.parameters[role] for place in places if place is not None and role in place.parameters]
    if any(np.dtype(parameter.dtype).kind in "iu" and not parameter.bits for parameter in held):
        return
    for values in arrangements:
        edits = [edit for place in places if (edit := set_to(place, role, values)) is not None]
        if edits and len(edits) == len(places):
            yield tuple(edits)


def _arrangements(ours: CarriedParameter, theirs: CarriedParameter) -> list[Array]:
    """The numbers in the target's shape: as they are, then with exchanged axes, the likest to what's there first."""
    given = theirs.parameter.numpy()
    values = ours.values.astype(given.dtype)
    orders = itertools.permutations(range(values.ndim)) if values.ndim <= _MOST_AXES else [range(values.ndim)]
    found: dict[bytes, Array] = {}
    for order in orders:
        array = np.ascontiguousarray(values.transpose(order)).reshape(given.shape)
        found.setdefault(array.tobytes(), array)
    likeness = {key: float(np.linalg.norm((array - given).astype(np.float64))) for key, array in found.items()}
    as_it_is = next(iter(found)) if ours.values.shape == theirs.values.shape else None
    return [found[key] for key in sorted(found, key=lambda key: (key != as_it_is, likeness[key]))][:_MOST]
