"""In a worker: the target of a case. Put faults in or write the model otherwise, convert it, check it."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.injecting.inject import OWN_FAULTS, inject_by_framework, layers_otherwise
from benchmarks.common.making import convert
from benchmarks.common.rewriting import REWRITINGS
from benchmarks.common.truth import Truth, named_nodes, truth_of
from benchmarks.common.unfit import UnfitError
from benchmarks.faults.catalogue import faults
from benchmarks.faults.fault import Fault
from benchmarks.faults.inject_file import has_place, inject_file
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.onnx.passes.files import load, save
from conrepair.ground.data.feeds import DataReference, batches, open_feeds
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.metrics.tensors import compare_tensors
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.typed import typed
from conrepair.verdicts.evaluate.pairing import fit, pair_outputs

__all__ = [
    "AGREE",
    "Data",
    "Target",
    "UnfitError",
    "converted",
    "disagreement",
    "finite",
    "made_target",
    "measured",
    "side_of",
    "subject",
    "told",
]

AGREE = 1e-4
"""Relative L2 of outputs, up to which a conversion counts as correct."""

_INJECTION_SAMPLES = 2
_EVIDENCE = 3  # lines that are kept


@dataclasses.dataclass(frozen=True)
class Target:
    """What a case is about.

    Attributes:
        side: The target.
        injected: Each with "fault", "kind", "words", "effect", "target_layers" and "source_layers".
        meant: What it would be without what was injected.
        off: What is wrong with it that nobody put in: a converter's own work, off by more than `AGREE`; or "".
    """

    side: dict[str, Any]
    injected: list[dict[str, Any]]
    meant: dict[str, Any]
    off: str = ""


class Data:
    """The inputs' file.

    Attributes:
        reference: To all of them.
    """

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


def made_target(payload: Mapping[str, Any], data: Data, scratch: Path, *, meant: bool = False) -> Target:
    """Make the target that a case is about.

    Args:
        payload: "source" and "base" (sides), "faults" (names, tried in turn), "count" (how many are wanted), "seed",
            "rewriting", "route", "agree" (whether the target must compute the same).
        data: To inject by.
        scratch: Receives the files.
        meant: Whether to convert what has no fault by the same route, too.

    Raises:
        UnfitError: if there's no such target.
    """
    side, injected, right = payload["base"], [], payload["base"]
    if payload["faults"]:
        side, injected, right = _injected(payload, data, scratch)
    if payload["rewriting"]:
        side = _rewritten(payload, side, scratch)
    made, off = converted(side, payload["route"], scratch), ""
    if injected and payload["route"] and (error := disagreement(side, made, data)) > AGREE:
        off = f"the conversion of the faulty model differs by {error:.1e}"
    if not injected and payload["agree"] and (error := disagreement(payload["source"], made, data)) > AGREE:
        off = f"the target differs by {error:.1e}: a fault that nobody injected"
    if not injected:
        right = made
    elif payload["route"] and (meant or payload["faults"][0] in OWN_FAULTS):
        right = converted(right, payload["route"], scratch / "meant")
        if payload["faults"][0] in OWN_FAULTS:  # else localization may name the source's layers, which are known
            models = (typed(Model, item["model"]) for item in (right, made))
            injected[0]["target_layers"] = sorted(layers_otherwise(*models))
    return Target(made, injected, right, off)


def side_of(model: Model) -> dict[str, Any]:
    """A model with its inputs, as plain values."""
    inputs = framework(model.framework).describe(model).inputs
    return {"model": asdict(model), "inputs": [asdict(spec) for spec in inputs]}


def subject(side: Mapping[str, Any], reference: DataReference) -> FedModel:
    """A side as a localization takes it."""
    return FedModel(typed(Model, side["model"]), _inputs(side), reference, None)


def told(fault: LocatedFault) -> dict[str, Any]:
    """What was found, as plain values."""
    return {
        "kind": str(fault.kind),
        "source_layers": list(fault.source_layers),
        "target_layers": list(fault.target_layers),
        "introduced_error": finite(fault.introduced_error),
        "noise_floor": finite(fault.noise_floor),
        "evidence": list(fault.evidence[:_EVIDENCE]),
    }


def measured(
    measure: Callable[[dict[str, Any], Path], dict[str, Any]], payload: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """Carry out a case.

    Args:
        measure: Given the payload and a folder for files, says what was measured.
        payload: Of the case.
        folder: For a folder that is removed.

    Returns:
        "status" ("measured", or that of `UnfitError`) and "words"; for a measured one also what `measure` says.
    """
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        try:
            return {"status": "measured", "words": ""} | measure(payload, Path(scratch))
        except UnfitError as unfit:
            return {"status": unfit.status, "words": unfit.words}


def finite(number: float) -> float | None:
    """None for what JSON has no word for."""
    return float(number) if np.isfinite(number) else None


def _inputs(side: Mapping[str, Any]) -> tuple[TensorSpec, ...]:
    return tuple(typed(TensorSpec, spec) for spec in side["inputs"])


# --- faults -----------------------------------------------------------------------------------------------


def _injected(
    payload: Mapping[str, Any], data: Data, scratch: Path
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """The faulty model, what is wrong with it, and the right one."""
    if payload["faults"][0] in OWN_FAULTS:
        return _injected_by_framework(payload, data, scratch)
    catalogue = {fault.name: fault for fault in faults()}
    side, listed = payload["base"], []
    avoid: frozenset[str] = frozenset()
    generator, placed = np.random.default_rng(payload["seed"]), False
    for place, name in enumerate(payload["faults"]):
        try:
            found = _inject(side, catalogue[name], data, generator, scratch / f"injected-{place}", avoid)
        # Whatever an injection raises, it isn't what is measured.
        except Exception as error:
            raise UnfitError("not injected", f"{name}: {type(error).__name__}: {error}"[:300]) from error
        if found is None:
            placed |= has_place(typed(Model, side["model"]), catalogue[name])
            continue
        side, truth, about = found
        avoid |= truth.target
        listed.append(about | {"target_layers": sorted(truth.target), "source_layers": sorted(truth.source)})
        if len(listed) == payload["count"]:
            return side, listed, payload["base"]
    raise UnfitError("no effect" if placed and len(payload["faults"]) == 1 else "no place")


def _injected_by_framework(
    payload: Mapping[str, Any], data: Data, scratch: Path
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    (name, *_), base = payload["faults"], payload["base"]
    feeds, generator = data.feeds(base, _INJECTION_SAMPLES), np.random.default_rng(payload["seed"])
    try:
        found = inject_by_framework(typed(Model, base["model"]), name, feeds, generator, scratch / "injected")
    except UnfitError:
        raise
    # Whatever an injection raises, it isn't what is measured.
    except Exception as error:
        raise UnfitError("not injected", f"{name}: {type(error).__name__}: {error}"[:300]) from error
    about = {
        "fault": name,
        "kind": str(OWN_FAULTS[name][1].kind),
        "words": found.words,
        "effect": finite(found.effect),
    }
    layers = {"target_layers": sorted(found.target), "source_layers": sorted(found.source)}
    return side_of(found.model), [about | layers], side_of(found.meant)


def _inject(
    side: Mapping[str, Any],
    fault: Fault,
    data: Data,
    generator: np.random.Generator,
    folder: Path,
    avoid: frozenset[str],
) -> tuple[dict[str, Any], Truth, dict[str, Any]] | None:
    model = typed(Model, side["model"])
    feeds = data.feeds(side, _INJECTION_SAMPLES)
    changed = inject_file(model, fault, feeds, generator, folder, avoid=avoid)
    if changed is None:
        return None
    truth = Truth(changed.layers, frozenset())
    if model.framework == "onnx":
        right, wrong = (load(item.path).graph for item in (model, changed.model))
        truth = truth_of(named_nodes(right), wrong, changed.layers)
    about = {"fault": fault.name, "kind": str(fault.kind), "words": changed.words, "effect": finite(changed.effect)}
    return side_of(changed.model), truth, about


# --- targets ----------------------------------------------------------------------------------------------


def _rewritten(payload: Mapping[str, Any], side: Mapping[str, Any], scratch: Path) -> dict[str, Any]:
    model = load(side["model"]["path"])
    generator = np.random.default_rng(payload["seed"])
    return _written(REWRITINGS[payload["rewriting"]](model, generator), scratch / "rewritten.onnx")


def _written(model: Any, path: Path) -> dict[str, Any]:
    save(model, path)
    return side_of(Model("onnx", str(path), sha256_of(path)))


def converted(side: dict[str, Any], route: Sequence[str], scratch: Path) -> dict[str, Any]:
    """A side, by one converter after the other.

    Raises:
        UnfitError: if one can't.
    """
    for place, name in enumerate(route):
        folder = scratch / f"step-{place}"
        folder.mkdir(parents=True)
        try:
            side = convert(folder, side=side, converter=name, options={})["side"]
        # Whatever a converter raises, it can't write this model.
        except Exception as error:
            raise UnfitError("no model", f"{name}: {type(error).__name__}: {error}"[:300]) from error
    return side


def disagreement(reference: Mapping[str, Any], candidate: Mapping[str, Any], data: Data) -> float:
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


def _outputs(side: Mapping[str, Any], data: Data) -> dict[str, Any]:
    runnable = framework(side["model"]["framework"]).load(typed(Model, side["model"]))
    return runnable.run(data.feeds(side, _INJECTION_SAMPLES))
