"""In a worker: one systematic fault, or the same in one place, repaired."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.attention.faults.catalogue import FAULTS as ATTENTION_FAULTS
from benchmarks.attention.faults.catalogue import put_in
from benchmarks.common.cases import Case
from benchmarks.common.exact import difference, in_float32
from benchmarks.common.generated import case_of
from benchmarks.common.located import LEAST_EFFECT, saved
from benchmarks.common.plain_graph import PlainGraph
from benchmarks.common.target import Data, UnfitError, finite, measured
from benchmarks.repair.trial import repaired
from benchmarks.systematic.cases import ONCE
from benchmarks.systematic.faults import FAULTS
from benchmarks.systematic.networks import attention_graph, attention_of, prepared

__all__ = ["run"]

Places = dict[str, tuple[set[str], set[str]]]


def run(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Carry out a case.

    Args:
        payload: "case"; "kept" (a folder for networks); "seconds" (for the search).
        folder: For files; they're removed.

    Returns:
        "status" ("measured", or that of `UnfitError`) and "words"; for a measured one also what `repaired` says, with
        an entry of "injected" for each place.
    """
    return measured(_measured, payload, folder)


def _measured(payload: dict[str, Any], scratch: Path) -> dict[str, Any]:
    case = case_of(payload)
    known = prepared(case.model, case.seed, Path(payload["kept"]))
    source = known["sides"][case.source]
    wrong, places = _of_attention(case) if case.faults[0] in ATTENTION_FAULTS else _of_layers(case, source)
    data = Data(known["data"])
    effect = _effect(source, wrong, data, known["batch_size"])
    if effect <= LEAST_EFFECT:
        raise UnfitError("no effect", f"{effect:.1e}")
    injected = [
        {
            "fault": case.faults[0],
            "kind": str({**ATTENTION_FAULTS, **FAULTS}[case.faults[0]].kind),
            "words": f"{case.faults[0]} at {place}",
            "effect": finite(effect),
            "target_layers": sorted(theirs),
            "source_layers": sorted(ours),
        }
        for place, (theirs, ours) in places.items()
    ]
    more = {
        "source": source,
        "base": source,
        "data": known["data"],
        "samples": known["samples"],
        "batch_size": known["batch_size"],
        "precision": "",
        "route": [],
        "seconds": payload["seconds"],
    }
    return repaired(more, data, saved(wrong, scratch / "faulty.onnx"), injected, scratch)


def _effect(source: dict[str, Any], wrong: onnx.ModelProto, data: Data, count: int) -> float:
    feeds = {name: np.asarray(array) for name, array in data.feeds(source, count).items()}
    return difference(in_float32(onnx.load(source["model"]["path"]), feeds), in_float32(wrong, feeds))


def _of_layers(case: Case, source: dict[str, Any]) -> tuple[onnx.ModelProto, Places]:
    fault = FAULTS[case.faults[0]]
    graph = PlainGraph.of(onnx.load(source["model"]["path"]))
    names = fault.places(graph)
    if len(names) < 2:
        raise UnfitError("no place", f"{len(names)}")
    if case.rewriting == ONCE:
        names = [names[zlib.crc32(case.name.encode()) % len(names)]]
    wrong = graph.copy()
    places: Places = {}
    for name in names:
        before = set(wrong.nodes)
        fault.change(wrong, wrong.nodes[name])
        places[name] = {name, *(set(wrong.nodes) - before)}, {name}
    return wrong.model(), places


def _of_attention(case: Case) -> tuple[onnx.ModelProto, Places]:
    spec, writing = attention_of(case.model, case.seed)
    number = zlib.crc32(case.name.encode())
    blocks = [number % spec.blocks] if case.rewriting == ONCE else range(spec.blocks)
    right = attention_graph(case.model, case.seed)
    wrong = put_in(ATTENTION_FAULTS[case.faults[0]], right, spec, writing, list(blocks), number)
    if wrong is None:
        raise UnfitError("no place")
    changed, original = wrong.differing(right), right.differing(wrong)
    scopes = [f"/layers.{block}/" for block in blocks]
    places = {
        scope: ({name for name in changed if name.startswith(scope)}, {n for n in original if n.startswith(scope)})
        for scope in scopes
    }
    return wrong.model(constant_nodes=writing.constant_nodes), places
