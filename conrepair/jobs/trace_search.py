"""What a worker does for a trace first: search inputs on which sides differ, and judge them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from conrepair.frameworks.arithmetic import settled
from conrepair.frameworks.identity import copy_model
from conrepair.frameworks.model import Model, from_json
from conrepair.frameworks.runnable import Array, Runnable
from conrepair.jobs.systems import run_seconds
from conrepair.report.encode import encode
from conrepair.runtime.errors import InferenceError
from conrepair.runtime.files import sha256_of
from conrepair.systems.registry import SYSTEMS
from conrepair.systems.system import Setting
from conrepair.tracing.exact_side import ExactSide, over_bound
from conrepair.tracing.judging import Judged, deviation_of, write_judged
from conrepair.tracing.result import Deviation, worst_first
from conrepair.tracing.search.objectives import OBJECTIVES, guide
from conrepair.tracing.search.space import space_of
from conrepair.tracing.searching import Searched, Sides, search_inputs
from conrepair.truth.bound import ACCURACY, Accuracy
from conrepair.truth.referees import OnnxReference

_KEPT = 8  # samples, the worst first
_ON_EXACT = 0.25  # of the evaluations, at least: errors that both sides have show beside exact values alone
_FLAT = 100  # evaluations of two sides between which no difference changes, after which exact values are searched
_JUDGING = 30.0  # seconds for it, at least
_NUMBERS = "biuf"


def trace(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Search inputs on which two settings differ, or one differs from exact values, and judge them.

    Args:
        payload: "model" (an ONNX file), "one" and "two" ("system" and "setting"; two None: exact values), "method",
            "objective", "evaluations", "seconds", "low", "high", "seed", "given" (an .npz file of samples, or None),
            "given_sha256", "starts" (whether it searches around them; else they are for inputs that it keeps),
            "weights" (inputs that are searched around them in any case), "accuracy" (of operators whose errors are
            known, in units in the last place).
        folder: Receives the worst samples (`conrepair.tracing.judging.JUDGED`).

    Returns:
        "deviations" (the worst of each output), "evaluations", "failed", "seconds", "history", "changed" (share of
        the given samples whose answer changes), "referees", "doubts", "opened" and "ran" (seconds of each side).

    Raises:
        UsageError: if nothing can be searched.
        InferenceError: if no input can be run, or the network itself overflows on each.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        return _traced(payload, Path(made), folder)


def _traced(payload: dict[str, Any], made: Path, folder: Path) -> dict[str, Any]:
    model = from_json(Model, payload["model"])
    opened, seconds = _opened(payload["one"], model, made)
    proto = onnx.load(model.path)  # with weights that lie beside it
    given = _given(payload, opened)
    weights = set(payload["weights"])
    whole = [
        {name: array for name, array in feeds.items() if array.dtype.kind != "f" or name in weights}
        for feeds in given[:1]
    ]
    around = given if payload["starts"] else whole
    space = space_of(opened.inputs, payload["low"], payload["high"], around=around, seed=payload["seed"])
    given = given if payload["starts"] else []
    anywhere = np.random.default_rng(payload["seed"]).uniform(-1, 1, space.size)
    exact, doubts = _exact(proto, opened, space.feeds(anywhere), {**ACCURACY, **payload["accuracy"]})
    if payload["two"] is not None:
        other, other_seconds = _opened(payload["two"], model, made)
    elif exact is not None:
        other, other_seconds = exact, 0.0
    else:
        raise InferenceError(f"nobody computes this network in float64: {doubts[0]}")
    evaluations, longest = int(payload["evaluations"]), float(payload["seconds"])
    search = functools.partial(search_inputs, name=payload["method"], seed=payload["seed"])
    objective = beyond = OBJECTIVES[payload["objective"]]
    if exact is not None and exact.tells:  # by how much more than rounding explains
        beyond = functools.partial(over_bound, exact)
    if exact is None or other is exact:
        objective = beyond if objective is guide else objective
        sides = Sides(opened, other, space, objective)
        searched = [search(sides, evaluations=max(evaluations, 1), seconds=longest, given=given)]
    else:
        sides, share = Sides(opened, other, space, objective), 1 - _ON_EXACT
        most = max(math.ceil(share * evaluations), 1)
        pair = search(sides, evaluations=most, seconds=share * longest, given=given, flat=_FLAT)
        left = max(evaluations - (pair.evaluations - len(given)), 1)
        sides = Sides(opened, exact, space, beyond)
        searched = [pair, search(sides, evaluations=left, seconds=longest - pair.seconds)]
    candidates = _ranked(searched)
    judged, arithmetic = _judged(candidates, opened, other, exact, longest=max(longest, _JUDGING))
    doubts += [f"a library leaves its process computing otherwise: {words}" for words in arithmetic]
    values = [array for sample in judged.exact for array in sample.values() if array.size]
    if values and not any(np.isfinite(array).any() for array in values):
        raise InferenceError(
            f"between {payload['low']:g} and {payload['high']:g} the network itself overflows, in float64 too: "
            "nothing can be compared. Give a range that it's made for (--low, --high), or inputs (--data)."
        )
    deviations, kept = _worst(judged, [spec.name for spec in opened.outputs])
    write_judged(kept, folder)
    _keep_converted(payload["one"], model, made, folder)
    first = candidates[0]
    return {
        "deviations": [encode(item) for item in deviations],
        "evaluations": sum(item.evaluations for item in searched),
        "failed": sum(item.failed for item in searched),
        "seconds": sum(item.seconds for item in searched),
        "history": encode(searched[0].history),
        "changed": _changed(given, opened, other),
        "referees": [] if exact is None else [OnnxReference.name],
        "doubts": list(doubts),
        "opened": [seconds, other_seconds],
        "ran": [run_seconds(opened, first), run_seconds(other, first)],
    }


def _keep_converted(asked: Mapping[str, Any], model: Model, made: Path, folder: Path) -> None:
    """Keep the model in the format that the system is given, for the programs that show what was found."""
    system = SYSTEMS[asked["system"]]
    there = system.programmed(model, from_json(Setting, asked["setting"]), made)
    if there is not model:
        copy_model(Path(there.path), folder / system.file)


def _opened(asked: Mapping[str, Any], model: Model, folder: Path) -> tuple[Runnable, float]:
    started = time.perf_counter()
    found = SYSTEMS[asked["system"]].open(model, from_json(Setting, asked["setting"]), folder)
    return found, time.perf_counter() - started


def _exact(
    proto: onnx.ModelProto, opened: Runnable, point: Mapping[str, Array], accuracy: Accuracy
) -> tuple[ExactSide | None, list[str]]:
    """Exact values of a network as a side, if ONNX's reference computes them for a point."""
    try:
        found = ExactSide(proto, opened.inputs, opened.outputs, accuracy)
        found.run(point)
    except InferenceError as error:
        return None, [str(error)]
    return found, []


def _given(payload: Mapping[str, Any], runnable: Runnable) -> list[dict[str, Array]]:
    """Samples, as many together as the network takes."""
    if payload["given"] is None:
        return []
    if sha256_of(Path(payload["given"])) != payload["given_sha256"]:
        raise InferenceError(f"{payload['given']} was changed while it was read. Run the command again.")
    with np.load(payload["given"]) as file:
        arrays = dict(file)
    sizes = {
        spec.name: spec.shape[0] if spec.shape and isinstance(spec.shape[0], int) else 1 for spec in runnable.inputs
    }
    weights = {name: arrays.pop(name) for name in payload["weights"]}
    count = min((len(array) // max(sizes[name], 1) for name, array in arrays.items()), default=1)
    if not count:
        raise InferenceError("the data have fewer samples than the network takes together. Give more (--data).")
    return [
        {name: array[place * sizes[name] : (place + 1) * sizes[name]] for name, array in arrays.items()} | weights
        for place in range(count)
    ]


def _ranked(searched: Sequence[Searched]) -> list[Mapping[str, Array]]:
    """The candidates of both searches, the best of each first."""
    ranks = itertools.zip_longest(*(item.best for item in searched))
    return [one.feeds for rank in ranks for one in rank if one is not None]


def _judged(
    candidates: Sequence[Mapping[str, Array]],
    one: Runnable,
    two: Runnable,
    exact: ExactSide | None,
    *,
    longest: float,
) -> tuple[Judged, list[str]]:
    """Judge candidates, as many as there's time for, and some at least; and what runs did to the arithmetic."""
    judged, end, arithmetic = Judged(), time.monotonic() + longest, set[str]()
    for place, feeds in enumerate(candidates):
        if place >= _KEPT and time.monotonic() > end:
            break
        judged.feeds.append(feeds)
        for answers, side in ((judged.setting, one), (judged.against, two)):
            answers.append(side.run(feeds))
            arithmetic.add(settled())
        values: Mapping[str, Array] = {}
        estimated: Mapping[str, Array] = {}
        if exact is not None:
            with contextlib.suppress(InferenceError):  # the reference may stop at values: it's not judged then
                values = exact.run(feeds)
        if exact is not None and values and (not place or time.monotonic() < end):
            estimated = exact.estimated(feeds, judged.setting[-1], judged.against[-1])
        judged.exact.append(values)
        judged.bound.append(exact.bound if exact is not None and values else {})
        judged.estimated.append(estimated)
    return judged, sorted(arithmetic - {""})


def _worst(judged: Judged, outputs: Sequence[str]) -> tuple[list[Deviation], Judged]:
    """The worst deviation of each output, the worst first, and the samples of the worst ones."""
    found: list[Deviation] = []
    for place in range(len(judged.feeds)):
        for name in outputs:
            one, two = judged.setting[place][name], judged.against[place][name]
            if one.size and one.shape == two.shape and one.dtype.kind in _NUMBERS:
                beside = (part[place].get(name) for part in (judged.exact, judged.bound, judged.estimated))
                found.append(deviation_of(name, place, one, two, *beside))
    found = worst_first(found)
    order = list(dict.fromkeys(item.sample for item in found))[:_KEPT]
    kept = Judged(*([part[place] for place in order] for part in vars(judged).values()))
    worst = {item.output: item for item in reversed(found) if item.sample in order}
    ordered = worst_first(worst.values())
    return [dataclasses.replace(item, sample=order.index(item.sample)) for item in ordered], kept


def _changed(given: Sequence[Mapping[str, Array]], one: Runnable, two: Runnable) -> float | None:
    """The share of samples whose answer (the largest along the last axis of the first output) changes."""
    name, answers = one.outputs[0].name, []
    for feeds in given:
        with contextlib.suppress(InferenceError):
            answers.append((one.run(feeds)[name], two.run(feeds)[name]))
    counts = [float((a.argmax(-1) != b.argmax(-1)).any()) for a, b in answers if a.ndim and a.shape[-1] > 1]
    return float(np.mean(counts)) if counts else None
