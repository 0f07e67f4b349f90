"""Small networks in NumPy whose two sides differ by one planted defect."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.searching.defects import DEFECTS, PLACES, Function
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair_lab.tracing.search.objectives import FINDING
from conrepair_lab.tracing.search.space import Space, space_of

__all__ = ["Pair", "pair"]

Array = np.ndarray[Any, Any]

_EXPLAINED = 8  # times what a unit in the last place of the inputs changes


@dataclass
class Pair:
    """Two sides of a network.

    Attributes:
        space: What is searched.
        layers: Before the defect: weights, bias, and what squashes.
        faulty: With the defect.
        right: Without.
        after: Weights behind it, if anything is.
    """

    space: Space
    layers: list[tuple[Array, Array, Function]]
    faulty: Function
    right: Function
    after: Array | None

    def evaluate(self, points: Array) -> tuple[Array, Array, Array]:
        """Scores of points; the largest relative errors, those that nothing explains, and all.

        Infinity on one side only is an error that nothing explains.
        """
        inputs = self._inputs(points)
        with np.errstate(all="ignore"):
            one, other = self._side(inputs, self.faulty), self._side(inputs, self.right)
            exact, bound = self._exact(inputs)
            return self._scores(*(side.astype(np.float64) for side in (one, other, exact, bound)))

    def answers(self, points: Array) -> list[list[Array]]:
        """What the side with the defect gives for each point."""
        with np.errstate(all="ignore"):
            return [[row] for row in self._side(self._inputs(points), self.faulty)]

    def _scores(self, one: Array, other: Array, exact: Array, bound: Array) -> tuple[Array, Array, Array]:
        """What the guide says (tests compare the two), of many rows at once."""
        difference = np.abs(one - other)
        lost = (np.isfinite(one) != np.isfinite(other)).any(-1)
        relative = difference / (np.abs(exact) + 1e-8)
        relative[~np.isfinite(relative)] = 0
        ratios = np.minimum(difference / (bound + 1e-300), 1)
        clear = np.where(lost, np.inf, np.where(ratios == 1, relative, 0).max(-1))
        logs = np.log10(np.nan_to_num(difference / (np.abs(other) + 1e-8), posinf=0) + 1e-10)
        return FINDING * lost + logs.max(-1) + 0.1 * logs.mean(-1), clear, np.where(lost, np.inf, relative.max(-1))

    def _inputs(self, points: Array) -> Array:
        return np.stack([np.concatenate([*self.space.feeds(point).values()]) for point in points])

    def _side(self, x: Array, function: Function) -> Array:
        for weights, bias, squashed in self.layers:
            x = squashed(x @ weights.astype(x.dtype) + bias.astype(x.dtype)).astype(x.dtype)
        x = np.asarray(function(x), x.dtype)
        return x if self.after is None else x @ self.after.astype(x.dtype)

    def _exact(self, inputs: Array) -> tuple[Array, Array]:
        x, generator = inputs.astype(np.float64), np.random.default_rng(0)
        signs = [0, *(generator.choice([-1, 1], x.shape[1]) * 2.0**-23 for _ in range(2))]
        every = self._side(np.concatenate([x * (1 + sign) for sign in signs]), self.right)
        exact, *changed = np.split(every, len(signs))
        return exact, _EXPLAINED * np.maximum(*(np.abs(side - exact) for side in changed))


def pair(name: str, seed: int) -> Pair:
    """A network with one defect.

    Args:
        name: Of the defect.
        seed: Sizes, weights, and what lies before and behind the defect follow from it.
    """
    generator = np.random.default_rng([seed, *name.encode()])
    inputs = np.diff([0, *np.sort(generator.integers(3, 60, generator.integers(0, 4))), 64])
    inputs = [max(int(size * generator.uniform(0.3, 1)), 1) for size in inputs]
    sizes = [sum(inputs), *generator.integers(8, 33, generator.integers(0, 4))]
    layers, alike = [], generator.random() < 0.3 or name.startswith("variance")
    for before, behind in itertools.pairwise(sizes):
        mean = alike / before
        weights = generator.normal(mean, before**-0.5 * (0.001 if mean else 1), (before, behind))
        bias = generator.normal(0, 0.3, behind) * (generator.random() < 0.1) * (name in PLACES)
        squashed = (np.asarray, np.tanh, _leaky)[generator.choice(3, p=[0.6, 0.15, 0.25])]
        layers.append((weights.astype(np.float32), bias.astype(np.float32), squashed))
    if name in PLACES:
        gain = PLACES[name] / _farthest(layers, sizes[0], np.sign(PLACES[name])) * generator.uniform(1.05, 1.3)
    else:
        gain = 10 ** generator.uniform(0, 0.8) / _reached(layers, generator.uniform(-5, 5, (256, sizes[0]))).std()
    gain = np.eye(sizes[-1]) * gain
    layers.append((gain.astype(np.float32), np.zeros(sizes[-1], np.float32), np.asarray))
    last = int(DEFECTS[name][1](np.ones((1, sizes[-1]), np.float32)).shape[1])
    behind = generator.normal(0, last**-0.5, (last, generator.integers(4, 17))).astype(np.float32)
    space = space_of([TensorSpec(f"x{place}", (size,), "float32") for place, size in enumerate(inputs)])
    seen = PLACES.get(name, 0) >= 0  # what is wrong in small numbers only isn't seen in sums with others
    return Pair(space, layers, *DEFECTS[name], behind if generator.random() < 0.4 and seen else None)


def _leaky(x: Array) -> Array:
    return np.asarray(np.where(x > 0, x, 0.1 * x))


def _reached(layers: list[tuple[Array, Array, Function]], x: Array) -> Array:
    for weights, bias, squashed in layers:
        x = squashed(x @ weights + bias)
    return x


def _farthest(layers: list[tuple[Array, Array, Function]], size: int, sign: float) -> float:
    """About the most that any number before the defect can be, in the direction of a sign."""
    best = np.full(size, 5.0)
    for place in [*range(size)] * 2:
        tried = np.repeat(best[np.newaxis], 2, axis=0)
        tried[:, place] = -5, 5
        best = tried[(sign * _reached(layers, tried)).max(-1).argmax()]
    return float(sign * (sign * _reached(layers, best[np.newaxis])).max())
