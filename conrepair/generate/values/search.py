"""A search for values with which every tensor of a network is finite.

Where a tensor isn't, the node that made it has a loss on what it reads: how far that is outside of where the operator
is finite, or how large it is. The sources go down that loss's derivative, step by step (after NNSmith's value search;
steps are normalized by tensor in place of Adam).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from conrepair.generate.graph import Draft, Node, Tensor
from conrepair.generate.onnx_form import model_of
from conrepair.generate.running import RefusedError, Session
from conrepair.generate.values.derivatives import gradients
from conrepair.generate.values.drawn import drawn_values
from conrepair.generate.values.extremes import extreme

__all__ = ["Settled", "Settling", "flaw_of"]

Array = np.ndarray[Any, Any]

_STEPS = 24
_RATES = (0.1, 0.2, 0.4, 0.8)
_CALM = 1.0
"""What is larger than this is made smaller where a node overflows."""


@dataclass
class Settled:
    """Values of a network.

    Attributes:
        sources: By name, values of inputs and weights.
        computed: By name, what nodes make of them.
        steps: How many steps the search took.
        ends: Names of the extremes to which sources were pushed.
    """

    sources: dict[str, Array]
    computed: dict[str, Array]
    steps: int
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
    session: Session | None = None

    def settled(self, kept: Mapping[str, Array] | None = None) -> Settled | None:
        """Find values.

        Args:
            kept: Values that sources have already.

        Returns:
            The values; None if there is a node (`guilty`) for which none were found, or a `message`.
        """
        names = self.draft.made()
        try:
            self.session = Session(model_of(self.draft, {}, names, typed=False), names)
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
                found = Settled(sources, computed, found.steps, (*found.ends, changed[0]))
        return found

    def _drawn(self, name: str, tensor: Tensor, kept: Mapping[str, Array] | None) -> Array:
        if kept is not None and name in kept:
            return kept[name]
        return drawn_values(tensor.type, tensor.values, self.generator, tensor.wish)

    def _search(self, session: Session, sources: dict[str, Array]) -> Settled | None:
        before: Node | None = None
        tries = 0
        for step in range(_STEPS):
            computed = session.run(sources)
            node = self._first_flawed(computed)
            if node is None:
                return Settled(sources, computed, step)
            tries = tries + 1 if node is before else 0
            before = node
            rate = _RATES[min(tries, len(_RATES) - 1)]
            if tries >= 2 * len(_RATES) or not self._improved(node, sources, computed, rate):
                break
        self.guilty = before
        return None

    def _first_flawed(self, computed: Mapping[str, Array]) -> Node | None:
        for node in self.draft.nodes:
            for name in node.outputs:
                if name and flaw_of(computed[name]):
                    return node
        return None

    def _improved(self, node: Node, sources: dict[str, Array], computed: Mapping[str, Array], rate: float) -> bool:
        """Take a step; whether any source moved."""
        constants = {name: item.array for name, item in self.draft.tensors.items() if item.array is not None}
        values: dict[str, Array] = {**constants, **sources, **computed}
        pending: dict[str, Array] = {}
        for place, gradient in _losses(node, values).items():
            _add(pending, node.inputs[place], gradient)
        for other in reversed(self.draft.nodes[: self.draft.nodes.index(node)]):
            wanted = pending.get(other.outputs[0])
            if wanted is None or other.piece is not None:
                continue
            read = [values.get(item) for item in other.inputs]
            with np.errstate(all="ignore"):
                parts = gradients(other, read, [values.get(item) for item in other.outputs], wanted)
            for place, part in parts.items():
                _add(pending, other.inputs[place], np.nan_to_num(part))
        moved = False
        for name, tensor in self.draft.sources.items():
            if name in pending and sources[name].dtype.kind == "f" and np.any(pending[name]):
                sources[name] = _moved(sources[name], pending[name], rate, tensor)
                moved = True
        return moved


def flaw_of(array: Array) -> str:
    """What is wrong with a tensor's values; "" for nothing."""
    if array.dtype.kind != "f":
        return ""
    if not np.isfinite(array).all():
        return "not finite"
    if array.size and (largest := np.abs(array).max()) and largest < np.finfo(array.dtype).tiny:
        return "subnormal"
    return ""


def _losses(node: Node, values: Mapping[str, Array]) -> dict[int, Array]:
    """The derivative of a node's loss in what it reads."""
    outside: dict[int, Array] = {}
    for place, (low, high) in node.domains.items():
        x = values[node.inputs[place]].astype(np.float64)
        margin = 1e-3 * (1 + abs(low if np.isfinite(low) else 0.0))
        beyond: Array = (x > high - margin).astype(np.float64) - (x < low + margin)
        if beyond.any():
            outside[place] = beyond
    if outside:
        return outside
    large: dict[int, Array] = {}
    for place, name in enumerate(node.inputs):
        read = values.get(name)
        if read is not None and read.dtype.kind == "f":
            large[place] = np.where(np.abs(read) > _CALM, np.sign(read), 0.1 * np.sign(read)).astype(np.float64)
    return large


def _add(pending: dict[str, Array], name: str, gradient: Array) -> None:
    pending[name] = pending[name] + gradient if name in pending else np.asarray(gradient)


def _moved(value: Array, gradient: Array, rate: float, tensor: Tensor) -> Array:
    size = max(1.0, float(np.abs(value).mean()))
    step = gradient / np.abs(gradient).max()
    found = value.astype(np.float64) - rate * size * np.sign(step) * np.sqrt(np.abs(step))
    if tensor.values is not None:
        found = np.clip(found, tensor.values.low, tensor.values.high)
    return np.asarray(found.astype(value.dtype))
