"""In a worker: one case, compared, localized and repaired, and what came out measured anew."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from benchmarks.common.cases import Case
from benchmarks.common.generated import case_of
from benchmarks.common.in_process import VERBS, Answer, ask, localization
from benchmarks.common.located import LEAST_EFFECT, RIGHT, unfit
from benchmarks.common.target import UnfitError, finite, measured, side_of, told
from benchmarks.families.architectures import architecture
from benchmarks.families.cases import without_data
from benchmarks.families.exporting import INT8, model_of
from benchmarks.families.making import Made, make
from benchmarks.repair.files import agreement, answers

__all__ = ["run"]

_TIMES_ROUNDING = 4.0
_SECONDS = "60"  # for the search of a repair
_QUANTIZED = 0.35  # relative L2 from which on eight bits aren't what a right conversion lost
_SAID, _SHOWN = 400, 3


def run(folder: Path, **payload: Any) -> dict[str, Any]:
    """Carry out a case.

    Args:
        payload: "case"; "kept" (a folder for networks); "keep" (a folder for the files of cases, or "").
        folder: For files; they're removed.

    Returns:
        "status" ("measured", or that of `UnfitError`) and "words"; for a measured one what `rows.FamilyRow` reads.
    """
    return measured(_measured, payload, folder)


def _measured(payload: dict[str, Any], scratch: Path) -> dict[str, Any]:
    case = case_of(payload)
    with unfit("no model"):
        made = make(case, Path(payload["kept"]), scratch)
        source, right, target = (answers(side_of(model_of(path)), made.unseen) for path in _paths(made))
    rounding, effect = agreement(source, right).error, agreement(right, target).error
    off = agreement(source, target).error
    _check(case, rounding, effect, off)
    data = [] if without_data(case) else ["--data", str(made.data)]
    value: dict[str, Any] = {
        "effect": finite(effect),
        "rounding": finite(rounding),
        "data": bool(data),
        "injected": [],
        "said": {},
        "seconds": {},
    }
    if case.count:
        fault = architecture(case.model).faults[case.faults[0]]
        about = {"fault": case.faults[0], "kind": str(fault.kind), "words": case.faults[0]}
        value["injected"] = [about | made.truth()]
    if payload.get("keep"):
        _keep(made, Path(payload["keep"]) / case.name.replace(":", "_"))
    for verb, read in zip(VERBS, (_compared, _localized, _repaired), strict=True):
        started = time.perf_counter()
        more = ["--seconds", _SECONDS] if verb == "repair" else []
        said = ask(verb, str(made.source), str(made.target), "-o", str(scratch / f"out-{verb}"), *data, *more)
        value["seconds"][verb] = time.perf_counter() - started
        value[verb] = {"exit": said.exit, "words": said.words[:_SAID]} | (read(said) if said.document else {})
        value["said"][verb] = said.verdict
    written = value["repair"].get("model")
    if written:
        with unfit("failed"):
            after = answers(side_of(model_of(Path(written))), made.unseen)
        value["after"] = finite(agreement(source, after).error)
    value["before"] = finite(off)
    return value


def _check(case: Case, rounding: float, effect: float, off: float) -> None:
    """Make sure that the right target is right, and that a fault shows."""
    few_bits = case.base == INT8
    error = rounding if case.count else off
    limit = _QUANTIZED if few_bits else LEAST_EFFECT if case.count else max(RIGHT, _TIMES_ROUNDING * rounding)
    if error > limit:
        raise UnfitError("unverified", f"the right target differs by {error:.1e}")
    floor = max(LEAST_EFFECT, rounding if few_bits else _TIMES_ROUNDING * rounding)
    if case.count and effect <= floor:
        words = f"the answers differ by {effect:.1e}, those of the right target by {rounding:.1e}"
        raise UnfitError("below the floor", words)


def _paths(made: Made) -> tuple[Path, Path, Path]:
    return made.source, made.right, made.target


def _keep(made: Made, folder: Path) -> None:
    """The files of a case, for whoever wants to see it again."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in (*_paths(made), made.data):
        shutil.copy(path, folder / path.name)


def _compared(said: Answer) -> dict[str, Any]:
    return {"reason": (said.document["rows"][-1]["reason"] or "")[:_SAID]}


def _localized(said: Answer) -> dict[str, Any]:
    found = localization(said)
    return {
        "reason": found.reason[:_SAID],
        "found": [_cut(told(fault)) for fault in found.faults],
        "latent": len(found.latent),
        "rules": [rule.words[:_SAID] for rule in found.rules],
    }


def _cut(fault: dict[str, Any]) -> dict[str, Any]:
    return fault | {"evidence": [line[:_SAID] for line in fault["evidence"]]}


def _repaired(said: Answer) -> dict[str, Any]:
    done = said.document["rows"][-1]["repaired"]["result"]
    if done is None:
        return {"reason": localization(said).reason[:_SAID], "edits": [], "model": None}
    model = done["model"]
    return {
        "left": done["after"]["verdict"],
        "edits": [line[:_SAID] for line in done["edits"][:_SHOWN]],
        "model": None if model is None else str(Path(said.document["folder"]) / model["path"]),
        "recipe": done["recipe"] is not None,
        "refused": [line[:_SAID] for line in (*done["refused"], *done["failed"])[:_SHOWN]],
        "undone": done["undone"],
    }
