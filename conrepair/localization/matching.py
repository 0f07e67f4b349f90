"""Match the tensors of two networks: by their values where these are the same, by all the evidence where not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from conrepair.localization.equals import EQUAL, EXACT, ComparedNetworks, Likeness, Same, equal_pairs
from conrepair.localization.guessing import Guess, Wanted, guessed_pairs
from conrepair.localization.layout import Layout, layouts
from conrepair.localization.neighbourhood import Neighbourhood

__all__ = ["EQUAL", "EXACT", "LEAST", "Likeness", "Pair", "match", "shown_pairs"]

LEAST = 0.45
"""Of a score from 0 to 1, for tensors whose values say nothing."""

_SURMISE = 0.99  # the most that anything but values says
_TELLING = 0.9  # correlation from which on values tell the layout, though a fault in front has changed them
_BY_VALUES = 10  # how much more a layout counts that values show than one that a shape suggests


@dataclass(frozen=True)
class Pair:
    """A tensor of the source and the tensor of the target that stands for it.

    Attributes:
        source: Name.
        target: Name.
        layout: How the one lies in the other.
        confidence: 0 to 1; 1 only where values say so.
        evidence: In words.
    """

    source: str
    target: str
    layout: Layout
    confidence: float
    evidence: str


def match(sides: ComparedNetworks, wanted: Wanted | None = None, same: Same | None = None) -> list[Pair]:
    """Pair the tensors of two networks.

    Values decide where they are equal. What has no partner then is guessed, in an order that both graphs allow.

    Args:
        sides: Their tensors.
        wanted: Which guesses are; the likely ones when None.
        same: What is paired by values, where that's known.

    Returns:
        In the target's order.
    """
    same = same or equal_pairs(sides)
    guesses = guessed_pairs(sides, same, wanted or Wanted(LEAST))
    found = [(pair, True) for pair in shown_pairs(sides, same)]
    found += [(_guessed(sides.source, sides.target, guess), guess.correlation >= _TELLING) for guess in guesses]
    found.sort(key=lambda item: sides.target.place[item[0].target])
    return _with_usual_layouts([pair for pair, _ in found], [told for _, told in found])


def shown_pairs(sides: ComparedNetworks, same: Same) -> list[Pair]:
    """The pairs that values, or what's computed from them, show.

    Args:
        sides: Their tensors.
        same: What is paired by values.

    Returns:
        In the target's order.
    """
    proven = sides.similarity.proven
    found = []
    for (row, column), error in sorted(zip(same.pairs, same.errors, strict=True), key=lambda item: item[0][1]):
        layout = sides.similarity.layout(row, column)
        words = f"the same values (relative error {error:.1e}, {layout})"
        if error >= sides.likeness.error:
            words = f"the nearest values by far (relative error {error:.1e}, {layout})"
        if proven.get(row) == column:
            words = "what's computed from it comes out right"
        found.append(Pair(sides.source.names[row], sides.target.names[column], layout, 1.0, words))
    return found


def _guessed(source: Neighbourhood, target: Neighbourhood, guess: Guess) -> Pair:
    return Pair(
        source.names[guess.row],
        target.names[guess.column],
        guess.layout,
        min(max(guess.score, 0.0), _SURMISE),
        f"operators, weights and neighbours (correlation of the values {guess.correlation:.2f})",
    )


def _with_usual_layouts(pairs: list[Pair], told: list[bool]) -> list[Pair]:
    """Where values don't tell the layout: the one that most tensors of as many axes have, by values or by shape."""
    counts: dict[tuple[int, int], Counter[tuple[int, ...]]] = {}
    for pair, known in zip(pairs, told, strict=True):
        layout = pair.layout
        if known:
            counts.setdefault(_ranks(layout), Counter())[layout.axes] += _BY_VALUES
        elif layout.view != tuple(layout.view[axis] for axis in layout.axes):
            counts.setdefault(_ranks(layout), Counter())[layouts(layout.source, layout.target)[0].axes] += 1
    return [
        pair if known else replace(pair, layout=_usual(pair.layout, counts))
        for pair, known in zip(pairs, told, strict=True)
    ]


def _usual(layout: Layout, counts: Mapping[tuple[int, int], Counter[tuple[int, ...]]]) -> Layout:
    choices = layouts(layout.source, layout.target)
    for axes, _ in counts.get(_ranks(layout), Counter()).most_common():
        for choice in choices:
            if choice.axes == axes:
                return choice
    return choices[0]


def _ranks(layout: Layout) -> tuple[int, int]:
    return len(layout.source), len(layout.target)
