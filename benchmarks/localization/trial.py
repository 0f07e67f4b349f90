"""In a worker: one case. Put faults in or write the model otherwise, convert it, check, localize."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.localization.making import convert
from benchmarks.localization.rewriting import REWRITINGS
from benchmarks.localization.truth import Truth, named_nodes, truth_of
from conrepair.data.feeds import DataReference, batches, open_feeds
from conrepair.data.tensor_spec import TensorSpec
from conrepair.evaluate.pairing import fit, pair_outputs
from conrepair.faults.catalogue import faults
from conrepair.faults.fault import Fault
from conrepair.faults.inject import inject
from conrepair.faults.inject_file import inject_file
from conrepair.frameworks.model import Model, from_json, to_json
from conrepair.frameworks.registry import framework
from conrepair.localize.models import Subject, localize_models
from conrepair.localize.options import Options
from conrepair.localize.result import LocatedFault
from conrepair.metrics.tensors import compare_tensors
from conrepair.onnx_passes.files import load, save
from conrepair.runtime.files import sha256_of

__all__ = ["run"]

_INJECTION_SAMPLES = 2
_AGREE = 1e-4  # relative L2 of outputs, up to which a conversion counts as correct
_EVIDENCE = 3  # lines that are kept


@dataclasses.dataclass
class _UnfitError(Exception):
    """The case can't be measured.

    Attributes:
        status: See `Row`.
        words: More.
    """

    status: str
    words: str = ""


def run(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Carry out a case.

    Args:
        payload: "source" and "base" (sides), "data", "samples", "batch_size", "faults" (names, tried in turn),
            "count" (how many are wanted), "seed", "rewriting", "route", "precision", "agree" (whether the target
            must compute the same).
        folder: For files; they're removed.

    Returns:
        "status" ("measured", or that of `_UnfitError`) and "words"; for a measured one also "injected", "found",
        "verdict", "output_error", "seconds".
    """
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        try:
            return {"status": "measured", "words": ""} | _measured(payload, Path(scratch))
        except _UnfitError as unfit:
            return {"status": unfit.status, "words": unfit.words}


def _measured(payload: dict[str, Any], scratch: Path) -> dict[str, Any]:
    data = _Data(payload["data"])
    side, injected = payload["base"], []
    if payload["faults"]:
        side, injected = _injected(payload, data, scratch)
    if payload["rewriting"]:
        side = _rewritten(payload, side, scratch)
    made = _converted(side, payload["route"], scratch)
    if injected and payload["route"] and (error := _disagreement(side, made, data)) > _AGREE:
        raise _UnfitError("unverified", f"the conversion of the faulty model differs by {error:.1e}")
    if not injected and payload["agree"] and (error := _disagreement(payload["source"], made, data)) > _AGREE:
        raise _UnfitError("unverified", f"the target differs by {error:.1e}: a fault that nobody injected")
    options = Options(
        samples=payload["samples"], batch_size=payload["batch_size"], precision=payload["precision"] or "float32"
    )
    started = time.perf_counter()
    result = localize_models(
        _subject(payload["source"], data), _subject(made, data), scratch / "localization", options
    )
    seconds = time.perf_counter() - started
    return {
        "injected": injected,
        "found": [_told(fault) for fault in result.faults],
        "verdict": str(result.verdict),
        "output_error": _finite(result.output_error),
        "notes": list(result.notes),
        "seconds": seconds,
    }


class _Data:
    """The inputs' file."""

    def __init__(self, path: str) -> None:
        with np.load(path) as arrays:
            count = len(next(iter(arrays.values())))
        self.reference = DataReference("tensors", count, path, sha256_of(Path(path)))

    def feeds(self, side: Mapping[str, Any], count: int) -> dict[str, Any]:
        """A batch for a model: of the size that it has, or else of `count` samples."""
        inputs = _inputs(side)
        reader = open_feeds(self.reference, inputs, None)
        reader.count = min(reader.count, count)
        return next(iter(batches(reader, inputs, count))).feeds


def _inputs(side: Mapping[str, Any]) -> tuple[TensorSpec, ...]:
    return tuple(from_json(TensorSpec, spec) for spec in side["inputs"])


def _subject(side: Mapping[str, Any], data: _Data) -> Subject:
    return Subject(from_json(Model, side["model"]), _inputs(side), data.reference, None)


# --- faults -----------------------------------------------------------------------------------------------


def _injected(payload: dict[str, Any], data: _Data, scratch: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    catalogue = {fault.name: fault for fault in faults()}
    side, told = payload["base"], []
    avoid: frozenset[str] = frozenset()
    generator = np.random.default_rng(payload["seed"])
    for place, name in enumerate(payload["faults"]):
        try:
            found = _inject(side, catalogue[name], data, generator, scratch / f"injected-{place}", avoid)
        # Whatever an injection raises, it isn't localization's.
        except Exception as error:
            raise _UnfitError("not injected", f"{name}: {type(error).__name__}: {error}"[:300]) from error
        if found is None:
            continue
        side, truth, about = found
        avoid |= truth.target
        told.append(about | {"target_layers": sorted(truth.target), "source_layers": sorted(truth.source)})
        if len(told) == payload["count"]:
            return side, told
    raise _UnfitError("no place")


def _inject(
    side: Mapping[str, Any],
    fault: Fault[Any],
    data: _Data,
    generator: np.random.Generator,
    folder: Path,
    avoid: frozenset[str],
) -> tuple[dict[str, Any], Truth, dict[str, Any]] | None:
    model = from_json(Model, side["model"])
    feeds = data.feeds(side, _INJECTION_SAMPLES)
    folder.mkdir()
    about: dict[str, Any] = {"fault": fault.name, "kind": str(fault.kind)}
    if model.framework != "onnx":
        changed = inject_file(model, fault, feeds, generator, folder, avoid=avoid)
        if changed is None:
            return None
        inputs = framework(changed.model.framework).describe(changed.model).inputs
        made = {"model": to_json(changed.model), "inputs": [to_json(spec) for spec in inputs]}
        truth = Truth(changed.layers, frozenset())
        return made, truth, about | {"words": changed.words, "effect": _finite(changed.effect)}
    right = load(model.path)
    injection = inject(right, fault, feeds, generator, avoid=avoid)
    if injection is None:
        return None
    truth = truth_of(named_nodes(right.graph), injection.model.graph, injection.nodes)
    made = _written(injection.model, folder / "model.onnx")
    return made, truth, about | {"words": injection.words, "effect": _finite(injection.effect)}


def _told(fault: LocatedFault) -> dict[str, Any]:
    return {
        "kind": str(fault.kind),
        "source_layers": list(fault.source_layers),
        "target_layers": list(fault.target_layers),
        "introduced_error": _finite(fault.introduced_error),
        "noise_floor": _finite(fault.noise_floor),
        "evidence": list(fault.evidence[:_EVIDENCE]),
    }


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


# --- targets ----------------------------------------------------------------------------------------------


def _rewritten(payload: dict[str, Any], side: Mapping[str, Any], scratch: Path) -> dict[str, Any]:
    model = load(side["model"]["path"])
    generator = np.random.default_rng(payload["seed"])
    return _written(REWRITINGS[payload["rewriting"]](model, generator), scratch / "rewritten.onnx")


def _written(model: Any, path: Path) -> dict[str, Any]:
    save(model, path)
    written = Model("onnx", str(path), sha256_of(path))
    inputs = framework("onnx").describe(written).inputs
    return {"model": to_json(written), "inputs": [to_json(spec) for spec in inputs]}


def _converted(side: dict[str, Any], route: Sequence[str], scratch: Path) -> dict[str, Any]:
    for place, name in enumerate(route):
        folder = scratch / f"step-{place}"
        folder.mkdir()
        try:
            side = convert({"side": side, "converter": name, "options": {}}, folder)["side"]
        # Whatever a converter raises, it can't write this model.
        except Exception as error:
            raise _UnfitError("no model", f"{name}: {type(error).__name__}: {error}"[:300]) from error
    return side


def _disagreement(reference: Mapping[str, Any], candidate: Mapping[str, Any], data: _Data) -> float:
    """Largest relative L2 of an output; infinite where outputs have no partner."""
    expected, given = (_outputs(side, data) for side in (reference, candidate))
    pairs, unpaired = pair_outputs(expected, given)
    if unpaired:
        return float("inf")
    errors = []
    for pair in pairs:
        one, two = fit(pair, expected[pair.reference], given[pair.candidate])
        count = min(len(one), len(two))  # one of them may have a batch of its own
        errors.append(compare_tensors(one[:count], two[:count], rtol=0, atol=0).relative_l2)
    return float(max(errors))


def _outputs(side: Mapping[str, Any], data: _Data) -> dict[str, Any]:
    runnable = framework(side["model"]["framework"]).load(from_json(Model, side["model"]))
    return runnable.run(data.feeds(side, _INJECTION_SAMPLES))
