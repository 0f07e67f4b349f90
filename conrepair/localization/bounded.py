"""Pieces that compute what they should, where it's the source's runtime that doesn't."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from conrepair.judging.exact import exact_values
from conrepair.localization.activations import Activations
from conrepair.localization.isolation import Isolation
from conrepair.localization.judgement import Judged
from conrepair.localization.matching import Pair
from conrepair.truth.judging import beside


def acquit_bounded(
    first: tuple[Activations, Activations], pairs: Sequence[Pair], judged: Sequence[Judged]
) -> list[Judged]:
    """Acquit pieces each of whose numbers is as near to its exact value as rounding explains.

    Bounds of rounding are taken for a proof where all together they're no larger than the error that's allowed.

    Args:
        first: A batch through the network that is right, and through the one in question.
        pairs: The cuts.
        judged: All of them.
    """
    right, given = first
    network = right.network
    fed = dict.fromkeys([*network.graph.inputs, *(pair.source for pair in pairs)])
    nearest = network.graph.feeding(fed.keys()) if any(item.guilty for item in judged) else {}
    isolated = Isolation(given.network, pairs)
    found = []
    for item in judged:
        pair = item.cut.pair
        if item.guilty and pair.source in nearest:
            feeds = {name: right[name] for name in nearest[pair.source]}
            exact = exact_values(network, feeds, [pair.source])
            if exact is not None and pair.source in exact.values and pair.source not in exact.estimated:
                value, bound = exact.values[pair.source], exact.bounds[pair.source]
                array = isolated.trial(pair.target, functools.partial(isolated.fed, right.__getitem__, given.feeds))
                sharp = np.linalg.norm(bound) <= item.allowed * np.linalg.norm(value)
                if sharp and array is not None and array.size == value.size:
                    right_one = not beside(pair.layout.to_source(array), value, bound).beyond
                    item = replace(item, guilty=not right_one, proven=right_one)
        found.append(item)
    return found
