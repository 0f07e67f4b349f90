"""SAME padding at the wrong end: TensorFlow puts the odd cell behind, others in front or on both sides."""

from __future__ import annotations

import numpy as np
import onnx_ir

from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import attributes_changed
from benchmarks.faults.places import nodes_with
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node

__all__ = ["FAULT"]


def _can_shift(node: onnx_ir.Node) -> bool:
    return any(_pads(node))


def _pads(node: onnx_ir.Node) -> list[int]:
    return list(node.attributes["pads"].as_ints()) if "pads" in node.attributes else []


def _shifted(pads: list[int]) -> list[int]:
    """All to the end, or to the begin where they are at the end already."""
    half = len(pads) // 2
    shifted = [0] * half + [one + two for one, two in zip(pads[:half], pads[half:], strict=True)]
    return shifted[half:] + [0] * half if shifted == pads else shifted


def _native_pads(node: Node) -> list[int]:
    pads = node.attributes.get("pads")
    return [int(pad) for pad in pads] if isinstance(pads, tuple) else []


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    pads = _pads(node)
    shifted = _shifted(pads)
    node.attributes["pads"] = onnx_ir.AttrInt64s("pads", shifted)
    return Change((node,), f"{node.name} pads {shifted} instead of {pads}")


FAULT = Fault(
    name="pads-shifted",
    kind=Kind.HYPERPARAMETERS,
    provenance="tensornets#25, tensorflow#10747, MMdnn#660, pytorch#3867",
    repair="the pads",
    places=nodes_with(_can_shift, "Conv", "MaxPool", "AveragePool"),
    change=_change,
    native=attributes_changed(
        ["Conv", "MaxPool", "AveragePool", "Pad"],
        lambda node, _: {"pads": tuple(_shifted(_native_pads(node)))},
        lambda _, node: any(_native_pads(node)),
    ),
)
