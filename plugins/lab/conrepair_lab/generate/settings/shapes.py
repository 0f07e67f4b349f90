"""Which shapes an input of an operator may have, given what is known of the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from conrepair_lab.generate.settings.expressions import Number, known


@dataclass(frozen=True)
class Size:
    """A size that is free between two bounds; None for no upper one.

    Attributes:
        low: Smallest.
        high: Largest.
        times: What that is multiplied by.
    """

    low: Number = 1
    high: Number | None = None
    times: Number = 1

    def allows(self, size: int) -> bool:
        """Whether a size is one of them."""
        count, rest = divmod(size, self.times) if self.times else (self.low, size)
        return not rest and bool(self.low <= count and (self.high is None or count <= self.high))

    def made(self, sizes: Sizes) -> Number:
        """One of them."""
        return self.times * sizes.size(self.low, self.high)


class Sizes(Protocol):
    """Who finds sizes: by drawing them, or as unknowns."""

    random: Random

    def size(self, low: Number, high: Number | None) -> Number: ...

    def rank(self, choices: Sequence[int]) -> int: ...


class ShapePattern(Protocol):
    """A set of shapes."""

    def allows(self, shape: tuple[int, ...]) -> bool:
        """Whether a shape is one of them."""

    def made(self, sizes: Sizes) -> tuple[Number, ...]:
        """One of them."""


@dataclass(frozen=True)
class Dims:
    """A size for each axis, each given or free."""

    sizes: tuple[Number | Size, ...]

    def allows(self, shape: tuple[int, ...]) -> bool:
        return len(shape) == len(self.sizes) and all(
            wanted.allows(size) if isinstance(wanted, Size) else wanted == size
            for wanted, size in zip(self.sizes, shape, strict=True)
        )

    def made(self, sizes: Sizes) -> tuple[Number, ...]:
        return tuple(item.made(sizes) if isinstance(item, Size) else item for item in self.sizes)


@dataclass(frozen=True)
class AnyShape:
    """Any sizes, of some ranks."""

    ranks: Collection[int]
    low: int = 0

    def allows(self, shape: tuple[int, ...]) -> bool:
        return len(shape) in self.ranks and (not self.low or all(size >= self.low for size in shape))

    def made(self, sizes: Sizes) -> tuple[Number, ...]:
        return tuple(sizes.size(max(1, self.low), None) for _ in range(sizes.rank(tuple(self.ranks))))


@dataclass(frozen=True)
class Broadcast:
    """What can be broadcast with a shape.

    Attributes:
        shape: The other one.
        one_way: The result must have the other's shape.
    """

    shape: tuple[Number, ...]
    one_way: bool = False

    def allows(self, shape: tuple[int, ...]) -> bool:
        if self.one_way and len(shape) > len(self.shape):
            return False
        pairs = zip(reversed(shape), reversed(self.shape), strict=False)
        return all(own in (1, other) or (other == 1 and not self.one_way) for own, other in pairs)

    def made(self, sizes: Sizes) -> tuple[Number, ...]:
        own = len(self.shape)
        rank = own if sizes.random.random() < 0.6 else sizes.rank(range(own + 1 if self.one_way else 7))
        shape = []
        for place in range(rank):
            other = self.shape[own - rank + place] if own - rank + place >= 0 else None
            if other is None or (known(other) and other == 1 and not self.one_way):
                shape.append(sizes.size(1, None))
            else:
                shape.append(1 if sizes.random.random() < 0.1 else other)
        return tuple(shape)


@dataclass(frozen=True)
class Either:
    """What any of some sets has."""

    patterns: Sequence[ShapePattern]

    def allows(self, shape: tuple[int, ...]) -> bool:
        return any(pattern.allows(shape) for pattern in self.patterns)

    def made(self, sizes: Sizes) -> tuple[Number, ...]:
        return sizes.random.choice(self.patterns).made(sizes)


@dataclass(frozen=True)
class Lettered:
    """Axes that have letters, as in an equation of Einsum: the same letter, the same size; "..." for others.

    Attributes:
        letters: For each axis.
        sizes: By letter, each given or free; any for other letters.
        others: The axes in the place of "...".
    """

    letters: str
    sizes: Mapping[str, Number | Size] = field(default_factory=dict)
    others: ShapePattern = AnyShape(range(5))

    def split(self, shape: Sequence[Number]) -> tuple[dict[str, Number], tuple[Number, ...]]:
        """By letter the size, the last one that has it; and those of other axes."""
        front, _, back = self.letters.partition("...")
        end = len(shape) - len(back)
        named = zip(front + back, (*shape[: len(front)], *shape[end:]), strict=True)
        return dict(named), tuple(shape[len(front) : end])

    def allows(self, shape: tuple[int, ...]) -> bool:
        front, dots, back = self.letters.partition("...")
        if not len(front + back) <= len(shape) <= (6 if dots else len(front + back)):
            return False
        named, others = self.split(shape)
        fits = Dims(tuple(self.sizes.get(letter, Size(0)) for letter in named)).allows(tuple(named.values()))
        return fits and self._filled(named, others) == shape and self.others.allows(others)

    def made(self, sizes: Sizes) -> tuple[Number, ...]:
        letters = dict.fromkeys(self.letters.replace("...", ""))
        found = Dims(tuple(self.sizes.get(letter, Size(0)) for letter in letters)).made(sizes)
        others = self.others.made(sizes) if "..." in self.letters else ()
        room = 6 - len(self.letters.replace("...", ""))
        return self._filled(dict(zip(letters, found, strict=True)), others[max(0, len(others) - room) :])

    def _filled(self, named: Mapping[str, Number], others: tuple[Number, ...]) -> tuple[Number, ...]:
        front, _, back = self.letters.partition("...")
        return (*(named[letter] for letter in front), *others, *(named[letter] for letter in back))
