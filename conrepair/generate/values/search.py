"""A search for values with which every tensor of a network is finite.

Where a tensor isn't, the sources go down the derivative of a loss, step by step (after NNSmith's value search).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from conrepair.generate.graph import Draft, Node, Tensor
from conrepair.generate.onnx_form import model_of
from conrepair.generate.running import ModelSession, RefusedError
from conrepair.generate.values.descent import Descent
from conrepair.generate.values.drawn import drawn_values
from conrepair.generate.values.extremes import extreme

__all__ = ["Settled", "Settling", "flaw_of"]

Array = np.ndarray[Any, Any]

_STEPS, _PATIENCE = 120, 40
"""Steps of a search, and those in which nothing got better until it's given up."""


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
        guilty: The first node that made something that's not finite, after a search that failed.
        message: What the runtime said if it didn't compute the network.
        sources: The values that the search ended with.
        session: The network, loaded.
    """

    draft: Draft
    generator: np.random.Generator
    guilty: Node | None = None
    message: str = ""
    sources: dict[str, Array] = field(default_factory=dict)
    session: ModelSession | None = None

    def settled(self, kept: Mapping[str, Array] | None = None) -> Settled | None:
        """Find values.

        Args:
            kept: Values that sources have already.

        Returns:
            The values; None if there is a node (`guilty`) for which none were found, or a `message`.
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
            try:
                computed = self.session.run(sources)
            except RefusedError:
                continue
            if not any(map(flaw_of, computed.values())):
                found = Settled(sources, computed, (*found.ends, changed[0]))
        return found

    def _drawn(self, name: str, tensor: Tensor, kept: Mapping[str, Array] | None) -> Array:
        value = None if kept is None else kept.get(name)
        if value is not None and not flaw_of(value):
            return value
        return drawn_values(tensor.type, tensor.values, self.generator, tensor.wish)

    def _search(self, session: ModelSession, sources: dict[str, Array]) -> Settled | None:
        descent = Descent(self.draft)
        best, since = (0, -np.inf), 0
        for _ in range(_STEPS):
            computed = session.run(sources)
            node = self._first_flawed(computed)
            if node is None:
                return Settled(sources, computed)
            self.guilty = node
            loss = descent.step(node, sources, computed)
            if loss is None:
                break
            score = (self.draft.nodes.index(node), -loss)
            best, since = (score, 0) if score > best else (best, since + 1)
            if since > _PATIENCE:
                break
        return None

    def _first_flawed(self, computed: Mapping[str, Array]) -> Node | None:
        for node in self.draft.nodes:
            for name in node.outputs:
                if name and flaw_of(computed[name]):
                    return node
        return None


def flaw_of(array: Array) -> str:
    """What is wrong with a tensor's values; "" for nothing."""
    if array.dtype.kind != "f":
        return ""
    if not np.isfinite(array).all():
        return "not finite"
    if array.size and (largest := np.abs(array).max()) and largest < np.finfo(array.dtype).tiny:
        return "subnormal"
    return ""
