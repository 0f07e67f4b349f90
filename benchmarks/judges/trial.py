"""One pair: it's made, labelled, and judged by both laws."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.version_converter

from benchmarks.common.plain_graph import Array
from benchmarks.faults.catalogue import faults
from benchmarks.faults.inject_file import inject_file
from benchmarks.judges.cases import CATALOGUE, Case
from benchmarks.judges.edits import edited
from benchmarks.judges.exact import BOUND, Exact, exact_of
from benchmarks.judges.network import Network
from benchmarks.judges.sources import source
from benchmarks.judges.targets import Targets
from conrepair import api
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.metrics.tensors import compare_tensors
from conrepair.verdicts.evaluate.pairing import fit, pair_outputs
from conrepair.verdicts.truth.bound import Analysis

__all__ = ["EITHER", "FAULTY", "RIGHT", "run"]

RIGHT, FAULTY, EITHER = "right", "faulty", "either"
_CLEAR = {BOUND: 1.0}  # times what rounding explains, from which on a fault is one
_CLEAR_ESTIMATE = 4.0
_COSINE, _BEYOND = 0.99, 0.9  # of float64 values: a quantized target's budget is kept, is broken
_QUANTIZED_OPSET = 21
_FEW_DIGITS = ("ill-conditioned", "deep")  # there a fault that rounding hides is a case of its own
_CATALOGUE_TRIES = 12


@dataclass(frozen=True)
class _Planted:
    """A file with a fault.

    Attributes:
        fault: What was done.
        proto: What the file has.
        guilty: Layers at fault.
        effect: On float64 values, in what rounding explains.
    """

    fault: str
    proto: onnx.ModelProto
    guilty: tuple[str, ...]
    effect: float


def run(folder: Path, **payload: Any) -> dict[str, Any]:
    """Carry a case out; a job of a worker.

    Args:
        payload: "case" (its parts), "kept" (a folder for builds and conversions that cases share).
        folder: For files.

    Returns:
        "status" ("judged", or why there's no such pair), "seconds"; of what's judged "label" (`RIGHT`, `FAULTY`,
        `EITHER`) and "why" it has that, "planted" (the fault), "guilty" (layers), "effect", "compare", "localize",
        "exact".
    """
    started = time.perf_counter()
    told: dict[str, Any] = {"status": "judged"}
    try:
        told |= _Trial(Path(payload["kept"]), folder).judged(Case(**payload["case"]))
    # Whatever a generator, converter, compiler or reference raises, there's no such pair.
    except Exception as error:  # noqa: BLE001
        told["status"] = " ".join(f"not made: {type(error).__name__}: {error}".split())[:300]
    return told | {"seconds": round(time.perf_counter() - started, 2)}


class _Trial:
    def __init__(self, kept: Path, folder: Path) -> None:
        self._folder, self._targets = folder, Targets(kept)

    def judged(self, case: Case) -> dict[str, Any]:
        network = source(case.network, case.seed)
        folder = self._folder
        proto, path, data = network.graph.model(), folder / "source.onnx", folder / "data.npz"
        onnx.save(proto, path)
        np.savez(data, **network.feeds)
        exact = exact_of(proto, network.feeds, "float16" if case.target == "float16" else "float32")
        planted, base = None, path
        if case.fault:
            planted = self._planted(case, network, path, exact)
            base = folder / "faulty.onnx"
            onnx.save(planted.proto, base)
        target = self._targets.made(case.target, base, data, network.feeds)
        count = len(next(iter(network.feeds.values())))
        asked = {"data": data, "samples": count, "batch_size": count, "in_process": True}
        compared = _compared(path, target, asked)
        localized = _localized(path, target, asked, planted.guilty if planted else ())
        given = {"target": None, "source": None} | compared.pop("answers")
        over = {side: None if answers is None else _plain(exact.over(answers)) for side, answers in given.items()}
        if case.kind == "quantized" and case.target != "float16":
            label, why = _quantized_label(planted, _cosine(exact, target, given["target"], network))
        else:
            label, why = _label(exact, planted, over["target"])
        return {
            "planted": "" if planted is None else planted.fault,
            "guilty": [] if planted is None else list(planted.guilty),
            "effect": None if planted is None else _plain(planted.effect),
            "label": label,
            "why": why,
            "compare": compared,
            "localize": localized,
            "exact": {"road": exact.road, **over},
        }

    def _planted(self, case: Case, network: Network, path: Path, exact: Exact) -> _Planted:
        """The first fault that has a place; where digits are left, the first one with an effect."""
        draw = np.random.default_rng([case.seed, *case.name.encode()])
        last = None
        tried = (
            self._catalogue(path, network, draw)
            if case.fault == CATALOGUE
            else edited(network.graph, case.fault, draw)
        )
        for fault, graph, guilty in tried:
            try:
                proto = graph if isinstance(graph, onnx.ModelProto) else graph.model()
                truth = Analysis(proto).truth(network.feeds)
                effect = exact.over({name: truth[name] for name in exact.truth})
            except Exception:  # noqa: BLE001, S112 (an edit that makes no valid network has no place)
                continue
            last = _Planted(fault, proto, (guilty,) if isinstance(guilty, str) else tuple(guilty), effect)
            if case.kind in _FEW_DIGITS or effect > _clear(exact):
                return last
        if last is None:
            raise ValueError("no fault has a place")
        return last

    def _catalogue(self, path: Path, network: Network, draw: np.random.Generator) -> Any:
        """Faults that benchmarks have, in a drawn order."""
        every = faults()
        model = Model("onnx", str(path), model_sha256(path))
        tries = 0
        for place in draw.permutation(len(every)):
            try:
                found = inject_file(model, every[place], network.feeds, draw, self._folder / "injected")
            except Exception:  # noqa: BLE001, S112 (what can't be put in has no place)
                continue
            if found is not None:
                yield every[place].name, onnx.load(found.path), sorted(found.layers)
                tries += 1
            if tries == _CATALOGUE_TRIES:
                return


def _cosine(exact: Exact, target: Path, answers: Mapping[str, Array] | None, network: Network) -> float:
    """Of a quantized target with its source's exact values: its own exact ones, where it's a file that has them.

    Raises:
        ValueError: if there's neither.
    """
    given: Mapping[str, Array] | None = answers
    if target.suffix == ".onnx":  # the reference has no DequantizeLinear of earlier versions
        proto = onnx.version_converter.convert_version(onnx.load(target), _QUANTIZED_OPSET)
        given = Analysis(proto).truth(network.feeds)
    if given is None:
        raise ValueError("a quantized target that doesn't run")
    pairs, _ = pair_outputs(exact.truth, given)
    fitted = [fit(pair, exact.truth[pair.reference], given[pair.candidate]) for pair in pairs]
    return min(compare_tensors(one, two.astype(np.float64), rtol=0, atol=0).cosine for one, two in fitted)


def _compared(path: Path, target: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What `compare` says, and both sides' answers."""
    try:
        done = api.compare(path, target, **asked)
    except Exception as error:  # noqa: BLE001 (a refusal is what it says)
        return {
            "verdict": "failed",
            "reason": " ".join(f"{type(error).__name__}: {error}".split())[:300],
            "answers": {},
        }
    runs = [row.ran.run for row in done.run.rows]
    answers: dict[str, dict[str, Array] | None] = {
        side: None if run is None else dict(run.arrays) for side, run in (("source", runs[0]), ("target", runs[-1]))
    }
    return {"verdict": str(done.verdict), "reason": done.reason, "answers": answers}


def _localized(path: Path, target: Path, asked: Mapping[str, Any], guilty: tuple[str, ...]) -> dict[str, Any]:
    """What `localize` says, and whether the first layer that it names is at fault."""
    try:
        done = api.localize(path, target, **asked)
    except Exception as error:  # noqa: BLE001 (a refusal is what it says)
        words = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return {"verdict": "failed", "reason": words, "layer": "", "hit": None}
    first = done.faults[0] if done.faults else None
    layers = [] if first is None else [*first.source_layers, *first.target_layers]
    hit = bool(set(layers) & set(guilty)) if guilty else None
    layer = "" if first is None else ", ".join(first.places[:3])
    return {"verdict": str(done.verdict), "reason": done.reason, "layer": layer, "hit": hit}


def _clear(exact: Exact) -> float:
    return _CLEAR.get(exact.road, _CLEAR_ESTIMATE)


def _label(exact: Exact, planted: _Planted | None, over: float | None) -> tuple[str, str]:
    """What a pair is by construction, as far as float64 values say so, too."""
    if planted is None:
        if over is not None and over > _clear(exact):
            return (
                EITHER,
                f"the same network, but the target's own kernels are {over:.3g} times what rounding explains",
            )
        return RIGHT, "the same network"
    if planted.effect > _clear(exact):
        return FAULTY, f"in float64 the fault is {planted.effect:.3g} times what rounding explains"
    return EITHER, f"in float64 the fault is {planted.effect:.3g} times what rounding explains, which isn't clear"


def _quantized_label(planted: _Planted | None, cosine: float) -> tuple[str, str]:
    """The same of a target in eight bits: whether it keeps a budget that anybody would give it."""
    if cosine < _BEYOND:
        return FAULTY, f"cosine {cosine:.4f} with exact values"
    if cosine >= _COSINE and planted is None:
        return RIGHT, f"cosine {cosine:.4f} with exact values"
    return EITHER, f"cosine {cosine:.4f} with exact values, {'a fault' if planted else 'no fault'} within the budget"


def _plain(number: float) -> float:
    """A number that JSON has a word for."""
    return float(np.clip(number, 0.0, 1e300)) if np.isfinite(number) else 1e300
