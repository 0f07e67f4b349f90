"""Activations are scaled as in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir

from benchmarks.faults.edits import dtype_of, insert_behind
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import inserted_behind
from benchmarks.faults.places import is_float, nodes_with
from conrepair.editors.editor import Step
from conrepair.graph.kinds import Kind

__all__ = ["FAULT"]

_WORDS = "{name} is divided by a keep probability of 0.8"


def _steps(dtype: np.dtype[Any]) -> Sequence[Step]:
    return [("Mul", {}, [np.array(1 / 0.8, dtype)])]


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    nodes = insert_behind(node.outputs[0], _steps(dtype_of(node.outputs[0])), "dropout")
    return Change((node, *nodes), _WORDS.format(name=node.name))


FAULT = Fault(
    name="dropout-left-on",
    kind=Kind.GRAPH,
    provenance="rf-detr#871, weaver-core#29",
    repair="remove it",
    places=nodes_with(lambda node: is_float(node.outputs[0]), "Relu", "Clip", "Gemm", "MatMul", "Tanh"),
    change=_change,
    native=inserted_behind(
        ("Relu", "Clip", "MatMul", "Tanh", "Conv"), lambda _: _steps(np.dtype(np.float32)), "dropout", _WORDS
    ),
)
