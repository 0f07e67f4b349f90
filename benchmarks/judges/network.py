"""A network that pairs are made of: a graph, and what it's fed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.common.plain_graph import FLOAT, Array, PlainGraph

__all__ = ["COUNT", "Draw", "Maker", "Network", "Writer"]

COUNT = 8
"""Samples of each pair."""

_OPSET = 17
Draw = np.random.Generator


@dataclass
class Network:
    """A network.

    Attributes:
        graph: Its nodes.
        feeds: By input, samples first.
    """

    graph: PlainGraph
    feeds: dict[str, Array] = field(default_factory=dict)


Maker = Callable[[Draw], Network]


class Writer:
    """Writes a network node by node, of weights that a generator draws.

    Attributes:
        draw: The generator.
        network: So far.
    """

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.network = Network(PlainGraph(_OPSET))

    def take(self, name: str, values: Array) -> str:
        """An input.

        Args:
            name: Of it.
            values: What it's fed; float32.
        """
        graph = self.network.graph
        graph.inputs[name] = FLOAT, ["batch", *values.shape[1:]]
        self.network.feeds[name] = np.asarray(values, np.float32)
        return name

    def normal(self, *sizes: int, spread: float = 1.0, mean: float = 0.0, name: str = "x") -> str:
        """An input of normally distributed numbers, `COUNT` samples of the sizes."""
        return self.take(name, self.draw.normal(mean, spread, (COUNT, *sizes)))

    def uniform(self, low: float, high: float, *sizes: int, name: str = "x") -> str:
        """An input of evenly distributed numbers, `COUNT` samples of the sizes."""
        return self.take(name, self.draw.uniform(low, high, (COUNT, *sizes)))

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """A node: its first output."""
        name = f"{operator.lower()}_{len(self.network.graph.nodes)}"
        return self.network.graph.add(name, operator, *inputs, outputs=outputs, **attributes)

    def weights(self, *sizes: int, spread: float | None = None) -> str:
        """Drawn numbers; by default such that sums of the first axis but one keep their size."""
        spread = 1 / np.sqrt(np.prod(sizes[1:] if len(sizes) > 2 else sizes[:1])) if spread is None else spread
        return self.constant(self.draw.normal(0, spread, sizes))

    def constant(self, values: Any) -> str:
        """A constant, float32 unless it's of whole numbers."""
        array = np.asarray(values)
        array = array.astype(np.int64 if array.dtype.kind in "iu" else np.float32)
        return self.network.graph.constant(f"constant_{len(self.network.graph.constants)}", array)

    def dense(self, x: str, given: int, made: int, *, spread: float | None = None) -> str:
        """A product with weights, and a bias."""
        return self.add("Gemm", x, self.weights(given, made, spread=spread), self.weights(made, spread=0.1))

    def conv(self, x: str, given: int, made: int, size: int = 3, **attributes: Any) -> str:
        """A convolution of pictures that keeps their sizes unless attributes say otherwise."""
        attributes.setdefault("pads", [size // 2] * 4)
        groups = attributes.get("group", 1)
        return self.add(
            "Conv", x, self.weights(made, given // groups, size, size), self.weights(made, spread=0.1), **attributes
        )

    def normalized(self, x: str, size: int, **attributes: Any) -> str:
        """A layer normalization of the last axis."""
        scale = self.constant(self.draw.uniform(0.7, 1.3, size))
        return self.add("LayerNormalization", x, scale, self.weights(size, spread=0.1), **attributes)

    def ended(self, *outputs: tuple[str, tuple[int, ...]]) -> Network:
        """The network.

        Args:
            outputs: Names and sizes behind the samples.
        """
        for name, sizes in outputs:
            self.network.graph.outputs[name] = FLOAT, ["batch", *sizes]
        return self.network
