"""In a worker: one systematic fault, or the same in one place, repaired."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.attention.faults.catalogue import FAULTS as ATTENTION_FAULTS
from benchmarks.attention.faults.catalogue import put_in
from benchmarks.common.cases import Case
from benchmarks.common.exact import difference, in_float32
from benchmarks.common.generated import case_of
from benchmarks.common.located import LEAST_EFFECT, saved, unfit
from benchmarks.common.plain_graph import PlainGraph
from benchmarks.common.target import AGREE, Data, UnfitError, converted, disagreement, finite, measured
from benchmarks.repair.trial import repaired
from benchmarks.systematic.cases import ONCE
from benchmarks.systematic.faults import FAULTS, SystematicFault
from benchmarks.systematic.networks import attention_graph, attention_of, prepared
from conrepair.ground.runtime.files.whole import whole_output

__all__ = ["run"]

Places = dict[str, tuple[set[str], set[str]]]


@dataclass(frozen=True)
class Change:
    """A fault in a network.

    Attributes:
        places: Where it can be.
        put: Given some of them, says what's there then, and what both files call the layers of each.
    """

    places: Sequence[str]
    put: Callable[[Sequence[str]], tuple[onnx.ModelProto, Places]]


def run(folder: Path, **payload: Any) -> dict[str, Any]:
    """Carry out a case.

    Args:
        payload: "case"; "kept" (a folder for networks); "seconds" (for the search).
        folder: For files; they're removed.

    Returns:
        "status" ("measured", or that of `UnfitError`) and "words"; for a measured one also what `repaired` says, with
        an entry of "injected" for each place, whose "effect" is what the fault does there alone.
    """
    return measured(_measured, payload, folder)


def _measured(payload: dict[str, Any], scratch: Path) -> dict[str, Any]:
    case, kept = case_of(payload), Path(payload["kept"])
    with unfit("no model"):
        known = prepared(case.model, case.seed, kept)
    source = known["sides"][case.source]
    data = Data(known["data"])
    feeds = {name: np.asarray(array) for name, array in data.feeds(source, known["batch_size"]).items()}
    right = onnx.load(source["model"]["path"])
    name = case.faults[0]
    with unfit("not injected"):
        change = _of_attention(case) if name in ATTENTION_FAULTS else _of_layers(FAULTS[name], right)
        effects = _effects(kept / f"{case.model}-{case.seed}" / f"{name}.json", change, right, feeds)
    chosen = [place for place, effect in effects.items() if case.rewriting != ONCE or effect > LEAST_EFFECT]
    if case.rewriting == ONCE and chosen:
        chosen = [chosen[zlib.crc32(case.name.encode()) % len(chosen)]]
    if not chosen:
        raise UnfitError("no effect", "in any single place")
    with unfit("not injected"):
        wrong, places = change.put(chosen)
        effect = difference(in_float32(right, feeds), in_float32(wrong, feeds))
    if effect <= LEAST_EFFECT:
        raise UnfitError("no effect", f"{effect:.1e}")
    injected = [
        {
            "fault": name,
            "kind": str({**ATTENTION_FAULTS, **FAULTS}[name].kind),
            "words": f"{name} at {place}",
            "effect": finite(effects[place]),
            "target_layers": sorted(theirs),
            "source_layers": sorted(ours),
        }
        for place, (theirs, ours) in places.items()
    ]
    base = converted(source, case.route, scratch / "base")
    if case.route and (error := disagreement(source, base, data)) > AGREE:
        raise UnfitError("off by itself", f"{error:.1e}")
    target = converted(saved(wrong, scratch / "faulty.onnx"), case.route, scratch / "target")
    more = {
        "source": source,
        "base": base,
        "data": known["data"],
        "samples": known["samples"],
        "batch_size": known["batch_size"],
        "precision": "",
        "route": list(case.route),
        "seconds": payload["seconds"],
    }
    return {"effect": finite(effect)} | repaired(more, data, target, injected, scratch)


def _effects(
    path: Path, change: Change, right: onnx.ModelProto, feeds: dict[str, np.ndarray[Any, Any]]
) -> dict[str, float]:
    """What the fault in each place alone does to the outputs; looked at once, and kept."""
    if not path.exists():
        expected = in_float32(right, feeds)
        found = {place: difference(expected, in_float32(change.put([place])[0], feeds)) for place in change.places}
        with whole_output(path) as temporary:
            temporary.write_text(json.dumps(found), encoding="utf-8")
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _of_layers(fault: SystematicFault, model: onnx.ModelProto) -> Change:
    graph = PlainGraph.of(model)
    names = fault.places(graph)
    if len(names) < 2:
        raise UnfitError("no place", f"{len(names)}")

    def put(chosen: Sequence[str]) -> tuple[onnx.ModelProto, Places]:
        wrong = graph.copy()
        places: Places = {}
        for name in chosen:
            before = set(wrong.nodes)
            fault.change(wrong, wrong.nodes[name])
            places[name] = {name, *(set(wrong.nodes) - before)}, {name}
        return wrong.model(), places

    return Change(names, put)


def _of_attention(case: Case) -> Change:
    spec, writing = attention_of(case.model, case.seed)
    right = attention_graph(case.model, case.seed)
    fault, number = ATTENTION_FAULTS[case.faults[0]], zlib.crc32(f"{case.model}{case.seed}".encode())

    def put(chosen: Sequence[str]) -> tuple[onnx.ModelProto, Places]:
        blocks = [int(scope.removeprefix("/layers.").removesuffix("/")) for scope in chosen]
        wrong = put_in(fault, right, spec, writing, blocks, number)
        if wrong is None:
            raise UnfitError("no place")
        sides = wrong.differing(right), right.differing(wrong)
        theirs, ours = ({scope: {n for n in side if n.startswith(scope)} for scope in chosen} for side in sides)
        model = wrong.model(constant_nodes=writing.constant_nodes)
        return model, {scope: (theirs[scope], ours[scope]) for scope in chosen}

    return Change([f"/layers.{block}/" for block in range(spec.blocks)], put)
