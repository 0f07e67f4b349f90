"""Domains of attributes: values are drawn by bins so that they're diverse, and checked where they're given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from conrepair_lab.generate.settings.expressions import Number, known
from conrepair_lab.generate.settings.shapes import ShapePattern, Sizes
from conrepair_lab.generate.settings.sizes import drawn_size

Bounds = tuple[int, int]
"""Smallest and largest."""

_WIDEST = 6
"""What a number without an upper bound is drawn above its lower one, once, twice or four times."""

_LOWEST = -2
"""From where on a number without a lower bound is drawn."""


_ROOM = 16
"""What a size that a node says is drawn up to, if its bounds allow."""


class Domain(Protocol):
    """The values of one attribute."""

    def drawn(self, random: Random) -> Any:
        """One of them."""

    def allows(self, value: Any) -> bool:
        """Whether a value is one of them."""

    def checks(self, value: Any) -> list[Any]:
        """Conditions on sizes that aren't known yet for a value to be one of them."""
        return []


def drawn_whole(random: Random, low: int, high: int | None) -> int:
    """A number between two bounds: small ones as likely as all others, ends more likely than what's between."""
    most = low + _WIDEST * random.choice((1, 1, 2, 4)) if high is None else high
    if most <= low:
        return low
    if random.random() < 0.25:
        return random.choice((low, most)) if high is not None else low
    return random.randint(low, min(most, low + 3) if random.random() < 0.5 else most)


@dataclass(frozen=True)
class Whole(Domain):
    """A whole number between two bounds, None for no bound; drawn between the usual ones inside of those."""

    low: Number | None
    high: Number | None
    usual: Bounds | None = None

    def drawn(self, random: Random) -> int:
        return drawn_whole(random, *_plain(self.low, self.high, self.usual))

    def allows(self, value: Any) -> bool:
        return not isinstance(value, tuple) and _between(value, self.low, self.high)

    def checks(self, value: Any) -> list[Any]:
        return _checks(self.low, self.high, value)


@dataclass(frozen=True)
class Wholes(Domain):
    """Whole numbers, each between its own two bounds; drawn between the usual ones inside of those."""

    lows: tuple[Number | None, ...]
    highs: tuple[Number | None, ...]
    usual: Bounds | None = None

    def drawn(self, random: Random) -> tuple[int, ...]:
        pairs = [_plain(low, high, self.usual) for low, high in zip(self.lows, self.highs, strict=True)]
        values = [drawn_whole(random, low, high) for low, high in pairs]
        if values and random.random() < 0.3:  # usual networks have the same for each axis
            first = values[0]
            values = [max(first if high is None else min(first, high), low) for low, high in pairs]
        return tuple(values)

    def allows(self, value: Any) -> bool:
        if not isinstance(value, tuple) or len(value) != len(self.lows):
            return False
        return all(map(_between, value, self.lows, self.highs))

    def checks(self, value: Any) -> list[Any]:
        return [
            c for item, low, high in zip(value, self.lows, self.highs, strict=True) for c in _checks(low, high, item)
        ]


@dataclass(frozen=True)
class OneOf(Domain):
    """One of some values."""

    options: Sequence[Any]

    def drawn(self, random: Random) -> Any:
        return random.choice(self.options)

    def allows(self, value: Any) -> bool:
        return value in self.options


@dataclass(frozen=True)
class Real(Domain):
    """A real number between two bounds.

    Attributes:
        low: Smallest.
        high: Largest.
        usual: Those that half of the drawn ones are.
        step: What the others are multiples of; 0 for nothing.
    """

    low: float
    high: float
    usual: Sequence[float] = ()
    step: float = 0.0

    def drawn(self, random: Random) -> float:
        if self.usual and random.random() < 0.5:
            return float(random.choice(self.usual))
        value = random.uniform(max(self.low, -10.0), min(self.high, 10.0))
        if self.step:
            return max(self.step, value // self.step * self.step)
        return float(f"{value:.3g}")

    def allows(self, value: Any) -> bool:
        return not isinstance(value, tuple) and bool(self.low <= value <= self.high)


@dataclass(frozen=True)
class Several(Domain):
    """So many values, each of the same sort."""

    each: Domain
    count: int

    def drawn(self, random: Random) -> tuple[Any, ...]:
        return tuple(self.each.drawn(random) for _ in range(self.count))

    def allows(self, value: Any) -> bool:
        return isinstance(value, tuple) and len(value) == self.count and all(map(self.each.allows, value))


@dataclass(frozen=True)
class Axes(Domain):
    """Axes of a tensor of so many, from the end if negative; none is drawn twice, even where that's allowed.

    Attributes:
        rank: How many axes there are.
        fewest: How many are chosen at least.
        most: How many are chosen at most; any number for None.
        negative: Whether they may be counted from the end.
        distinct: Whether none may be there twice.
        among: Those that may be chosen; all for None.
    """

    rank: int
    fewest: int = 1
    most: int | None = None
    negative: bool = True
    distinct: bool = True
    among: Sequence[int] | None = None

    def drawn(self, random: Random) -> tuple[int, ...]:
        among = range(self.rank) if self.among is None else self.among
        most = len(among) if self.most is None else min(self.most, len(among))
        chosen = random.sample(among, random.randint(min(self.fewest, most), most))
        if random.random() < 0.7:
            chosen.sort()
        return tuple(axis - self.rank if self.negative and random.random() < 0.3 else axis for axis in chosen)

    def allows(self, value: Any) -> bool:
        if not isinstance(value, tuple):
            return False
        if not all((-self.rank if self.negative else 0) <= axis < self.rank for axis in value):
            return False
        if self.among is not None and not all(axis % self.rank in self.among for axis in value):
            return False
        count = len({axis % self.rank for axis in value})
        return self.fewest <= count <= (self.rank if self.most is None else self.most) and (
            count == len(value) or not self.distinct
        )


@dataclass(frozen=True)
class Permutation(Domain):
    """All axes, in some order."""

    rank: int

    def drawn(self, random: Random) -> tuple[int, ...]:
        return tuple(random.sample(range(self.rank), self.rank))

    def allows(self, value: Any) -> bool:
        return isinstance(value, tuple) and sorted(value) == list(range(self.rank))


@dataclass(frozen=True)
class Told(Domain):
    """Sizes that a node says, of its output as a rule: unknown while that's given.

    Attributes:
        pattern: Where they are.
        alone: Whether it's one number rather than a list.
    """

    pattern: ShapePattern
    alone: bool = False

    def drawn(self, random: Random) -> Any:
        return self.made(_Drawn(random))

    def made(self, sizes: Sizes) -> Any:
        found = self.pattern.made(sizes)
        return found[0] if self.alone else found

    def allows(self, value: Any) -> bool:
        return isinstance(value, tuple) != self.alone and self.pattern.allows((value,) if self.alone else value)


@dataclass
class _Drawn:
    random: Random

    def size(self, low: Number, high: Number | None) -> int:
        return drawn_size(self.random, low, high, _ROOM)

    def rank(self, choices: Sequence[int]) -> int:
        return self.random.choice(choices)


def _between(value: int, low: Number | None, high: Number | None) -> bool:
    return bool((low is None or low <= value) and (high is None or value <= high))


def _plain(low: Number | None, high: Number | None, usual: Bounds | None = None) -> tuple[int, int | None]:
    """Bounds to draw between while sizes aren't known yet; what's drawn becomes a condition on those."""
    plain = _LOWEST if low is None else low if known(low) else 0
    upper = high if high is None or known(high) else plain + 3
    if usual is None:
        return plain, upper
    return usual[0] if low is None else max(plain, usual[0]), usual[1] if upper is None else min(upper, usual[1])


def _checks(low: Number | None, high: Number | None, value: int) -> list[Any]:
    conditions = [] if low is None or known(low) else [low <= value]
    return conditions if high is None or known(high) else [*conditions, value <= high]
