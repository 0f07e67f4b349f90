"""How the array that a target's first layer gets follows from the source's: axes, channels, scale and offset."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from conrepair.diagnosis.localization.numbers import preparing
from conrepair.ground.runtime.words import percent

# The ways in which a captured array may have been turned into one of another shape.

_MOST_CHANNELS = 4
"""An axis of at most so many elements may be that of the colours."""

_MOST_AXES = 5


@dataclass(frozen=True)
class _Arranged:
    """An array with its axes as another has them.

    Attributes:
        axes: For numpy.transpose.
        reshaped: Whether it was then reshaped, so that values stand at wrong places.
        flipped: Axes of the result along which it's reversed.
        array: The result.
    """

    axes: tuple[int, ...]
    reshaped: bool
    flipped: tuple[int, ...]
    array: npt.NDArray[np.float64]

    @property
    def words(self) -> list[str]:
        """The steps that make one input from the other, in words."""
        steps = []
        if self.axes != tuple(range(len(self.axes))):
            steps.append(f"axes in the order {list(self.axes)}")
        if self.reshaped:
            steps.append(f"reshaped to {list(self.array.shape)} without moving values")
        if self.flipped:
            steps.append(f"reversed along axes {list(self.flipped)}")
        return steps


def arrangements(source: npt.NDArray[np.float64], shape: tuple[int, ...]) -> Iterator[_Arranged]:
    """An array in every order of its axes that has a shape, flipped, and reshaped; simple ones first.

    Args:
        source: Samples first.
        shape: Wanted.
    """
    if source.ndim != len(shape) or source.ndim > _MOST_AXES or source[0].size != math.prod(shape[1:]):
        return
    identity = tuple(range(source.ndim))
    orders = [(0, *order) for order in itertools.permutations(identity[1:])]
    orders.sort(key=lambda order: sum(map(int.__ne__, order, identity)))
    fitting = [axes for axes in orders if tuple(source.shape[axis] for axis in axes) == shape]
    for axes in fitting:
        yield _Arranged(axes, False, (), source.transpose(axes))
    pictures = tuple(axis for axis in range(1, source.ndim) if shape[axis] > _MOST_CHANNELS)
    if source.ndim == 4 and len(pictures) >= 2:
        height, width = pictures[-2:]
        for axes, flipped in itertools.product(fitting, ((width,), (height,), (height, width))):
            yield _Arranged(axes, False, flipped, np.flip(source.transpose(axes), flipped))
    for axes in orders:
        # Values in another layout's order under this shape: what a reshape in place of a transpose gives.
        if axes not in fitting:
            yield _Arranged(axes, True, (), source.transpose(axes).reshape(shape))


_Float64 = npt.NDArray[np.float64]
_Fit = tuple[tuple[int, ...] | None, _Float64]

_MOST_VALUES = 1 << 20  # more samples than this say nothing new
_IMAGENET_MEAN = np.array((0.485, 0.456, 0.406))
_IMAGENET_STD = np.array((0.229, 0.224, 0.225))


@dataclass(frozen=True)
class Numbers:
    """What least squares found for one arrangement.

    Attributes:
        order: The source's channel in each of the target's; None where channels are mixed (grey, YUV).
        matrix: A row of factors for each of the target's channels, or the one factor for all.
        offsets: One for each row: target = matrix * source + offset.
        residual: What this leaves unexplained, relative to the spread of the target's values.
    """

    order: tuple[int, ...] | None
    matrix: _Float64
    offsets: _Float64
    residual: float


@dataclass(frozen=True)
class InputRelation:
    """The target's array as computed from the source's.

    Attributes:
        arranged: The source's, with its axes as the target has them.
        numbers: That make the target's of it.
        evidence: In words.
    """

    arranged: _Arranged
    numbers: Numbers
    evidence: str

    @property
    def is_identity(self) -> bool:
        """Whether both models get the same input."""
        return self.evidence == _IDENTITY


def explain_inputs(
    source: npt.NDArray[Any], target: npt.NDArray[Any], *, tolerance: float = 1e-3
) -> InputRelation | None:
    """Explain one captured input array by another, in closed form.

    For every order of the axes that fits the shape, for flips of pictures and for reshapes, least squares give the
    numbers: one factor and offset; one for each channel, the channels in any order; or a matrix of channels. The
    simplest that explains the values as well as any is taken.

    Args:
        source: What the source's first layer gets, samples first.
        target: What the target's gets, on the same samples.
        tolerance: Unexplained share of the target's spread that counts as rounding; of 8-bit inputs about 0.01.

    Returns:
        The relation; None when nothing explains the values, or they are constant.
    """
    source, target = np.asarray(source, np.float64), np.asarray(target, np.float64)
    if not source.size or not target.size or len(source) != len(target) or not target.std():
        return None
    if not (np.isfinite(source).all() and np.isfinite(target).all()):
        return None
    samples = max(1, _MOST_VALUES // source[0].size)
    source, target = source[:samples], target[:samples]
    found: list[tuple[_Arranged, Numbers]] = []
    for arranged in arrangements(source, target.shape):
        found += [(arranged, item) for item in _fitted(arranged.array, target) if item.residual <= tolerance]
        if any(item.residual <= preparing.ROUNDING for _, item in found):
            break  # what follows is less simple
    best = min((numbers.residual for _, numbers in found), default=0.0)
    for arranged, numbers in found:
        if numbers.residual <= preparing.CLEAR * best + preparing.ROUNDING:
            return _relation(arranged, numbers, float(target.std()))
    return None


def _fitted(array: _Float64, target: _Float64) -> Iterator[Numbers]:
    """One factor for all, one for each channel, a matrix."""
    yield _numbers(array.reshape(1, -1), target.reshape(1, -1), _by_channel)
    axes = [axis for axis in (1, target.ndim - 1) if target.ndim > 2 and 1 < target.shape[axis] <= _MOST_CHANNELS]
    for axis in dict.fromkeys(axes):
        rows, wanted = (np.moveaxis(item, axis, 0).reshape(target.shape[axis], -1) for item in (array, target))
        yield _numbers(rows, wanted, _by_channel)
        yield _numbers(rows, wanted, _by_matrix)


def _numbers(rows: _Float64, wanted: _Float64, fit: Callable[[_Float64, _Float64], _Fit]) -> Numbers:
    """Regress the target's channels [C, values] on the source's."""
    means, wanted_means = rows.mean(axis=1), wanted.mean(axis=1)
    rows, wanted = rows - means[:, None], wanted - wanted_means[:, None]
    order, matrix = fit(rows, wanted)
    scale = float(np.linalg.norm(wanted))
    # From the values: a difference of sums of squares has lost half of the digits.
    residual = float(np.linalg.norm(wanted - matrix @ rows)) / scale if scale else np.inf
    return Numbers(order, matrix, wanted_means - matrix @ means, residual)


def _by_channel(rows: _Float64, wanted: _Float64) -> _Fit:
    """Each of the target's channels from the one of the source's that explains it best."""
    spread, wanted_spread = np.square(rows).sum(axis=1), np.square(wanted).sum(axis=1)
    shared = rows @ wanted.T
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.where(spread[:, None] > 0, shared / spread[:, None], 0.0)
    left = np.maximum(wanted_spread - slopes * shared, 0.0)
    chosen, places = scipy.optimize.linear_sum_assignment(left)
    order = chosen[np.argsort(places)]
    return tuple(map(int, order)), np.where(order[:, None] == np.arange(len(order)), slopes.T, 0.0)


def _by_matrix(rows: _Float64, wanted: _Float64) -> _Fit:
    """Each of the target's channels as a sum of the source's."""
    return None, np.asarray(np.linalg.lstsq(rows @ rows.T, rows @ wanted.T, rcond=None)[0].T, np.float64)


_IDENTITY = "both models get the same input"


def _relation(arranged: _Arranged, numbers: Numbers, spread: float) -> InputRelation:
    steps = [*arranged.words, *_in_words(numbers, spread)]
    evidence = _IDENTITY
    if steps:
        evidence = f"the converted model's input is the original's, with {'; '.join(steps)}"
        evidence += f" ({percent(numbers.residual)} differ beside)"
    return InputRelation(arranged, numbers, evidence)


def _in_words(numbers: Numbers, spread: float) -> list[str]:
    order = numbers.order
    if order is None:
        rows = "; ".join(", ".join(f"{value:.3g}" for value in row) for row in numbers.matrix)
        return [f"channels mixed by [{rows}] plus {_listed(numbers.offsets)}"]
    steps = []
    if order != tuple(range(len(order))):
        reversal = " (RGB against BGR)" if order == (2, 1, 0) else ""
        steps.append(f"channels in the order {list(order)}{reversal}")
    factors, offsets = numbers.matrix[range(len(order)), order], numbers.offsets
    if np.allclose(factors, 1, atol=preparing.SAME) and np.allclose(offsets, 0, atol=preparing.SAME * spread):
        return steps
    known = _known(factors, offsets)
    return [*steps, f"{known}x becomes {_listed(factors)} x{_added(offsets)}"]


def _known(factors: _Float64, offsets: _Float64) -> str:
    """What such numbers usually are."""
    usual: dict[str, tuple[Any, Any]] = {
        "divided by 255 (once more?), ": (1 / 255, 0.0),
        "times 255 (not divided by it?), ": (255.0, 0.0),
        "from [0, 1] to [-1, 1], ": (2.0, -1.0),
        "from [-1, 1] to [0, 1], ": (0.5, 0.5),
        "from [0, 255] to [-1, 1], ": (1 / 127.5, -1.0),
        "from [-1, 1] to [0, 255], ": (127.5, 127.5),
        "ImageNet's normalisation (once more?), ": (1 / _IMAGENET_STD, -_IMAGENET_MEAN / _IMAGENET_STD),
        "ImageNet's normalisation undone, ": (_IMAGENET_STD, _IMAGENET_MEAN),
        "the bytes normalised as ImageNet's, ": (1 / (255 * _IMAGENET_STD), -_IMAGENET_MEAN / _IMAGENET_STD),
    }
    for words, (factor, offset) in usual.items():
        for step in (1, -1):
            wanted = [np.resize(np.atleast_1d(values)[::step], len(factors)) for values in (factor, offset)]
            fits = np.size(factor) in (1, len(factors)) and np.allclose(factors, wanted[0], rtol=preparing.SAME)
            if fits and np.allclose(offsets, wanted[1], atol=preparing.SAME):
                return words
    return ""


def _added(values: _Float64) -> str:
    text = _listed(values)
    return f" - {text[1:]}" if text.startswith("-") else f" + {text}"


def _listed(values: _Float64) -> str:
    if np.ptp(values) <= preparing.SAME * np.abs(values).max(initial=0):
        return f"{values[0]:.4g}"
    return "[" + ", ".join(f"{value:.4g}" for value in values) + "]"
