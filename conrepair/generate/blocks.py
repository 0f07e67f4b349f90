"""Networks by blocks: each block follows from the seed and its number alone, whoever makes it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from random import Random

from conrepair.generate.diversity import Diversity
from conrepair.generate.material import NOTHING, Material
from conrepair.generate.networks import Network, Wishes, made
from conrepair.generate.setting import Support

__all__ = ["BLOCK", "block"]

BLOCK = 25
"""Networks of a block: what guides them towards diversity are those before them in it."""


def block(
    wishes: Wishes,
    seed: int,
    number: int,
    support: Support,
    count: int = BLOCK,
    without: Collection[int] = (),
    material: Material = NOTHING,
) -> Iterator[Network | None]:
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
        Each network; None for one that the runtime refused to compute, or that isn't made.
    """
    seen = Diversity(wishes.operators)
    for place in range(count):
        random = Random(f"{seed}/{number}/{place}")  # of a text: the same on every machine
        yield None if place in without else made(wishes, random, support, seen, material)
