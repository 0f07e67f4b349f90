"""Put a fault into a model by the framework's own means, and make sure that it changes the function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.common.changes import changes
from benchmarks.common.injecting.by_exporter import BY_EXPORTER, EVERYWHERE
from benchmarks.common.injecting.by_keras import BY_KERAS
from benchmarks.common.injecting.by_protobuf import BY_PROTOBUF
from benchmarks.common.injecting.by_tflite import BY_TFLITE
from benchmarks.common.injecting.by_torch import BY_TORCH
from benchmarks.common.injecting.fault import Array, Means, OwnFault
from benchmarks.common.plain_graph import PlainGraph
from benchmarks.common.unfit import UnfitError
from benchmarks.faults.inject_file import ATTEMPTS, LEAST_EFFECT
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.onnx.passes.verify import relative_error
from conrepair.ground.runtime.errors import ConrepairError

__all__ = ["OWN_FAULTS", "OwnInjection", "inject_by_framework", "layers_otherwise"]

OWN_FAULTS: dict[str, tuple[Means, OwnFault]] = {
    f"{means.name}-{name}": (means, fault)
    for means in (BY_TORCH, BY_KERAS, BY_TFLITE, BY_PROTOBUF, BY_EXPORTER)
    for name, fault in means.faults.items()
}
"""By name, that begins with the means'."""


@dataclass(frozen=True)
class OwnInjection:
    """A file with a fault.

    Attributes:
        model: The file.
        meant: The same without the fault, written by the same means.
        target: What the file calls the layers at fault.
        source: What the one without calls them.
        words: What was done.
        effect: Relative L2 of the output that changed most.
    """

    model: Model
    meant: Model
    target: frozenset[str]
    source: frozenset[str]
    words: str
    effect: float


def inject_by_framework(
    model: Model, name: str, feeds: Mapping[str, Array], generator: np.random.Generator, folder: Path
) -> OwnInjection:
    """Inject a fault at a random place.

    Args:
        model: That is right.
        name: Of the fault, in `OWN_FAULTS`.
        feeds: Inputs on which the model must answer otherwise.
        generator: Decides about the place, and what the fault leaves open.
        folder: Is made, and receives files.

    Raises:
        UnfitError: if it has no place, or none of those that were tried changes an answer.
    """
    means, fault = OWN_FAULTS[name]
    meant = means.write(means.opened(model), _made(folder / "meant"))
    expected = _answers(meant, list(feeds.values()))
    places, placed = list(fault.places(means.opened(model))), False
    for attempt, index in enumerate(generator.permutation(len(places))[:ATTEMPTS]):
        place, opened = places[int(index)], means.opened(model)
        words = fault.change(opened, place, generator)
        changed, given = _changed(means, opened, folder / str(attempt), list(feeds.values()))
        if changed is None or [item.shape for item in given] != [item.shape for item in expected]:
            continue
        placed |= changed.sha256 != meant.sha256
        effect = max(map(relative_error, expected, given), default=0.0)
        if effect > LEAST_EFFECT:
            named = frozenset() if place == EVERYWHERE else frozenset({place})
            target, source = layers_otherwise(meant, changed), layers_otherwise(changed, meant)
            return OwnInjection(changed, meant, target | named, source | named, words, effect)
    raise UnfitError("no effect" if placed else "no place")


def _changed(means: Means, opened: Any, folder: Path, arrays: list[Array]) -> tuple[Model | None, list[Any]]:
    """The file with a fault and what it answers; none where that's no valid place for it."""
    try:
        changed = means.write(opened, _made(folder))
        return changed, _answers(changed, arrays)
    # Whatever a framework says about the changed model, it isn't valid.
    except Exception:  # noqa: BLE001
        return None, []


def layers_otherwise(before: Model, after: Model) -> frozenset[str]:
    """What the second file calls the layers that differ, as far as that can be read."""
    try:
        found = changes(before, after).layers
    # What isn't read has the name that the injection gave.
    except ConrepairError:
        return frozenset()
    if found or before.framework != "onnx":
        return found
    one, two = (PlainGraph.of(onnx.load(item.path)) for item in (before, after))
    return two.differing(one)


def _answers(model: Model, arrays: list[Array]) -> list[Any]:
    """In the order of inputs and outputs, which files may call otherwise."""
    runnable = framework(model.framework).load(model)
    results = runnable.run(dict(zip([spec.name for spec in runnable.inputs], arrays, strict=True)))
    return [results[spec.name] for spec in runnable.outputs]


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
