"""In a worker: one case, localized."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.common.in_process import ask_of
from benchmarks.common.target import Data, finite, made_target, measured, subject, told
from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.verdicts.evaluate.run import Intent

__all__ = ["run"]


def run(folder: Path, **payload: Any) -> dict[str, Any]:
    """Carry out a case.

    Args:
        payload: What `made_target` takes; "data", "samples", "batch_size", "precision".
        folder: For files; they're removed.

    Returns:
        "status" ("measured", or that of `UnfitError`) and "words"; for a measured one also "injected", "off"
        (what is wrong with the target that nobody put in), "found", "verdict", "said" (the verdict of each verb;
        of none where fewer bits were asked for), "output_error", "notes", "seconds".
    """
    return measured(_measured, payload, folder)


def _measured(payload: dict[str, Any], scratch: Path) -> dict[str, Any]:
    data = Data(payload["data"])
    target = made_target(payload, data, scratch)
    intent = Intent(asked=payload["precision"] or None)
    options = Options(
        samples=payload["samples"],
        batch_size=payload["batch_size"],
        precision=intent.precision,
        quantized=intent.quantized,
    )
    started = time.perf_counter()
    one, two = (subject(side, data.reference) for side in (payload["source"], target.side))
    result = localize_models(one, two, scratch / "localization", options)
    seconds = time.perf_counter() - started
    said = {}
    if not payload["precision"]:
        asked = {"data": data.reference, "samples": payload["samples"], "batch": payload["batch_size"]}
        said = {
            verb: ask_of(verb, payload["source"], target.side, **asked).verdict for verb in ("compare", "localize")
        }
    return {
        "injected": target.injected,
        "off": target.off,
        "found": [told(fault) for fault in result.faults],
        "verdict": str(result.verdict),
        "said": said,
        "output_error": finite(result.output_error),
        "notes": list(result.notes),
        "seconds": seconds,
    }
