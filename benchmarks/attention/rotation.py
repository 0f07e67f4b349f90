"""Rotary positions, in halves (Llama) or in pairs (GPT-J)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.plain_graph import FLOAT, Array, PlainGraph

if TYPE_CHECKING:
    from benchmarks.attention.networks import Builder

__all__ = ["rotated", "tables", "turned"]

_BASE = 100.0  # smaller than usual: few tokens turn far enough
_ALL = np.iinfo(np.int64).max


def tables(builder: Builder) -> tuple[str, str]:
    """Cosines and sines, [tokens, width], computed ahead or in the graph."""
    spec, graph = builder.spec, builder.graph
    frequencies = (_BASE ** -(np.arange(0, spec.width, 2) / spec.width)).astype(np.float32)
    halves = spec.position == "rope-half"
    spread = np.concatenate([frequencies, frequencies]) if halves else np.repeat(frequencies, 2)
    if builder.writing.constant:
        angles = np.outer(np.arange(spec.past, spec.past + spec.tokens, dtype=np.float32), spread)
        cosines = graph.constant("/rotary/cos", np.cos(angles).astype(np.float32))
        return cosines, graph.constant("/rotary/sin", np.sin(angles).astype(np.float32))
    size = graph.add("/rotary/size", "Shape", "input_ids")
    count = graph.add("/rotary/count", "Gather", size, graph.constant("/rotary/1", np.int64(1)), axis=0)
    numbers = [graph.constant("/rotary/0", np.int64(0)), count, graph.constant("/rotary/step", np.int64(1))]
    places = graph.add("/rotary/range", "Range", *numbers)
    places = graph.add("/rotary/offset", "Add", places, graph.constant("/rotary/past", np.int64(spec.past)))
    places = graph.add("/rotary/cast", "Cast", places, to=FLOAT)
    column = graph.add("/rotary/column", "Unsqueeze", places, axes=[1])
    angles = graph.add("/rotary/angles", "Mul", column, graph.constant("/rotary/frequencies", spread[None]))
    return graph.add("/rotary/cosines", "Cos", angles), graph.add("/rotary/sines", "Sin", angles)


def rotated(builder: Builder, name: str, value: str, given: tuple[str, str]) -> str:
    """Queries or keys, turned by their places."""
    graph = builder.graph
    straight = graph.add(f"{name}_cos", "Mul", value, given[0])
    turned(graph, name, value, builder.spec.width, halves=builder.spec.position == "rope-half")
    across = graph.add(f"{name}_sin", "Mul", f"{name}_rotated_output_0", given[1])
    return graph.add(f"{name}_rope", "Add", straight, across)


def turned(graph: PlainGraph, name: str, value: str, width: int, *, halves: bool) -> None:
    """By a right angle, into `{name}_rotated`."""
    if halves:
        first = _slice(graph, f"{name}_first", value, 0, width // 2, 1)
        second = _slice(graph, f"{name}_second", value, width // 2, _ALL, 1)
        graph.add(f"{name}_rotated", "Concat", graph.add(f"{name}_neg", "Neg", second), first, axis=-1)
        return
    first = _slice(graph, f"{name}_even", value, 0, _ALL, 2)
    second = _slice(graph, f"{name}_odd", value, 1, _ALL, 2)
    pair = [
        graph.add(f"{name}_odd_last", "Unsqueeze", graph.add(f"{name}_neg", "Neg", second), axes=[-1]),
        graph.add(f"{name}_even_last", "Unsqueeze", first, axes=[-1]),
    ]
    stacked = graph.add(f"{name}_stacked", "Concat", *pair, axis=-1)
    shape: Array = np.array([0, 0, 0, width], np.int64)
    graph.add(f"{name}_rotated", "Reshape", stacked, graph.constant(f"{name}_rotated_shape", shape))


def _slice(graph: PlainGraph, name: str, value: str, start: int, end: int, step: int) -> str:
    bounds = {"starts": start, "ends": end, "axes": 3, "steps": step}
    names = [graph.constant(f"{name}/{key}", np.array([number], np.int64)) for key, number in bounds.items()]
    return graph.add(name, "Slice", value, *names)
