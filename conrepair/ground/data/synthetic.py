"""Random inputs: seeded, in a declared range, integers within the table they index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.input_range import InputRange
from conrepair.ground.data.pictures.resample import resize_bilinear
from conrepair.ground.data.tensor_spec import Dimension, TensorSpec, numpy_dtype

_DEFAULT_INTEGER_HIGH = 2
_TURNS = 8  # samples, of which each is another of the sorts that there are
_ZEROS = 5  # the turn in which half of the rows are zeros
_PLAIN = ("a", "the", "good", "bad", "red", "blue", "one", "two", "yes", "no", "time", "place", "1", "2.5")
_WORDS = InputRange((), (), "nothing said which", words=(_PLAIN,), sentences=True)


@dataclass(frozen=True)
class SyntheticRange:
    """The ranges of synthetic inputs.

    Attributes:
        seed: Written into every report.
        low: Lower end of floats.
        high: Upper end of floats.
        integer_high: Integers are drawn from [0, this); None: the size of the table that the input indexes, or
            2 when no table is found.
        given: Whether a person said the ends.
        inputs: What files say that each of the model's inputs is made for, in their order; None, or nothing at all,
            where they say nothing.
        pictures: Whether what may be a picture varies slowly, as photos do, and not from pixel to pixel.
        shapes: Of each of the model's inputs, in their order, once sizes that its file leaves open were chosen, the
            batch apart; none where nothing was to be chosen.
        unusual: What is drawn in some samples: 0 for nothing, 1 for masks beside the usual ones, 2 for what
            not every network has an answer to, too: rows of zeros, masks that leave nothing.
    """

    seed: int = 0
    low: float = -1.0
    high: float = 1.0
    integer_high: int | None = None
    given: bool = False
    inputs: tuple[InputRange | None, ...] = ()
    pictures: bool = False
    shapes: tuple[tuple[Dimension, ...], ...] = ()
    unusual: int = 0

    @property
    def unsaid(self) -> bool:
        """Whether nothing says what an input is for but how a model's input was calibrated, which may be wrong."""
        return any(known is not None and known.calibrated for known in self.inputs)


def draw(
    spec: TensorSpec, shape: tuple[int, ...], limits: SyntheticRange, stream: tuple[int, int]
) -> npt.NDArray[Any]:
    """Draw one array for an input. The same arguments give the same numbers in every process.

    Args:
        spec: The input; its name plays no role (frameworks number names as they like).
        shape: Of the array.
        limits: The range and the seed.
        stream: Positions of the input among the model's and of the sample.

    """
    generator = np.random.default_rng([limits.seed, *stream])
    known = limits.inputs[stream[0]] if limits.inputs else None
    if known is None and spec.stands_for_reals:
        known = InputRange((limits.low,), (limits.high,), "nothing said which")
    if known is None and spec.dtype == "string":
        known = _WORDS
    if known is not None and known.words:
        return known.draw(generator, shape)
    if known is not None:
        drawn = limits.pictures and not known.mask and is_picture(shape)
        turn = stream[1] % _TURNS if limits.unusual else 0
        portions = draw_picture(generator, shape) if drawn else None
        known = replace(known, blank=known.blank and limits.unusual > 1)
        values = known.draw(generator, shape, portions, turn=turn)
        if turn == _ZEROS and limits.unusual > 1 and spec.stands_for_reals and not is_picture(shape):
            rows = generator.permutation(math.prod(shape[:-1])) * 2 < math.prod(shape[:-1])
            held = max(known.low) <= 0 <= min(known.high)
            values = np.where(rows.reshape((*shape[:-1], 1)[: len(shape)]) & held, np.float32(0), values)
        stored = values.astype(np.float32 if spec.quantization is not None else numpy_dtype(spec.dtype))
        return stored.astype(np.float32) if stored.dtype.itemsize == 1 and spec.is_float else stored
    if spec.dtype == "bool":
        return generator.integers(0, 2, shape).astype(np.bool_)
    return generator.integers(0, _integers_below(spec, limits), shape).astype(numpy_dtype(spec.dtype))


def in_words(inputs: Sequence[TensorSpec], limits: SyntheticRange) -> str:
    """What is drawn for inputs; by name where they get different things.

    Args:
        inputs: Of the model; none where they aren't known.
        limits: The range.
    """
    known = limits.inputs or (None,) * len(inputs)
    said = {spec.name: _said(spec, limits, item) for spec, item in zip(inputs, known, strict=True)}
    different = list(dict.fromkeys(said.values()))
    if len(different) < 2:
        return different[0] if different else _uniform(limits)
    return "; ".join(f"{', '.join(name for name in said if said[name] == words)}: {words}" for words in different)


def may_be_picture(spec: TensorSpec) -> bool:
    """Whether an input's samples may be pictures.

    Args:
        spec: The input, its batch in front.
    """
    sizes = tuple(size for size in spec.shape[1:] if isinstance(size, int))
    return len(sizes) == len(spec.shape) - 1 and is_picture(sizes)


def _said(spec: TensorSpec, limits: SyntheticRange, known: InputRange | None) -> str:
    drawn = "pictures that vary slowly, " if limits.pictures and may_be_picture(spec) else ""
    if known is not None:
        return f"{drawn}{known}"
    if spec.stands_for_reals:
        return f"{drawn}{limits.low:g} to {limits.high:g}" if drawn else _uniform(limits)
    if spec.dtype == "bool":
        return "truth values"
    if spec.dtype == "string":
        return str(_WORDS)
    return f"whole numbers from 0 to {_integers_below(spec, limits) - 1}"


def _uniform(limits: SyntheticRange) -> str:
    return f"uniform in [{limits.low:g}, {limits.high:g}]"


def _integers_below(spec: TensorSpec, limits: SyntheticRange) -> int:
    return limits.integer_high or spec.high or _DEFAULT_INTEGER_HIGH


# Pictures that are drawn: they vary slowly over the area, each in a colour of its own, as photos do.


_CHANNELS = {1, 3, 4}
_SMALLEST = 8  # pixels of a side
_COARSE = 5  # patches along a side, between which values change
_OF_COLOUR, _OF_PATCHES = 0.4, 0.5  # of the range; grain is the rest


def is_picture(shape: tuple[int, ...]) -> bool:
    """Whether a sample may be a picture.

    Args:
        shape: Without the batch: [channels, height, width] or [height, width, channels].
    """
    if len(shape) != 3 or _CHANNELS.isdisjoint({shape[0], shape[-1]}):
        return False
    return min(_sides(shape)) >= _SMALLEST


def draw_picture(generator: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Draw a picture.

    Networks average noise away: deep in them, one picture of independent pixels is like another.

    Args:
        generator: Seeded.
        shape: As for `is_picture`.

    Returns:
        Portions of a range, 0 to 1.
    """
    height, width = _sides(shape)
    channels = shape[-1] if _is_last(shape) else shape[0]
    coarse = generator.random((_COARSE, _COARSE, channels), np.float32)
    colour, grain = (
        generator.random((1, 1, channels), np.float32),
        generator.random((height, width, channels), np.float32),
    )
    patches = resize_bilinear(coarse, height, width)
    picture = _OF_COLOUR * colour + _OF_PATCHES * patches + (1 - _OF_COLOUR - _OF_PATCHES) * grain
    return np.ascontiguousarray(picture if _is_last(shape) else picture.transpose(2, 0, 1), np.float32)


def _is_last(shape: tuple[int, ...]) -> bool:
    return shape[-1] in _CHANNELS


def _sides(shape: tuple[int, ...]) -> tuple[int, int]:
    height, width = shape[:2] if _is_last(shape) else shape[1:]
    return height, width
