"""What workers do for narrowing: try a target with models of one operator."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.ground.runtime.errors import InferenceError, ModelLoadError
from conrepair.ground.runtime.files.journal import Journal
from conrepair_lab.campaigns.generate_jobs import bounded
from conrepair_lab.campaigns.narrowing import NarrowingTarget
from conrepair_lab.campaigns.narrowing import target as named
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.narrowing.settings import changed, settings_of
from conrepair_lab.generate.narrowing.table import WEIGHTS, NarrowingRow, facts_of, suspects
from conrepair_lab.generate.onnx_form import accepted, model_of
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.values.drawn import drawn_values

_INPUTS = 4
"""Each so manieth setting has no weights."""

_AGAINST = 5
"""Settings that were taken in which what may be never taken is put in, at most."""

_FIRST_SECONDS = 120.0
"""More for a worker's first model: the target's libraries are imported."""


def narrow(
    folder: Path,
    *,
    target: str,
    op: str,
    opset: int,
    seconds: float,
    types: dict[str, list[dict[str, str]]] | None,
    journal: Path,
    whose: str,
    versions: Mapping[str, str],
) -> tuple[NarrowingRow, ...]:
    """Try a target with an operator: of each setting, what became of it.

    Args:
        folder: For files.
        target: Its name.
        op: The operator.
        opset: Of the standard's operators.
        seconds: For each setting.
        types: That ONNX Runtime takes; None for all of the standard's.
        journal: Folder of what was done.
        whose: It is.
        versions: That the answers depend on.
    """
    asked = named(target)
    support = Support() if types is None else Probed(opset, accepted, types)
    done, rows = Journal(journal, whose), list[NarrowingRow]()
    took: list[tuple[Setting, bool]] = []

    def ask(setting: Setting, weighted: bool, alone: tuple[str, str] | None = None) -> bool:
        place, draft = str(len(rows)), Draft(opset)
        draft.add(setting)
        weights, feeds = _sources(draft, len(rows), weighted)
        facts = facts_of(setting, None if len(draft.sources) < 2 else bool(weights))
        refusal: str | None = f"ends its process, or takes more than {seconds:g} s"
        if place not in done:
            more = 0.0 if asked.name in _asked else _FIRST_SECONDS
            with done.trying(place), bounded(seconds + more):
                refusal = _refusal(asked, model_of(draft, weights), feeds, folder / "model")
            _asked.add(asked.name)
        rows.append(NarrowingRow(facts, refusal, alone))
        return refusal is None

    for place, setting in enumerate(settings_of(op, opset, support)):
        weighted = bool(place % _INPUTS)
        if ask(setting, weighted):
            took.append((setting, weighted))
    for kind, name, value in suspects(rows):
        for setting, weighted in took[:: -(-len(took) // _AGAINST) or 1]:
            if name == WEIGHTS:
                if ask(setting, value == "initializers", (kind, name)):
                    break
                continue
            other = changed(setting, (kind, name, value), support)
            if other is not None and ask(other, weighted, (kind, name)):
                break
    return tuple(rows)


_asked: set[str] = set()  # targets that this process has tried


def _refusal(asked: NarrowingTarget, model: Any, feeds: dict[str, Any], folder: Path) -> str | None:
    """Why somebody doesn't take a model; of what can't be loaded or run here, as the library says it."""
    folder.mkdir()
    try:
        asked.take(model, feeds, folder)
    except Exception as error:  # noqa: BLE001 (of whatever class: it's what is asked for)
        own = isinstance(error, ModelLoadError | InferenceError) and error.__cause__
        said = own or error
        return f"{type(said).__name__}: {said}"
    finally:
        shutil.rmtree(folder)
    return None


def _sources(draft: Draft, place: int, weighted: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights and inputs: all but the first are weights, as in what people convert, where there are any."""
    generator = np.random.default_rng(place)
    arrays = {name: drawn_values(tensor.type, tensor.values, generator) for name, tensor in draft.sources.items()}
    first = next(iter(arrays), "")
    weights = {name: array for name, array in arrays.items() if name != first and weighted}
    return weights, {name: array for name, array in arrays.items() if name not in weights}
