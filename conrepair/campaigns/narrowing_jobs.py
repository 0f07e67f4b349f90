"""What workers do for narrowing: try a target with models of one operator."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.campaigns.generate_jobs import bounded
from conrepair.campaigns.narrowing_targets import NarrowingTarget, target
from conrepair.generate.graph import Draft
from conrepair.generate.narrowing.facts import facts_of
from conrepair.generate.narrowing.settings import settings_of
from conrepair.generate.narrowing.table import NarrowingRow
from conrepair.generate.onnx_form import model_of
from conrepair.generate.ports import Support
from conrepair.generate.running import accepted
from conrepair.generate.support import Probed
from conrepair.generate.values.drawn import drawn_values
from conrepair.runtime.journal import Journal

__all__ = ["narrow"]

_INPUTS = 4
"""Each so manieth setting has no weights."""

_FIRST_SECONDS = 120.0
"""More for a worker's first model: the target's libraries are imported."""


def narrow(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Try a target with an operator.

    Args:
        payload: "target", "op", "opset", "seconds" (for each setting), "types" (that ONNX Runtime takes; None for
            all of the standard's), "versions" and "specifications", that the answers depend on; "journal" and "whose"
            it is.
        folder: For files.

    Returns:
        "rows", of each setting what became of it, and "seconds", of a processor.
    """
    asked, op, opset, begun = target(payload["target"]), payload["op"], payload["opset"], time.process_time()
    support = Support() if payload["types"] is None else Probed(opset, accepted, payload["types"])
    journal, rows = Journal(Path(payload["journal"]), payload["whose"]), []
    for place, setting in enumerate(settings_of(op, opset, support)):
        draft = Draft(opset)
        draft.add(setting)
        weights, feeds = _sources(draft, place)
        facts = facts_of(setting, None if len(draft.sources) < 2 else bool(weights))
        if str(place) in journal:
            rows.append(NarrowingRow(facts, f"ends its process, or takes more than {payload['seconds']:g} s"))
            continue
        more = 0.0 if asked.name in _asked else _FIRST_SECONDS
        with journal.trying(str(place)), bounded(payload["seconds"] + more):
            rows.append(NarrowingRow(facts, _refusal(asked, model_of(draft, weights), feeds, folder / "model")))
        _asked.add(asked.name)
    return {"rows": [row.as_json() for row in rows], "seconds": time.process_time() - begun}


_asked: set[str] = set()  # targets that this process has tried


def _refusal(asked: NarrowingTarget, model: Any, feeds: dict[str, Any], folder: Path) -> str | None:
    folder.mkdir()
    try:
        asked.take(model, feeds, folder)
    except Exception as error:  # noqa: BLE001 (of whatever class: it's what is asked for)
        return f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(folder)
    return None


def _sources(draft: Draft, place: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights and inputs: all but the first are weights, as in what people convert, but for some settings."""
    generator = np.random.default_rng(place)
    arrays = {name: drawn_values(tensor.type, tensor.values, generator) for name, tensor in draft.sources.items()}
    first = next(iter(arrays), "")
    weights = {name: array for name, array in arrays.items() if name != first and place % _INPUTS}
    return weights, {name: array for name, array in arrays.items() if name not in weights}
