"""SAME padding at the wrong end: TensorFlow puts the odd cell behind, others in front or on both sides."""

from __future__ import annotations

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Node

__all__ = ["FAULT"]


def _shifted(pads: list[int]) -> list[int]:
    """All to the end, or to the begin where they are at the end already."""
    half = len(pads) // 2
    shifted = [0] * half + [one + two for one, two in zip(pads[:half], pads[half:], strict=True)]
    return shifted[half:] + [0] * half if shifted == pads else shifted


def _pads(node: Node) -> list[int]:
    pads = node.attributes.get("pads")
    return [int(pad) for pad in pads] if isinstance(pads, tuple) else []


FAULT = Fault(
    name="pads-shifted",
    kind=Kind.HYPERPARAMETERS,
    provenance="tensornets#25, tensorflow#10747, MMdnn#660, pytorch#3867",
    repair="the pads",
    native=attributes_changed(
        ["Conv", "MaxPool", "AveragePool", "Pad"],
        lambda node, _: {"pads": tuple(_shifted(_pads(node)))},
        lambda _, node: any(_pads(node)),
    ),
)
