"""A dilated convolution is computed as a dense one of the same reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.faults.fault import Fault
from benchmarks.faults.native import attributes_changed
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Attribute, Node

__all__ = ["FAULT"]


def _reduced(pads: Sequence[int], kernel: Sequence[int], dilations: Sequence[int]) -> list[int] | None:
    """Pads of the dense kernel; None when there are too few."""
    reach = [(size - 1) * (step - 1) for size, step in zip(kernel, dilations, strict=True)]
    half = len(pads) // 2
    result = [pads[axis] - cells // 2 for axis, cells in enumerate(reach)]
    result += [pads[half + axis] - (cells - cells // 2) for axis, cells in enumerate(reach)]
    return result if min(result) >= 0 else None


def _changes(node: Node) -> Mapping[str, Attribute] | None:
    """Where pads follow from the size (SAME), they aren't said."""
    dilations, pads = node.attributes.get("dilations"), node.attributes.get("pads")
    if not isinstance(dilations, tuple) or max(map(int, dilations)) == 1:
        return None
    dense: dict[str, Attribute] = {"dilations": (1,) * len(dilations)}
    if "SAME" in str(node.attributes.get("auto_pad")):
        return dense
    kernel = node.parameters["weight"].shape[2:] if "weight" in node.parameters else ()
    if not isinstance(pads, tuple) or len(kernel) != len(dilations):
        return None
    reduced = _reduced([int(pad) for pad in pads], kernel, [int(step) for step in dilations])
    return None if reduced is None else {**dense, "pads": tuple(reduced)}


FAULT = Fault(
    name="dilation-lost",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnx2tf#251, tensorflow-onnx#1046",
    repair="the dilations",
    native=attributes_changed(
        ["Conv"], lambda node, _: _changes(node) or {}, lambda _, node: _changes(node) is not None
    ),
)
