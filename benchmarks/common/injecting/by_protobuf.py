"""Faults put into ONNX files by protobuf: those that are systematic elsewhere, in one place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from benchmarks.common.injecting.fault import Means, OwnFault
from benchmarks.common.plain_graph import PlainGraph
from benchmarks.systematic.faults import FAULTS, SystematicFault
from conrepair.frameworks.model import Model
from conrepair.runtime.files import sha256_of

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


BY_PROTOBUF = Means("by-protobuf", _opened, _write, {name: _once(fault) for name, fault in FAULTS.items()})
