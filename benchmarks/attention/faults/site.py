"""A place of a fault, and what a fault is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.attention.spec import Spec, Writing
from benchmarks.common.plain_graph import Array, PlainGraph
from conrepair.ground.graph.kinds import Kind

__all__ = ["AttentionFault", "Site"]


@dataclass(frozen=True)
class Site:
    """A block of a graph, to be edited in place.

    Attributes:
        graph: The whole.
        spec: What it computes.
        writing: How it's written.
        block: Number of the block.
        generator: For what's drawn.
    """

    graph: PlainGraph
    spec: Spec
    writing: Writing
    block: int
    generator: np.random.Generator

    @property
    def layer(self) -> str:
        """Scope of the block."""
        return f"/layers.{self.block}"

    @property
    def attn(self) -> str:
        """Scope of its attention."""
        return f"{self.layer}/attn"

    @property
    def mask(self) -> str:
        """Scope of the mask that it reads."""
        return "/mask" if self.writing.shared else f"{self.layer}/mask"

    def has(self, *names: str) -> bool:
        """Whether there are such nodes."""
        return all(name in self.graph.nodes for name in names)

    def numbers(self, name: str) -> Array | None:
        """A constant, if there's one."""
        return self.graph.constants.get(name)

    def chosen(self, *values: str) -> str:
        """One of some."""
        return values[int(self.generator.integers(len(values)))]


@dataclass(frozen=True)
class AttentionFault:
    """What converters get wrong.

    Attributes:
        name: In the names of cases.
        kind: What a diagnosis should call it.
        apply: Puts it into a block; False where that has no place for it.
        mask: Whether it's in the mask, which blocks may share.
        shared: Whether it's in what all blocks share, always.
    """

    name: str
    kind: Kind
    apply: Callable[[Site], bool]
    mask: bool = False
    shared: bool = False
