"""Whether the graph that a format's editor sees is the one that localization sees."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.networks.network import open_network
from conrepair.formats.onnx.edit.file import sizes_of
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Parameter, Tensor
from conrepair.ground.graph.operators import OPERATORS

__all__ = ["differences", "known_gaps"]


def differences(model: Model) -> set[str]:
    """What both graphs of a model say differently: which operator, and what of it.

    Both are opened for the sizes that the editor takes where the file leaves them open.
    """
    editor = open_editor(model).graph
    inputs = sizes_of(model) if model.framework == "onnx" else _sized(model, editor)
    return set(_differences(open_network(model, inputs).graph, editor))


def _sized(model: Model, editor: LayerGraph) -> list[TensorSpec]:
    """The inputs, with as many samples as the editor has."""
    shapes = [editor.tensors[name].shape for name in editor.inputs]
    count = next(shape[0] for shape in shapes if shape)
    return [
        replace(spec, shape=tuple(size if isinstance(size, int) else count for size in spec.shape))
        for spec in framework(model.framework).describe(model).inputs
    ]


def _differences(network: LayerGraph, editor: LayerGraph) -> Iterator[str]:
    for side in ("inputs", "outputs"):
        if getattr(network, side) != getattr(editor, side):
            yield f"the graph's {side}"
    edited = {node.outputs: node for node in editor.nodes}
    known = {node.outputs: node for node in network.nodes}
    for node in network.nodes:
        if node.outputs in edited:
            for words in _of_nodes(node, edited[node.outputs]):
                yield f"{node.op}: {words}"
        else:
            yield f"{node.op}: the network alone has it"
    for node in editor.nodes:
        if node.outputs not in known:
            yield f"{node.op}: the editor alone has it"
    for name in network.tensors.keys() & editor.tensors.keys():
        yield from _of_tensors(_maker(name, network), network.tensors[name], editor.tensors[name])
    for one, two, which in ((network, editor, "network"), (editor, network, "editor")):
        for name in one.tensors.keys() - two.tensors.keys():
            yield f"{_maker(name, one)}: its result is a tensor of the {which} alone"


def _maker(tensor: str, graph: LayerGraph) -> str:
    producer = graph.producers.get(tensor)
    return "an input" if producer is None else producer.op


def _of_nodes(one: Node, two: Node) -> Iterator[str]:
    if one.op != two.op:
        yield f"the editor has {two.op}"
        return
    for name in ("name", "layer", "native", "inputs", "channels_last"):
        if getattr(one, name) != getattr(two, name):
            yield name
    for what in ("attributes", "written", "parameters"):
        words = _of_entries(what, getattr(one, what), getattr(two, what))
        # Entries of what the vocabulary has no word for are called as the framework of some version calls them.
        yield from words if one.op in OPERATORS else (what for _ in words)


def _of_entries(what: str, one: Mapping[str, Any], two: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(one.keys() | two.keys()):
        if name not in two:
            yield f"{what}, {name}: the network alone has it"
        elif name not in one:
            yield f"{what}, {name}: the editor alone has it"
        elif isinstance(one[name], Parameter):
            yield from (f"{what}, {name}: {words}" for words in _of_parameters(one[name], two[name]))
        elif not _same(one[name], two[name]):
            yield f"{what}, {name}"


def _same(one: Any, two: Any) -> bool:
    """Whether two attributes are one; single and double precision of a number are."""
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=1e-6) or (math.isnan(one) and math.isnan(two))
    return type(one) is type(two) and bool(one == two)


def _of_parameters(one: Parameter, two: Parameter) -> Iterator[str]:
    for name in ("name", "shape", "dtype", "bits", "made_by"):
        if getattr(one, name) != getattr(two, name):
            yield name
    if not np.allclose(one.scales, two.scales) if len(one.scales) == len(two.scales) else True:
        yield "scales"
    mine, theirs = one.numpy(), two.numpy()
    if mine.shape == theirs.shape and not np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"):
        yield "numbers"


def _of_tensors(maker: str, one: Tensor, two: Tensor) -> Iterator[str]:
    for name in ("shape", "dtype", "quantization", "observable", "others"):
        if getattr(one, name) != getattr(two, name):
            yield f"{maker}: its result's {name}"


def known_gaps(path: Path) -> set[str]:
    """Differences that are known, from a file with one a line, those of one reason below a comment that gives it.

    Args:
        path: Of the file; there is none where there are no differences.
    """
    found: set[str] = set()
    reason = ""
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line
        elif line:
            assert reason, f"{path.name} gives no reason for: {line}"
            assert line not in found, f"{path.name} has twice: {line}"
            found.add(line)
        else:
            reason = ""
    return found
