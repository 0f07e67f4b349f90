"""A fault in all its places: what a converter gets wrong, it gets wrong wherever it meets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault, Native
from conrepair.editors.editor import Editor
from conrepair.graph.layer_graph import LayerGraph, Node

__all__ = ["everywhere"]

_SEVERAL = 2


def everywhere(fault: Fault[onnx_ir.Node], *, natively: bool = True) -> Fault[onnx_ir.Node]:
    """The same fault in all its places, where there are several.

    What it leaves open is decided once, so that all places get the same.

    Args:
        fault: Whose places are nodes, and whose change leaves the others' places where they are.
        natively: Whether it's for other formats than ONNX, too.
    """

    def places(graph: onnx_ir.Graph) -> list[onnx_ir.Node]:
        found = fault.places(graph)
        return list(found[-1:]) if len(found) >= _SEVERAL else []

    def change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
        if not isinstance(node.graph, onnx_ir.Graph):
            raise ValueError(f"{node.name} belongs to no graph")
        again = _same(generator)
        changes = [fault.change(item, again()) for item in fault.places(node.graph)]
        changed = dict.fromkeys(item for one in changes for item in one.nodes)
        return Change(tuple(changed), f"in {len(changes)} places: {changes[0].words}")

    return Fault(
        name=f"{fault.name}-everywhere",
        kind=fault.kind,
        provenance=fault.provenance,
        repair=fault.repair,
        places=places,
        change=change,
        native=_natively(fault.native) if natively and fault.native is not None else None,
    )


def _natively(native: Native) -> Native:
    def places(graph: LayerGraph) -> list[Node | str]:
        found = native.places(graph)
        return list(found[-1:]) if len(found) >= _SEVERAL else []

    def change(editor: Editor, _: Node | str, generator: np.random.Generator) -> str:
        again = _same(generator)
        words = [native.change(editor, place, again()) for place in native.places(editor.graph)]
        return f"in {len(words)} places: {words[0]}"

    return Native(places, change)


def _same(generator: np.random.Generator) -> Callable[[], np.random.Generator]:
    """Makes generators that all draw the same."""
    seed: Any = generator.integers(2**32)
    return lambda: np.random.default_rng(seed)
