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

import numpy as np
import onnx

from conrepair.formats.models.arithmetic import settled
from conrepair.formats.models.identity import copy_model
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Array, Runnable
from conrepair.ground.runtime.errors import InferenceError
from conrepair.verdicts.truth.bound import ACCURACY, Accuracy
from conrepair.verdicts.truth.referees import OnnxReference
from conrepair_lab.jobs.systems import given_arrays, run_seconds
from conrepair_lab.jobs.trace_values import Compared, Search
from conrepair_lab.systems.registry import SYSTEMS
from conrepair_lab.tracing.exact_side import ExactSide, over_bound
from conrepair_lab.tracing.judging import Judged, deviation_of, write_judged
from conrepair_lab.tracing.result import Deviation, Side, Traced, worst_first
from conrepair_lab.tracing.search.objectives import OBJECTIVES, guide
from conrepair_lab.tracing.search.space import space_of
from conrepair_lab.tracing.searching import Searched, Sides, search_inputs

_KEPT = 8  # samples, the worst first
_ON_EXACT = 0.25  # of the evaluations, at least: errors that both sides have show beside exact values alone
_FLAT = 100  # evaluations of two sides between which no difference changes, after which exact values are searched
_JUDGING = 30.0  # seconds for it, at least
_NUMBERS = "biuf"


def trace(folder: Path, sides: Compared, search: Search) -> Traced:
    """Search inputs on which two settings differ, or one differs from exact values, and judge them.

    Args:
        folder: Receives the worst samples (`conrepair_lab.tracing.judging.JUDGED`).
        sides: The model, and what runs it.
        search: How.

    Returns:
        What is known behind a search.

    Raises:
        UsageError: if nothing can be searched.
        InferenceError: if no input can be run, or the network itself overflows on each.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        return _traced(sides, search, Path(made), folder)


def _traced(compared: Compared, asked: Search, made: Path, folder: Path) -> Traced:
    model = compared.model
    opened, seconds = _opened(compared.one, model, made)
    proto = onnx.load(model.path)  # with weights that lie beside it
    given = _given(asked, opened)
    weights = set(asked.weights)
    whole = [
        {name: array for name, array in feeds.items() if array.dtype.kind != "f" or name in weights}
        for feeds in given[:1]
    ]
    around = given if asked.starts else whole
    space = space_of(opened.inputs, asked.low, asked.high, around=around, seed=asked.seed)
    given = given if asked.starts else []
    anywhere = np.random.default_rng(asked.seed).uniform(-1, 1, space.size)
    exact, doubts = _exact(proto, opened, space.feeds(anywhere), {**ACCURACY, **compared.accuracy})
    if compared.two.setting is not None:
        other, other_seconds = _opened(compared.two, model, made)
    elif exact is not None:
        other, other_seconds = exact, 0.0
    else:
        raise InferenceError(f"no reference computes this network in float64: {doubts[0]}")
    evaluations, longest = asked.evaluations, asked.seconds
    search = functools.partial(search_inputs, name=asked.method, seed=asked.seed)
    objective = beyond = OBJECTIVES[asked.objective]
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
    doubts += [f"a library changed the arithmetic of its process, which was undone: {words}" for words in arithmetic]
    values = [array for sample in judged.exact for array in sample.values() if array.size]
    if values and not any(np.isfinite(array).any() for array in values):
        raise InferenceError(
            f"on inputs between {asked.low:g} and {asked.high:g} the network overflows, even in float64, so nothing "
            "can be compared. Give the range that it's made for (low, high), or inputs (data)."
        )
    deviations, kept = _worst(judged, [spec.name for spec in opened.outputs])
    write_judged(kept, folder)
    _keep_converted(compared.one, model, made, folder)
    first = candidates[0]
    return Traced(
        model=model.path,
        sha256=model.sha256,
        setting=dataclasses.replace(compared.one, seconds=seconds, run_seconds=run_seconds(opened, first)),
        against=dataclasses.replace(compared.two, seconds=other_seconds, run_seconds=run_seconds(other, first)),
        method=asked.method,
        objective=asked.objective,
        seed=asked.seed,
        deviations=tuple(deviations),
        evaluations=sum(item.evaluations for item in searched),
        failed=sum(item.failed for item in searched),
        seconds=sum(item.seconds for item in searched),
        history=searched[0].history,
        changed=_changed(given, opened, other),
        referees=() if exact is None else (OnnxReference.name,),
        doubts=tuple(doubts),
    )


def _keep_converted(side: Side, model: Model, made: Path, folder: Path) -> None:
    """Keep the model in the format that the system is given, for the programs that show what was found."""
    system = SYSTEMS[side.system]
    there = system.programmed(model, side.runs, made)
    if there is not model:
        copy_model(Path(there.path), folder / system.file)


def _opened(side: Side, model: Model, folder: Path) -> tuple[Runnable, float]:
    started = time.perf_counter()
    found = SYSTEMS[side.system].open(model, side.runs, folder)
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


def _given(asked: Search, runnable: Runnable) -> list[dict[str, Array]]:
    """Samples, as many together as the network takes."""
    if asked.given is None:
        return []
    arrays = given_arrays(asked.given)
    sizes = {
        spec.name: spec.shape[0] if spec.shape and isinstance(spec.shape[0], int) else 1 for spec in runnable.inputs
    }
    weights = {name: arrays.pop(name) for name in asked.weights}
    count = min((len(array) // max(sizes[name], 1) for name, array in arrays.items()), default=1)
    if not count:
        raise InferenceError("the data have fewer samples than a batch of the network. Give more (data).")
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
