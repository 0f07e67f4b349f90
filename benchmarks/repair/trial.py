"""In a worker: one case, repaired, and everything that its result claims measured anew."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.changes import Changes, changes
from benchmarks.common.in_process import ask_of
from benchmarks.common.target import Data, finite, made_target, measured, side_of, subject, told
from benchmarks.repair.edited_layers import edited_layers
from benchmarks.repair.files import agreement, answers, quantized_tensors, size
from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.errors import ConrepairError, UsageError
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.typed import typed
from conrepair.verdicts.evaluate.run import Intent

__all__ = ["repaired", "run"]

_COMMAND_SECONDS = 300.0


def run(folder: Path, **payload: Any) -> dict[str, Any]:
    """Carry out a case.

    Args:
        payload: What `made_target` takes; "data", "samples" (the others verify), "batch_size", "precision", "command"
            (whether to ask `conrepair repair` too), "seconds" (for the search).
        folder: For files; they're removed.

    Returns:
        "status" ("measured", or that of `UnfitError`) and "words"; for a measured one also what `scoring.score`
        takes, "off" (what is wrong with the target that nobody put in), and what tables show.
    """
    return measured(_measured, payload, folder)


def _measured(payload: dict[str, Any], scratch: Path) -> dict[str, Any]:
    data = Data(payload["data"])
    found = made_target(payload, data, scratch, meant=True)
    value = repaired(payload | {"base": found.meant}, data, found.side, found.injected, scratch)
    return value | ({"off": found.off} if found.off else {})


def repaired(
    payload: Mapping[str, Any], data: Data, made: dict[str, Any], injected: list[dict[str, Any]], scratch: Path
) -> dict[str, Any]:
    """Repair a target, and measure what came of it.

    Args:
        payload: As `run` takes it, without what a target is made by; "base" is the target without the fault.
        data: Samples.
        made: The target.
        injected: What's wrong with it.
        scratch: Receives files.

    Returns:
        What `scoring.score` takes, and what tables show.
    """
    models = {"source": _model(payload["source"]), "target": _model(made)}
    hashes = {name: model_sha256(Path(model.path)) for name, model in models.items()}
    options = Options(
        samples=payload["samples"],
        batch_size=payload["batch_size"],
        precision=Intent(asked=payload["precision"] or None).precision,
        quantized=framework(models["target"].framework).describe(models["target"]).quantized,
    )
    judge = _Judge(payload["source"], _unseen(data, payload["samples"], scratch), options, scratch)
    off = ""
    if options.quantized and injected and (faults := judge.judge(payload["base"], "base")["faults"]):
        off = f"called faulty without the fault: {'; '.join(faults[0]['evidence'])}"
    asked = {"data": data.reference, "samples": options.samples, "batch": options.batch_size}
    said = {}
    if not payload["precision"]:
        said = {verb: ask_of(verb, payload["source"], made, **asked).verdict for verb in ("compare", "localize")}
    source, target = (subject(side, data.reference) for side in (payload["source"], made))
    started = time.perf_counter()
    found = localize_models(source, target, scratch / "localization", options)
    seconds = time.perf_counter() - started
    value: dict[str, Any] = {
        "said": said,
        "verdict": str(found.verdict),
        "exit": 1,
        "injected": injected,
        "off": off,
        "found": [told(fault) for fault in found.faults],
        "rules": [{"words": rule.words, "layers": list(rule.layers)} for rule in found.rules],
        "localize_seconds": seconds,
        "base": judge.answers(payload["base"] if injected else made),
        "before": judge.judge(made, "before"),
        "after": None,
        "refused": "",
    }
    out = scratch / "out"
    started = time.perf_counter()
    try:
        repairing = RepairOptions(options, payload["seconds"], unseen=data.reference.count - options.samples)
        result = repair_models(source, target, out, repairing)
    except UsageError as refused:  # the target's format can't be edited
        value["refused"] = str(refused)
    else:
        value |= _claims(result)
        if said:
            said["repair"] = str(result.before.verdict)
        if result.model is not None:
            if said:
                written = side_of(dataclasses.replace(result.model, sha256=model_sha256(Path(result.model.path))))
                value["delivered"] = ask_of("compare", payload["source"], written, **asked).verdict
            # In another format layers have other names: there nobody knows which are injected.
            places = [] if result.delivery else edited_layers(read_patch(out / PATCH)[0], models["target"])
            value |= {
                "places": places,
                **_extent(_model(payload["base"]), models["target"], result.model, injected, bool(payload["route"])),
                "after": judge.written(result.model, "after"),
                "file": _file(models["target"], result.model, _model(payload["base"])),
            }
    value["repair_seconds"] = time.perf_counter() - started - judge.seconds
    value["out"] = sorted(path.name for path in out.rglob("*")) if out.exists() else []
    value["unchanged"] = {name: model_sha256(Path(model.path)) == hashes[name] for name, model in models.items()}
    if payload.get("command"):
        value["command"] = _command(models, payload["data"], scratch / "asked")
    return value


def _model(side: Mapping[str, Any]) -> Model:
    return typed(Model, side["model"])


def _unseen(data: Data, seen: int, scratch: Path) -> DataReference:
    """The samples that took no part, in a file of their own."""
    path = scratch / "unseen.npz"
    with np.load(data.reference.path) as arrays:
        np.savez(path, **{name: array[seen:] for name, array in arrays.items()})
    return DataReference("tensors", data.reference.count - seen, str(path), sha256_of(path))


def _claims(result: RepairResult) -> dict[str, Any]:
    """What the repair itself says."""
    return {
        "exit": int(not result.mended),
        "mended": result.mended,
        "edits": list(result.edits),
        "effects": list(result.effects),
        "tried": result.tried,
        "in_time": result.in_time,
        "told_before": dataclasses.asdict(result.unseen_before) | {"error": finite(result.unseen_before.error)},
        "told_after": dataclasses.asdict(result.unseen_after) | {"error": finite(result.unseen_after.error)},
        "left": [told(fault) for fault in result.after.faults],
    }


class _Judge:
    """Looks at targets by samples that no repair has seen.

    Attributes:
        seconds: That it took while a repair was timed.
    """

    def __init__(self, source: Mapping[str, Any], unseen: DataReference, options: Options, scratch: Path) -> None:
        self._source, self._unseen, self._options, self._scratch = source, unseen, options, scratch
        self._right = answers(source, unseen)
        self.seconds = 0.0

    def answers(self, side: Mapping[str, Any]) -> dict[str, Any]:
        """How far a target's answers are the source's."""
        found = agreement(self._right, answers(side, self._unseen))
        return {"error": finite(found.error), "top1": found.top1, "samples": self._unseen.count}

    def judge(self, side: Mapping[str, Any], name: str) -> dict[str, Any]:
        """The same, and how many faults a localization finds."""
        sides = (subject(item, self._unseen) for item in (self._source, side))
        found = localize_models(*sides, self._scratch / f"localization-{name}", self._options)
        return self.answers(side) | {"faults": [told(fault) for fault in found.faults]}

    def written(self, model: Model, name: str) -> dict[str, Any]:
        """The same for a file that a repair wrote: what can't be loaded or run has no answers."""
        started = time.perf_counter()
        try:
            again = dataclasses.replace(model, sha256=model_sha256(Path(model.path)))
            return self.judge(side_of(again), name) | {"runs": True}
        # Whatever a framework says about the file, it isn't written back.
        except Exception as error:  # noqa: BLE001
            return {
                "error": None,
                "top1": None,
                "faults": [],
                "runs": False,
                "words": f"{type(error).__name__}: {error}",
            }
        finally:
            self.seconds += time.perf_counter() - started


def _extent(
    meant: Model, target: Model, repaired: Model, injected: Sequence[Mapping[str, Any]], converted: bool
) -> dict[str, Any]:
    """Where the fault is, and how much of the file it and its repair change.

    Of a target that was converted with its fault in it, the layers at fault are those that the source converted
    without it has otherwise; where the converter wrote more than half of the file otherwise, nobody knows them.
    """
    fault = _changed(meant, target)
    at_fault = {name for item in injected for name in item["target_layers"]}
    if converted:
        nodes = len(open_editor(target).graph.nodes)
        known = fault is not None and fault.operators + fault.parameters <= nodes / 2
        at_fault = set(fault.layers) if fault is not None and known else set()
        fault = fault if known else None
    repair = _changed(target, repaired)
    return {
        "at_fault": sorted(at_fault),
        "injected_changes": None if fault is None else fault.counts,
        "repaired_changes": None if repair is None else repair.counts,
    }


def _changed(before: Model, after: Model) -> Changes | None:
    """None for files that can't be compared."""
    if before.framework != after.framework:
        return None
    try:
        return changes(before, after)
    except ConrepairError:
        return None


def _file(target: Model, repaired: Model, meant: Model) -> dict[str, Any]:
    before, after = (Path(model.path) for model in (target, repaired))
    own_format = repaired.framework == target.framework and before.suffix == after.suffix
    return {
        "own_format": own_format,
        "bytes_meant": size(Path(meant.path)),
        "bytes_before": size(before),
        "bytes": size(after),
        "quantized_meant": quantized_tensors(meant),
        "quantized_before": quantized_tensors(target),
        "quantized": quantized_tensors(repaired) if own_format else None,
    }


def _command(models: Mapping[str, Model], data: str, out: Path) -> dict[str, Any]:
    """What `conrepair repair` makes of the files alone."""
    paths = [models[name].path for name in ("source", "target")]
    done = subprocess.run(
        [sys.executable, "-m", "conrepair", "repair", *paths, "--data", data, "-o", str(out)],
        capture_output=True,
        text=True,
        timeout=_COMMAND_SECONDS,
        check=False,
    )
    return {"exit": done.returncode, "out": out.exists(), "words": (done.stdout + done.stderr)[-300:]}
