"""Faults put into ONNX files by protobuf: those that are systematic elsewhere, in one place, and more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

from benchmarks.common.injecting.fault import Means, OwnFault
from benchmarks.common.injecting.numbers import WEIGHTS
from benchmarks.common.plain_graph import PlainGraph
from benchmarks.systematic.faults import FAULTS, SystematicFault
from conrepair.formats.models.model import Model
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.files.whole import sha256_of

__all__ = ["BY_PROTOBUF"]


def _opened(model: Model) -> PlainGraph:
    return PlainGraph.of(onnx.load(model.path))


def _write(graph: PlainGraph, folder: Path) -> Model:
    path = folder / "model.onnx"
    onnx.save(graph.model(), path)
    return Model("onnx", str(path), sha256_of(path))


def _once(fault: SystematicFault) -> OwnFault:
    def change(graph: PlainGraph, name: str, _: np.random.Generator) -> str:
        fault.change(graph, graph.nodes[name])
        return f"{fault.name} at {name}"

    return OwnFault(fault.kind, fault.places, change)


def _of(*operators: str, inputs: int = 0) -> Callable[[PlainGraph], list[str]]:
    """Names of nodes that read so many values that are no constants, at least."""

    def find(graph: PlainGraph) -> list[str]:
        nodes = ((name, node) for name, node in graph.nodes.items() if node.op_type in operators)
        return [name for name, node in nodes if sum(item not in graph.constants for item in node.input) >= inputs]

    return find


def _gone(graph: PlainGraph, name: str, _: np.random.Generator) -> str:
    sort = graph.nodes[name].op_type
    graph.bypass(name)
    return f"{sort} {name} is gone"


def _exchanged(graph: PlainGraph, name: str, generator: np.random.Generator) -> str:
    compute, words = WEIGHTS["two-filters-exchanged"]
    graph.own(name, 1, compute(graph.constants[graph.nodes[name].input[1]], generator, 0))
    return words.format(name=name)


def _transposed(graph: PlainGraph, name: str, _: np.random.Generator) -> str:
    node = graph.nodes[name]
    node.input[0] = graph.add(f"{name}/transposed", "Transpose", node.input[0], perm=[0, 1, 3, 2])
    return f"{name} reads pictures with height and width exchanged"


def _first(graph: PlainGraph) -> list[str]:
    return _of("Conv")(graph)[:1]


BY_PROTOBUF = Means(
    "by-protobuf",
    _opened,
    _write,
    {
        **{name: _once(fault) for name, fault in FAULTS.items()},
        "activation-missing": OwnFault(Kind.GRAPH, _of("Clip", "Relu", "Sigmoid", "Tanh", "HardSwish"), _gone),
        "shortcut-missing": OwnFault(Kind.GRAPH, _of("Add", inputs=2), _gone),
        "two-filters-exchanged": OwnFault(Kind.PARAMETERS, _of("Conv"), _exchanged),
        "axes-exchanged": OwnFault(Kind.STRUCTURE, _first, _transposed),
    },
)
