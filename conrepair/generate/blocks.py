"""Networks by blocks: each block follows from the seed and its number alone, whoever makes it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache
from random import Random

from conrepair.generate.diversity import Diversity
from conrepair.generate.fitting import fitting
from conrepair.generate.material import NOTHING, Material
from conrepair.generate.networks import GeneratedNetwork, NotMadeError, made
from conrepair.generate.ports import Support
from conrepair.generate.wishes import Wishes

__all__ = ["BLOCK", "block"]

BLOCK = 25
"""Networks of a block: what guides them towards diversity are those before them in it."""

_STREAMS = 3
"""Of random numbers, for each place: the next one where nothing that the one before draws can be computed."""


def block(
    wishes: Wishes,
    seed: int,
    number: int,
    support: Support,
    count: int = BLOCK,
    without: Collection[int] = (),
    material: Material = NOTHING,
) -> Iterator[GeneratedNetwork | NotMadeError]:
    """Make the networks of a block.

    Args:
        wishes: What they should be like.
        seed: Of all that's drawn.
        number: Of the block, from 0.
        support: Element types of the runtime that computes them.
        count: How many there are; the last block may have fewer.
        without: Places of those that aren't made, since they ended a process.
        material: What they're made of besides specifications.

    Yields:
        Each network, or why there is none.
    """
    seen, in_turn = Diversity(wishes.operators), _in_turn(fitting(wishes), seed)
    for place in range(count):
        if place in without:
            yield NotMadeError("it ends the process")
            continue
        name = f"{seed}/{number}/{place}"  # seeds of texts are the same on every machine
        streams = [Random(f"{name}/{stream}" if stream else name) for stream in range(_STREAMS)]
        turns = in_turn if wishes.nodes == 1 and material == NOTHING else ()
        yield _first(
            wishes, streams, support, seen, material, turns[(number * BLOCK + place) % len(turns)] if turns else ""
        )


@cache
def _in_turn(names: tuple[str, ...], seed: int) -> tuple[str, ...]:
    """Operators in an order that the seed says: those of networks of one operator."""
    return tuple(Random(f"{seed}/order").sample(names, len(names)))


def _first(
    wishes: Wishes, streams: Sequence[Random], support: Support, seen: Diversity, material: Material, turn: str
) -> GeneratedNetwork | NotMadeError:
    """A network by the first stream that gives one, at first of the operator whose turn it is; else why none does."""
    reasons: list[str] = []
    for place, random in enumerate(streams):
        wished = replace(wishes, operators=(turn,)) if turn and not place else wishes
        try:
            return made(wished, random, support, seen, material)
        except NotMadeError as error:
            reasons.append(str(error))
    return NotMadeError("; then ".join(dict.fromkeys(reasons)))
