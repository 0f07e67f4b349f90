"""Networks by blocks: each block follows from the seed and its number alone, whoever makes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache
from random import Random

from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.growing import fitting
from conrepair_lab.generate.networks import NOTHING, GeneratedNetwork, Material, NotMadeError, made
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.wishes import Wishes

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
    seen = Diversity(wishes.operators)
    turns = _in_turn(fitting(wishes), seed) if wishes.nodes == 1 and material == NOTHING else ()
    for place in range(count):
        if place in without:
            yield NotMadeError("it ends the process")
            continue
        name = f"{seed}/{number}/{place}"  # seeds of texts are the same on every machine
        streams = (Random(f"{name}/{stream}" if stream else name) for stream in range(_STREAMS))
        wished = [wishes] * _STREAMS
        if turns:  # where nothing comes of the operator whose turn it is, another one may be in its place
            wished[0] = replace(wishes, operators=(turns[(number * BLOCK + place) % len(turns)],))
        yield _first(zip(wished, streams, strict=True), support, seen, material)


@cache
def _in_turn(names: tuple[str, ...], seed: int) -> tuple[str, ...]:
    """Operators in an order that the seed says: those of networks of one operator."""
    return tuple(Random(f"{seed}/order").sample(names, len(names)))


def _first(
    drawn: Iterable[tuple[Wishes, Random]], support: Support, seen: Diversity, material: Material
) -> GeneratedNetwork | NotMadeError:
    """What the first stream gives that gives a network; else why none does."""
    reasons: list[str] = []
    for wishes, random in drawn:
        try:
            return made(wishes, random, support, seen, material)
        except NotMadeError as error:
            reasons.append(str(error))
    return NotMadeError("; then ".join(dict.fromkeys(reasons)))
