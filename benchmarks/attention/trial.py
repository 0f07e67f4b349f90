"""In a worker: one case of attention."""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.attention.cases import find
from benchmarks.attention.faults.catalogue import FAULTS, put_in
from benchmarks.attention.networks import build
from benchmarks.attention.samples import samples
from benchmarks.attention.spec import Spec, Writing, writing_of
from benchmarks.common.cases import Case
from benchmarks.common.generated import case_of
from benchmarks.common.located import located, unfit
from benchmarks.common.otherwise import rewritten
from benchmarks.common.plain_graph import PlainGraph
from benchmarks.common.target import UnfitError, measured

__all__ = ["run"]


def run(folder: Path, **payload: Any) -> dict[str, Any]:
    """Carry out a case.

    Args:
        payload: "case".
        folder: For files; they're removed.

    Returns:
        "status" ("measured", or that of `UnfitError`) and "words"; for a measured one also "injected", "about" (the
        network) and what `located` says.
    """
    return measured(_measured, payload, folder)


def _measured(payload: dict[str, Any], scratch: Path) -> dict[str, Any]:
    case = case_of(payload)
    spec = find(case.model)
    feeds = samples(spec)
    with unfit("not injected"):
        source, source_graph = _written(spec, case.source)
        if case.count:
            target, injected = _faulty(case, spec, source_graph)
        else:
            target, injected = _written(spec, case.base)[0], []
            if case.rewriting:
                target = rewritten(case.rewriting, target, np.random.default_rng(_number(case.name)), scratch)
    about = {"mask": spec.mask, "position": spec.position, "massive": spec.massive, "magnitude": spec.magnitude}
    found = located(source, target, feeds, scratch, faulty=bool(case.count))
    return {"injected": injected, "about": about} | found


def _written(spec: Spec, name: str) -> tuple[onnx.ModelProto, PlainGraph]:
    writing = _writing(spec, name)
    graph = build(spec, writing)
    return graph.model(constant_nodes=writing.constant_nodes), graph


def _writing(spec: Spec, name: str) -> Writing:
    return writing_of(spec, int(name.removeprefix("writing-")))


def _faulty(case: Case, spec: Spec, source: PlainGraph) -> tuple[onnx.ModelProto, list[dict[str, Any]]]:
    """A target with a fault, and where that is: one entry for each of its blocks."""
    fault, writing = FAULTS[case.faults[0]], _writing(spec, case.base)
    number = _number(case.name)
    blocks = range(spec.blocks) if case.rewriting.startswith("all") else [number % spec.blocks]
    right = build(spec, writing)
    wrong = put_in(fault, right, spec, writing, list(blocks), number)
    if wrong is None:
        raise UnfitError("no place")
    model = wrong.model(constant_nodes=writing.constant_nodes)
    names = {node: node for node in wrong.nodes}
    if case.rewriting.endswith("renamed"):
        names = _renamed(model, np.random.default_rng(number))
    around = _at_fault(right, wrong)
    if wrong_source := put_in(fault, source, spec, _writing(spec, case.source), list(blocks), number):
        around |= _at_fault(source, wrong_source)
    theirs = _at_fault(wrong, right) | _twins(wrong, right)
    injected = [
        {
            "fault": fault.name,
            "kind": str(fault.kind),
            "words": f"{fault.name} in {place or 'what blocks share'}",
            "effect": None,
            "target_layers": sorted(names[name] for name in theirs if _in(name, place) and name in names),
            "source_layers": sorted(name for name in around if _in(name, place) and name in source.nodes),
        }
        for place in [*(f"/layers.{block}/" for block in blocks), ""]
    ]
    return model, [item for item in injected if item["target_layers"] or item["source_layers"]]


def _in(name: str, scope: str) -> bool:
    """Whether a node is in a block; "" stands for what's in none."""
    return name.startswith(scope) if scope else not name.startswith("/layers.")


def _at_fault(one: PlainGraph, other: PlainGraph) -> set[str]:
    """Nodes of a graph that the other one hasn't or has otherwise, and those before what only the other one has.

    Where layers have changed places, it's as right to say that those behind them read the wrong ones.
    """
    one, other = one.live(), other.live()
    found = set(one.differing(other))
    for scope in {"/".join(name.split("/")[:2]) for name in found}:
        found |= _behind_exchanged(one, other, {name for name in found if name.startswith(f"{scope}/")})
    makers = {value: name for name, node in other.nodes.items() for value in node.output}
    ahead = [name for name in other.nodes if name not in one.nodes]
    seen: set[str] = set()
    while ahead:
        name = ahead.pop()
        seen.add(name)
        for maker in filter(None, map(makers.get, other.nodes[name].input)):
            if maker in one.nodes:
                found.add(maker)
            elif maker not in seen:
                ahead.append(maker)
    return found


def _behind_exchanged(one: PlainGraph, other: PlainGraph, differing: set[str]) -> set[str]:
    """What reads nodes that only have changed places, on to where their branches stop doing the same."""
    contents = [
        sorted(str(_expression(name, graph, differing)) for name in differing if name in graph.nodes)
        for graph in (one, other)
    ]
    if contents[0] != contents[1]:
        return set()
    found: set[str] = set()
    ahead = differing
    while ahead:
        values = [value for name in ahead for value in one.nodes[name].output]
        readers = {node.name for value in values for node, _ in one.readers(value)} - differing - found
        found |= readers
        sorts = Counter(str(one.content(name)[::2]) for name in readers)
        ahead = readers if all(count % 2 == 0 for count in sorts.values()) else set()
    return found


def _expression(name: str, graph: PlainGraph, among: set[str]) -> tuple[Any, ...]:
    """What a node computes, from what lies in front of some nodes."""
    makers = {value: maker for maker in among & graph.nodes.keys() for value in graph.nodes[maker].output}
    operator, inputs, attributes = graph.content(name)
    read = [_expression(makers[item], graph, among) if item in makers else item for item in inputs]
    return operator, read, attributes


def _twins(wrong: PlainGraph, right: PlainGraph) -> set[str]:
    """Nodes before others of their sort that only the wrong graph has: either may be called the one too many."""
    makers = {value: node for node in wrong.nodes.values() for value in node.output}
    added = [node for name, node in wrong.nodes.items() if name not in right.nodes and node.input[0] in makers]
    return {makers[node.input[0]].name for node in added if makers[node.input[0]].op_type == node.op_type}


def _renamed(model: onnx.ModelProto, generator: np.random.Generator) -> dict[str, str]:
    """Give all nodes, and all values within, other names; inputs and outputs keep theirs."""
    kept = {value.name for value in (*model.graph.input, *model.graph.output)}
    values = {name for node in model.graph.node for name in (*node.input, *node.output) if name} - kept
    order = dict(zip(sorted(values), generator.permutation(len(values)), strict=True))
    names = {}
    for place, node in enumerate(model.graph.node):
        names[node.name] = node.name = f"n{place}"  # type: ignore[assignment]
        for list_of in (node.input, node.output):
            for index, name in enumerate(list_of):
                list_of[index] = f"v{order[name]}" if name in order else name
    for tensor in model.graph.initializer:
        tensor.name = f"v{order[tensor.name]}" if tensor.name in order else tensor.name
    return names


def _number(name: str) -> int:
    return zlib.crc32(name.encode())
