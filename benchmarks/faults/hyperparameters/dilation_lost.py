"""A dilated convolution is computed as a dense one of the same reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir

from benchmarks.faults.edits import constant_of
from benchmarks.faults.fault import Change, Fault
from benchmarks.faults.native import attributes_changed
from benchmarks.faults.places import nodes_with
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Attribute, Node

__all__ = ["FAULT"]


def _is_dilated(node: onnx_ir.Node) -> bool:
    return (
        "dilations" in node.attributes and max(node.attributes["dilations"].as_ints()) > 1 and _pads(node) is not None
    )


def _pads(node: onnx_ir.Node) -> list[int] | None:
    """Those that keep the size; None when there are none."""
    array = constant_of(node, 1)
    pads = list(node.attributes["pads"].as_ints()) if "pads" in node.attributes else []
    if array is None or not pads:
        return None
    return _reduced(pads, array.shape[2:], _dilations(node))


def _reduced(pads: Sequence[int], kernel: Sequence[int], dilations: Sequence[int]) -> list[int] | None:
    """Pads of the dense kernel; None when there are too few."""
    reach = [(size - 1) * (step - 1) for size, step in zip(kernel, dilations, strict=True)]
    half = len(pads) // 2
    result = [pads[axis] - cells // 2 for axis, cells in enumerate(reach)]
    result += [pads[half + axis] - (cells - cells // 2) for axis, cells in enumerate(reach)]
    return result if min(result) >= 0 else None


def _native_changes(node: Node) -> Mapping[str, Attribute] | None:
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


def _dilations(node: onnx_ir.Node) -> list[int]:
    return list(node.attributes["dilations"].as_ints())


def _change(node: onnx_ir.Node, generator: np.random.Generator) -> Change:
    pads, before = _pads(node), _dilations(node)
    if pads is None:
        raise ValueError(f"{node.name} can't be made dense")
    node.attributes["pads"] = onnx_ir.AttrInt64s("pads", pads)
    node.attributes["dilations"] = onnx_ir.AttrInt64s("dilations", [1] * len(before))
    return Change((node,), f"{node.name} has dilations of 1 instead of {before}")


FAULT = Fault(
    name="dilation-lost",
    kind=Kind.HYPERPARAMETERS,
    provenance="onnx2tf#251, tensorflow-onnx#1046",
    repair="the dilations",
    places=nodes_with(_is_dilated, "Conv"),
    change=_change,
    native=attributes_changed(
        ["Conv"], lambda node, _: _native_changes(node) or {}, lambda _, node: _native_changes(node) is not None
    ),
)
