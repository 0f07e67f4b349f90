"""A fault in all its places: what a converter gets wrong, it gets wrong wherever it meets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.faults.fault import Fault, Native
from conrepair.formats.editing.editor import Editor
from conrepair.ground.graph.layer_graph import LayerGraph, Node

__all__ = ["everywhere"]

_SEVERAL = 2


def everywhere(fault: Fault) -> Fault:
    """The same fault in all its places, where there are several.

    What it leaves open is decided once, so that all places get the same.

    Args:
        fault: Whose change leaves the others' places where they are.
    """
    native = fault.native

    def places(graph: LayerGraph) -> list[Node | str]:
        found = native.places(graph)
        return list(found[-1:]) if len(found) >= _SEVERAL else []

    def change(editor: Editor, _: Node | str, generator: np.random.Generator) -> str:
        again = _same(generator)
        words = [native.change(editor, place, again()) for place in native.places(editor.graph)]
        return f"in {len(words)} places: {words[0]}"

    return replace(fault, name=f"{fault.name}-everywhere", native=Native(places, change))


def _same(generator: np.random.Generator) -> Callable[[], np.random.Generator]:
    """Makes generators that all draw the same."""
    seed: Any = generator.integers(2**32)
    return lambda: np.random.default_rng(seed)
