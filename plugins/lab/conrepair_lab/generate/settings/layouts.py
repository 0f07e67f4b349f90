"""Values of constants that say a shape: drawn so that what they're applied to can have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from conrepair_lab.generate.settings.domains import Domain
from conrepair_lab.generate.settings.expressions import Number, known
from conrepair_lab.generate.settings.shapes import Sizes


@dataclass(frozen=True)
class NewShape(Domain):
    """Another shape with the same elements; -1 for what's left, 0 for the size that there is.

    Attributes:
        shape: The one that there is.
        zeros: Whether a 0 means a size that there is.
        wanted: The one to get, if that's given.
    """

    shape: tuple[Number, ...]
    zeros: bool
    wanted: tuple[int, ...] | None = None

    def drawn(self, random: Random) -> tuple[int, ...]:
        sizes = _other_layout(list(self.shape), random) if all(map(known, self.shape)) else list(self.wanted or ())
        written = list(sizes)
        for place in range(len(sizes)):
            own = self.shape[place] if place < len(self.shape) else None
            if self.zeros and own is not None and (not known(own) or own == sizes[place]) and random.random() < 0.2:
                written[place] = 0
        if sizes and random.random() < 0.4:
            written[random.randrange(len(sizes))] = -1
        return tuple(written)

    def allows(self, value: Any) -> bool:
        if not isinstance(value, tuple):
            return False
        copied = [place for place, size in enumerate(value) if size == 0 and self.zeros]
        return (
            len(value) <= 6
            and all(size >= -1 for size in value)
            and value.count(-1) <= 1
            and all(place < len(self.shape) for place in copied)
        )


def _other_layout(shape: list[int], random: Random) -> list[int]:
    """A shape after some steps: axes are joined, split, swapped, put in or taken out."""
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(shape) + 1)
        step = random.choice(("join", "join", "split", "split", "swap", "put in", "take out"))
        if step == "put in" and len(shape) < 6:
            shape.insert(place, 1)
        elif step == "take out" and 1 in shape:
            shape.remove(1)
        elif step == "split" and place < len(shape) < 6 and shape[place]:
            divisors = [number for number in range(1, shape[place] + 1) if shape[place] % number == 0]
            first = random.choice(divisors)
            shape[place : place + 1] = [first, shape[place] // first]
        elif step == "join" and place + 1 < len(shape):
            shape[place : place + 2] = [shape[place] * shape[place + 1]]
        elif step == "swap" and place + 1 < len(shape):
            shape[place], shape[place + 1] = shape[place + 1], shape[place]
    return shape


@dataclass(frozen=True)
class Parts:
    """A set of sizes that together make a whole.

    Attributes:
        whole: Their sum.
        count: How many.
    """

    whole: Number
    count: int

    def allows(self, shape: tuple[int, ...]) -> bool:
        return len(shape) == self.count and all(size >= 0 for size in shape) and sum(shape) == self.whole

    def made(self, sizes: Sizes) -> tuple[Number, ...]:
        if not known(self.whole):
            return tuple(sizes.size(0, None) for _ in range(self.count))
        some = range(1, self.whole) if self.whole >= self.count else [0] * self.count
        cuts = sorted(sizes.random.sample(some, self.count - 1))
        return tuple(end - start for start, end in zip((0, *cuts), (*cuts, self.whole), strict=True))


@dataclass(frozen=True)
class Places(Domain):
    """Where slices begin or end along axes: any numbers; drawn so that something is left.

    Attributes:
        sizes: Of the axes.
        steps: From element to element.
        begins: Where the slices begin, if this is where they end.
        far: Beyond the end of every axis.
    """

    sizes: Sequence[Number]
    steps: Sequence[int]
    begins: Sequence[int] | None = None
    far: int = 2**31 - 1

    def drawn(self, random: Random) -> tuple[int, ...]:
        begins = (None,) * len(self.sizes) if self.begins is None else self.begins
        return tuple(self._place(*of_axis, random) for of_axis in zip(self.sizes, self.steps, begins, strict=True))

    def allows(self, value: Any) -> bool:
        return isinstance(value, tuple) and len(value) == len(self.sizes)

    def _place(self, size: Number, step: int, begin: int | None, random: Random) -> int:
        far = self.far if step > 0 else -self.far
        if not known(size):
            return random.choice((0, 0, 1, 2, -1) if begin is None else (far, far, -1, -2))
        if not size:
            return 0
        if begin is None:
            inside = random.randint(-size, size - 1)
            return random.choice((0, 0, inside) if step > 0 else (-1, inside, -far))
        first = min(max(begin + size if begin < 0 else begin, 0), size)
        if step < 0:
            return random.choice((random.randint(-1, first) - size, far))
        place = random.choice((random.randint(first, size), far))
        return place - size if 0 < place < size and random.random() < 0.4 else place
