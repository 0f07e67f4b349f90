"""In a worker: two ONNX files, localized between and compared by their outputs alone."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.common.exact import difference, in_float32, in_float64
from benchmarks.common.in_process import ask_of, localization
from benchmarks.common.plain_graph import Array
from benchmarks.common.target import Data, UnfitError, finite, side_of, told
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.files.whole import sha256_of

__all__ = ["LEAST_EFFECT", "RIGHT", "SAMPLES", "located", "located_sides", "rounding_of", "saved", "unfit"]

SAMPLES = 8
RIGHT = 1e-5
"""Relative L2 of outputs in exact arithmetic, up to which another way to write a network is right."""

LEAST_EFFECT = 1e-4
"""Relative L2 of an output in exact arithmetic, from which on a fault is one."""

_BATCH = 4
_TIMES_ROUNDING = 4.0  # what two ways to write a network may differ by, where it can't be run in float64


@contextlib.contextmanager
def unfit(status: str) -> Iterator[None]:
    """What goes wrong here is no result of what's measured.

    Args:
        status: Of the `UnfitError` that is raised instead of other errors.
    """
    try:
        yield
    except UnfitError:
        raise
    except Exception as error:
        raise UnfitError(status, f"{type(error).__name__}: {error}"[:300]) from error


def saved(model: onnx.ModelProto, path: Path) -> dict[str, Any]:
    """A side of a comparison, of a file that's written."""
    onnx.save(model, path)
    return side_of(Model("onnx", str(path), sha256_of(path)))


def rounding_of(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> float | None:
    """How far the model is from itself in float64; None where that can't be run."""
    try:
        exact = in_float64(model, feeds)
    # Whatever the reference raises, it doesn't know the model.
    except Exception:  # noqa: BLE001
        return None
    return difference(exact, in_float32(model, feeds))


def located(
    source: onnx.ModelProto,
    target: onnx.ModelProto,
    feeds: Mapping[str, Array],
    scratch: Path,
    *,
    faulty: bool,
    exact: bool = True,
) -> dict[str, Any]:
    """Ask the verbs about two models.

    Args:
        source: The right one.
        target: The other one.
        feeds: Samples of the source's inputs.
        scratch: Receives files.
        faulty: Whether the target must differ, or mustn't.
        exact: Whether to look at effects in float64, too, which takes long for large convolutions.

    Returns:
        "effect", "rounding" (None where it's not known), and what `located_sides` says.

    Raises:
        UnfitError: for a fault without an effect, or a right target that isn't right.
    """
    with unfit("no model"):
        ours, theirs = in_float32(source, feeds), in_float32(target, feeds)
    rounding, effect = None, difference(ours, theirs)
    if exact:
        rounding, effect = rounding_of(source, feeds), _effect(source, target, feeds, effect)
    if faulty and effect <= LEAST_EFFECT:
        raise UnfitError("no effect", f"{effect:.1e}")
    if not faulty and effect > (RIGHT if rounding is None else max(RIGHT, _TIMES_ROUNDING * rounding)):
        raise UnfitError("unverified", f"the target differs by {effect:.1e}: a fault that nobody injected")
    value = {"effect": finite(effect), "rounding": None if rounding is None else finite(rounding)}
    path = scratch / "data.npz"
    np.savez(path, **feeds)
    sides = saved(source, scratch / "source.onnx"), saved(target, scratch / "target.onnx")
    return value | located_sides(*sides, Data(str(path)))


def located_sides(source: dict[str, Any], target: dict[str, Any], data: Data) -> dict[str, Any]:
    """Ask the verbs about two models on disk.

    Args:
        source: The right one.
        target: The other one, of any format.
        data: Samples.

    Returns:
        "said" (the verdict of each verb); what `localize` says: "found", "verdict", "output_error", "notes",
        "seconds".
    """
    asked = functools.partial(
        ask_of, source=source, target=target, data=data.reference, samples=SAMPLES, batch=_BATCH
    )
    compared = asked("compare")
    started = time.perf_counter()
    said = asked("localize")
    seconds = time.perf_counter() - started
    if not said.document:
        raise RuntimeError(said.words)
    result = localization(said)
    return {
        "said": {"compare": compared.verdict, "localize": said.verdict},
        "seconds": seconds,
        "found": [told(fault) for fault in result.faults],
        "verdict": said.verdict,
        "output_error": finite(result.output_error),
        "notes": list(result.notes),
    }


def _effect(source: onnx.ModelProto, target: onnx.ModelProto, feeds: Mapping[str, Array], known: float) -> float:
    """In float64 where that can be run."""
    try:
        return difference(in_float64(source, feeds), in_float64(target, feeds))
    # Whatever the reference raises, it doesn't know one of the models.
    except Exception:  # noqa: BLE001
        return known
