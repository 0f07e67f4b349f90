"""Pairs of a quantized network, whose values are never quite the source's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from conrepair.diagnosis.localization.align.matching import Likeness, Pair
from conrepair.diagnosis.localization.align.neighbourhood import Neighbourhood
from conrepair.diagnosis.localization.align.outputs import partners
from conrepair.diagnosis.localization.align.similarity import Similarity
from conrepair.diagnosis.localization.judge.quantization import own_rounding
from conrepair.diagnosis.localization.numbers import few_bits
from conrepair.formats.networks.network import Network

Sides = tuple[Neighbourhood, Neighbourhood]


def likeness_of(source: Network, target: Network, similarity: Similarity, nodes: Sides) -> Likeness:
    """When values of a quantized network are the source's: where they're nearer than its outputs are.

    So what is far off shows, whatever the bits explain, and proves the guesses that bring it near. Where only weights
    are in few bits, less is lost; and a normalization of what's normalized already changes as little as bits of
    activations do.

    Args:
        source: The network that is right.
        target: The quantized one.
        similarity: Of their values.
        nodes: Their tensors.
    """
    rows, columns = nodes[0].place, nodes[1].place
    ends = [(source.output_names[one], target.output_names[two]) for one, two in partners(source, target, {})]
    errors = [similarity.error(rows[one], columns[two]) for one, two in ends if one in rows and two in columns]
    worst = float(max(errors, default=math.inf))
    tensors = [target.graph.tensors[name] for name in nodes[1].names]
    stored = sum(tensor.quantization is not None for tensor in tensors) >= few_bits.STORED * len(tensors)
    near = few_bits.STORED_NEAR if stored else few_bits.WEIGHTS_NEAR
    weights = [
        own_rounding(parameter)
        for node in target.graph.nodes
        for parameter in node.parameters.values()
        if parameter.bits and parameter.bits <= few_bits.FEW_BITS and len(parameter.shape) > 1
    ]
    rounding = float(np.median(weights)) if weights else 0.0  # what the bits of the middle one explain
    least, most = (max(bound, times * rounding) for bound, times in zip(near, few_bits.TIMES_ROUNDING, strict=True))
    return Likeness(float(np.clip(worst / few_bits.NEARER, least, most)), few_bits.RIVAL)


def near_pairs_of(pairs: Sequence[Pair], similarity: Similarity, nodes: Sides) -> list[Pair]:
    """Of a quantized network, the pairs that are proven, and those whose values are near.

    One of the others that's wrong would be a fault that nobody made. Nor is one right of which either tensor is much
    nearer to another one: where that has no partner, it's the one. Where the outputs aren't explained, nothing else
    tells, and they say how near is near.

    Args:
        pairs: That are likeliest, guesses among them.
        similarity: Of values.
        nodes: The tensors of both networks.
    """
    rows, columns, ends = nodes[0].place, nodes[1].place, nodes[1].graph.outputs
    nearest = similarity.nearest()
    known = {pair.target: pair for pair in pairs}
    limit = few_bits.NEAR
    if any(name not in known or known[name].confidence < 1.0 for name in ends):
        found = [similarity.error(rows[known[name].source], columns[name]) for name in ends if name in known]
        limit = min(max(limit, few_bits.NEARER * max(found, default=math.inf)), few_bits.OTHER_UNITS)
    kept = []
    for pair in _at_nearest(pairs, similarity, nodes):
        row, column = rows[pair.source], columns[pair.target]
        error = similarity.error(row, column)
        near = error <= min(limit, few_bits.RIVAL * min(nearest[0][1][row], nearest[1][1][column], error))
        if math.isfinite(error) and (near or pair.confidence == 1.0 or pair.target in nodes[1].graph.inputs):
            kept.append(replace(pair, layout=similarity.layout(row, column)) if near else pair)
    return kept


def _at_nearest(pairs: Sequence[Pair], similarity: Similarity, nodes: Sides) -> list[Pair]:
    """Pairs that were guessed, with the target's tensor whose values are much nearer, where that has no partner."""
    (columns, errors), (rows, _) = similarity.nearest()
    taken = {pair.target for pair in pairs}
    found = []
    for pair in pairs:
        row = nodes[0].place[pair.source]
        column = int(columns[row])
        if pair.confidence < 1.0 and column >= 0 and rows[column] == row:
            name = nodes[1].names[column]
            much = few_bits.CLOSER * errors[row] <= similarity.error(row, nodes[1].place[pair.target])
            if much and name not in taken:
                taken.add(name)
                pair = replace(pair, target=name)
        found.append(pair)
    return found
