"""A search for values with which every tensor of a network is finite.

Where a tensor isn't, the sources go down the derivative of a loss, step by step (after NNSmith's value search).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from conrepair.ground.metrics.ulps import grid_of, is_real
from conrepair_lab.generate.graph import Draft, Node, Tensor
from conrepair_lab.generate.onnx_form import ModelSession, RefusedError, model_of
from conrepair_lab.generate.values.descent import Descent
from conrepair_lab.generate.values.drawn import drawn_values

Array = np.ndarray[Any, Any]

# Values at the ends of what types and operators bear: tried on sources of a network that's finite already.
Change = Callable[[Array, np.random.Generator], Array]


def _limits(x: Array, generator: np.random.Generator) -> Array:
    ends = np.array([np.iinfo(x.dtype).min, np.iinfo(x.dtype).max], x.dtype)
    return np.where(generator.random(x.shape) < 0.3, generator.choice(ends, x.shape), x)


_ZEROS = (0.0, -0.0)
EXTREMES: Mapping[str, tuple[str, Change]] = {
    "duplicated values": ("fiu", lambda x, drawn: drawn.choice(x.ravel()[:2], x.shape) if x.size else x),
    "integer limits": ("iu", _limits),
    "large values": ("f", lambda x, _: x * (64 if x.dtype == np.float16 else 1e4)),
    "signed zeros": ("f", lambda x, drawn: np.where(drawn.random(x.shape) < 0.3, drawn.choice(_ZEROS, x.shape), x)),
    "tiny values": ("f", lambda x, _: x * 2.0 ** grid_of(x.dtype).lowest * 8),
    "values at a threshold": ("f", lambda x, _: np.round(x * 2) / 2),
}
"""By name, the kinds of types that it's for (as NumPy calls them; bfloat16 is an "f"), and what an array becomes."""


def extreme(tensor: Tensor, value: Array, random: Random) -> tuple[str, Array] | None:
    """Push one source to an end.

    Args:
        tensor: The source.
        value: What it has.
        random: The end is drawn from here.

    Returns:
        The end's name, and the new value; None for a source whose values are prescribed, or of a type without ends.
    """
    kind = "f" if is_real(value) else value.dtype.kind
    names = [name for name, (kinds, _) in EXTREMES.items() if kind in kinds]
    if tensor.values is not None or not names or not value.size:
        return None
    name = random.choice(names)
    generator = np.random.default_rng(random.getrandbits(64))
    with np.errstate(over="ignore"):
        return name, EXTREMES[name][1](value, generator).astype(value.dtype)


_STEPS, _PATIENCE = 120, 12
"""Steps of a search, and those in which nothing got better until it's given up."""

_STILL = 0.04
"""The share of a network's outputs that may stay as they are when inputs are drawn anew."""


@dataclass
class Settled:
    """Values of a network.

    Attributes:
        sources: By name, values of inputs and weights.
        computed: By name, what nodes make of them.
        ends: Names of the extremes to which sources were pushed.
    """

    sources: dict[str, Array]
    computed: dict[str, Array]
    ends: tuple[str, ...] = ()


@dataclass
class Settling:
    """The search for one network.

    Attributes:
        draft: The network.
        generator: What's drawn comes from here.
        guilty: Nodes that made something that's not finite of what is, after a search that failed.
        message: What the runtime said if it didn't compute the network.
        sources: The values that the search ended with.
        computed: What nodes made of them last.
        session: The network, loaded.
    """

    draft: Draft
    generator: np.random.Generator
    guilty: list[Node] = field(default_factory=list)
    message: str = ""
    sources: dict[str, Array] = field(default_factory=dict)
    computed: dict[str, Array] = field(default_factory=dict)
    session: ModelSession | None = None

    def settled(self, kept: Mapping[str, Array] | None = None) -> Settled | None:
        """Find values.

        Args:
            kept: Values that sources have already.

        Returns:
            The values; None if there are nodes (`guilty`) for which none were found, or a `message`.
        """
        names = self.draft.made()
        try:
            self.session = ModelSession(model_of(self.draft, {}, names, typed=False), names)
            self.sources = {name: self._drawn(name, tensor, kept) for name, tensor in self.draft.sources.items()}
            return self._search(self.session, self.sources)
        except RefusedError as error:
            self.message = str(error)
            return None

    def pushed(self, found: Settled, random: Random, share: float) -> Settled:
        """Push sources to ends of what they may be, as far as all stays finite.

        Args:
            found: The values so far.
            random: Which sources, and which ends, comes from here.
            share: Of the sources that are tried.
        """
        for name, tensor in self.draft.sources.items():
            changed = extreme(tensor, found.sources[name], random) if random.random() < share else None
            if changed is None or self.session is None:
                continue
            sources = {**found.sources, name: changed[1]}
            with suppress(RefusedError):
                computed = self.session.run(sources)
                if not any(map(flaw_of, computed.values())):
                    found = Settled(sources, computed, (*found.ends, changed[0]))
        return found

    def stills(self, inputs: Collection[str], *, finite: bool = True) -> list[Node]:
        """Nodes because of which outputs stay when inputs are drawn anew; and what isn't finite then only.

        Args:
            inputs: Names of sources that are drawn anew.
            finite: Whether what isn't finite then counts.
        """
        others = {name: self._drawn(name, self.draft.sources[name], None) for name in inputs}
        try:
            computed = self.session.run({**self.sources, **others}) if self.session else {}
        except RefusedError:
            return []
        moved = {name for name, array in computed.items() if not np.array_equal(array, self.computed[name])}
        moved.update(inputs)
        ended = [node for node in self._flawed(computed)[:1] if finite and node not in self.guilty]
        still, made = set(self.draft.outputs()) - moved, set(self.draft.made())
        if len(still) <= _STILL * len(self.draft.outputs()):
            return ended
        for node in reversed(self.draft.nodes):
            if still.isdisjoint(node.outputs):
                continue
            if moved.isdisjoint(node.inputs) and not made.isdisjoint(node.inputs):
                still.update(node.inputs)
            elif node not in ended:
                ended.append(node)
        return ended

    def _drawn(self, name: str, tensor: Tensor, kept: Mapping[str, Array] | None) -> Array:
        value = None if kept is None else kept.get(name)
        if value is not None and not flaw_of(value):
            return value
        return drawn_values(tensor.type, tensor.values, self.generator, tensor.wish)

    def _search(self, session: ModelSession, sources: dict[str, Array]) -> Settled | None:
        descent = Descent(self.draft)
        best, since = (0, -np.inf), 0
        for _ in range(_STEPS):
            self.computed = computed = session.run(sources)
            self.guilty = self._flawed(computed)
            if not self.guilty:
                return Settled(sources, computed)
            loss = descent.step(self.guilty[0], sources, computed)
            if loss is None:
                break
            score = (self.draft.nodes.index(self.guilty[0]), -loss)
            best, since = (score, 0) if score > best else (best, since + 1)
            if since > _PATIENCE:
                break
        return None

    def _flawed(self, computed: Mapping[str, Array]) -> list[Node]:
        """Nodes that make something that isn't finite of what is."""
        flawed = {name for name, array in computed.items() if flaw_of(array)}
        return [
            node
            for node in self.draft.nodes
            if flawed.isdisjoint(node.inputs) and not flawed.isdisjoint(node.outputs)
        ]


def flaw_of(array: Array) -> str:
    """What is wrong with a tensor's values; "" for nothing."""
    if not is_real(array) or not array.size:
        return ""
    with np.errstate(invalid="ignore"):  # bfloat16's largest warns of NaN
        largest = float(np.abs(array).max())  # NaN where there's one
    if not math.isfinite(largest):
        return "not finite"
    return "subnormal" if 0 < largest < 2.0 ** grid_of(array.dtype).lowest else ""
