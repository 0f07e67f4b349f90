"""Which values an input is made for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

_STEPS = 2 / 255  # of a grid, by which its ends may be off
_FAR = 8.0  # times ordinary values; those of a normal distribution end before
_MOST_WORDS = 6  # of a sentence
_SHORTEST_MASK = 0.5  # of a row
_IN_FRONT, _HOLES, _BLANK = 1, {3, 5}, 7  # turns of masks that aren't usual
_VALUES = 0.25  # of places, that get a value of which a file speaks


@dataclass(frozen=True)
class InputRange:
    """What a model's file says about the values of an input.

    Attributes:
        low: Lower end; one for each place along the axis, or one for all.
        high: The same for the upper end.
        why: What in the file says so.
        axis: Of the input, counted from its end (-1 is the last); None where all values have one range.
        whole: Whether values are whole numbers, the ends included.
        mask: Whether they say what of a row is there.
        blank: Whether there is an answer, too, where nothing of a row is there.
        counts: Whether each row counts up from the lower end.
        calibrated: Whether all that says so is the grid that a quantizer gave it, by the inputs that it met.
        words: Of an input of texts, which there are; for each place along the axis, or for all.
        sentences: Whether a text is several of them.
        values: Numbers that the file compares an input with, or looks up; for each place along the axis, or for all.
        listed: Whether there are no others.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    why: str
    axis: int | None = None
    whole: bool = False
    mask: bool = False
    calibrated: bool = False
    counts: bool = False
    words: tuple[tuple[str, ...], ...] = ()
    sentences: bool = False
    values: tuple[tuple[float, ...], ...] = ()
    listed: bool = False
    blank: bool = False

    def __str__(self) -> str:
        """For a person: "0 to 255 (Rescaling)"."""
        if self.words:
            known = list(dict.fromkeys(word for words in self.words for word in words))
            shown = ", ".join(map(repr, known[:3])) + (f", ... ({len(known)} texts)" if len(known) > 3 else "")
            return f"{'sentences of ' if self.sentences else ''}{shown} ({self.why})"
        if self.mask:
            return f"a mask of ones, then zeros, or otherwise ({self.why})"
        if self.counts:
            return f"positions from {self.low[0]:.4g} on ({self.why})"
        ends = [" to ".join(f"{end:.4g}" for end in pair) for pair in zip(self.low, self.high, strict=True)]
        shown = ", ".join(ends[:3]) + (f", ... ({len(ends)} ranges)" if len(ends) > 3 else "")
        return f"{'whole numbers from ' * self.whole}{shown} ({self.why})"

    def for_all(self) -> InputRange:
        """One range for all places along the axis."""
        return replace(self, low=(min(self.low),), high=(max(self.high),), axis=None, values=self.values[:1])

    def ordinary(self, low: float, high: float) -> InputRange:
        """The ordinary range, unless this one is for values of another size (bytes); from zero on, where this is."""
        least, most = min(self.low), max(self.high)
        if max(-least, most) > _FAR * high:
            return self
        return replace(self, low=(low if -least > most / 2**8 else 0.0,), high=(high,), axis=None)

    def differs(self, other: InputRange) -> bool:
        """Whether two files are made for inputs that no choice of words explains: half as large, twice, or elsewhere.

        Args:
            other: Of the other file; a grid that's wide enough, and cuts values off, has the zero point of others.
        """
        if self.words or other.words:
            return [set(words) for words in self.words] != [set(words) for words in other.words]
        (low, high), (least, most) = ((min(item.low), max(item.high)) for item in (self, other))
        one, two, near = max(-low, high), max(-least, most), _STEPS * (most - least)
        moved = other.calibrated and high - low <= most - least + near and (low < least - near or high > most + near)
        return self.mask != other.mask or max(one, two) > 2 * min(one, two) or moved

    def draw(
        self,
        generator: np.random.Generator,
        shape: tuple[int, ...],
        portions: npt.NDArray[Any] | None = None,
        *,
        turn: int = 0,
    ) -> npt.NDArray[Any]:
        """Draw one sample, uniformly; at some places values of which the file speaks.

        Args:
            generator: Seeded.
            shape: Of the sample.
            portions: Of the range, 0 to 1, where they were drawn otherwise.
            turn: Which sort of mask: 0 is the usual one.

        Returns:
            Texts; whole numbers as int64, others as float32.
        """
        if self.words:
            return self._texts(generator, shape)
        if self.mask:
            return self._mask(generator, shape, turn)
        if self.counts:
            steps = self.low[0] + np.arange(shape[-1] if shape else 1)
            return np.broadcast_to(np.minimum(steps, self.high[0]).astype(np.int64), shape or (1,)).reshape(shape)
        low, high = (self._placed(ends, len(shape)) for ends in (self.low, self.high))
        if portions is not None:
            values: npt.NDArray[np.float32] = (low + (high - low) * portions).astype(np.float32)
            return np.rint(values).astype(np.int64) if self.whole else values
        if self.whole:
            drawn: npt.NDArray[Any] = generator.integers(low.astype(np.int64), high.astype(np.int64) + 1, shape)
        else:
            drawn = generator.uniform(low, high, shape).astype(np.float32)
        return self._with_values(generator, drawn) if self.values else drawn

    def _with_values(self, generator: np.random.Generator, drawn: npt.NDArray[Any]) -> npt.NDArray[Any]:
        found = np.array(drawn)
        for place in np.argwhere(self.listed | (generator.random(drawn.shape) < _VALUES)):
            values = self.values[0 if self.axis is None else place[self.axis]]
            if values:
                found[tuple(place)] = values[int(generator.integers(len(values)))]
        return found

    def _texts(self, generator: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.str_]:
        """Texts of those that there are."""
        found = np.empty(shape, object)
        for place in np.ndindex(*shape):
            words = self.words[0 if self.axis is None else place[self.axis]]
            count = int(generator.integers(1, _MOST_WORDS + 1)) if self.sentences else 1
            found[place] = " ".join(words[int(index)] for index in generator.integers(0, len(words), count))
        return found.astype(np.str_)

    def _placed(self, ends: tuple[float, ...], rank: int) -> npt.NDArray[np.float64]:
        """Ends that broadcast with a sample."""
        sizes = [1] * rank
        if self.axis is not None:
            sizes[self.axis] = len(ends)
        return np.reshape(np.array(ends, np.float64), sizes)

    def _mask(self, generator: np.random.Generator, shape: tuple[int, ...], turn: int) -> npt.NDArray[Any]:
        """Ones, then zeros; in their turns zeros first, with holes, zeros only; of one place both."""
        size = shape[-1] if shape else 1
        lengths = generator.integers(max(1, math.ceil(_SHORTEST_MASK * size)), size + 1, (*shape[:-1], 1))
        kept: npt.NDArray[Any] = np.arange(size) < lengths
        if size == 1 or (turn == _BLANK and self.blank):
            kept = np.full(shape, turn % 2 == 0)
        elif turn in _HOLES:
            kept = (generator.random(shape) < _SHORTEST_MASK) | (np.arange(size) == 0)
        return (kept[..., ::-1] if turn == _IN_FRONT and shape else kept).astype(np.int64).reshape(shape)
