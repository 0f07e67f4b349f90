"""Judge a trial by all oracles: right, wrong, or not to be judged."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from conrepair.formats.onnx.load.file import nodes_of
from conrepair.formats.onnx.passes.fold_constants import RANDOM
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.metrics.ulps import is_number
from conrepair.ground.runtime.errors import InferenceError
from conrepair.verdicts.truth.judging import LARGE, distances, in_bounds
from conrepair.verdicts.truth.widening import sizes_of
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.cases.sizes import SIZES, resized
from conrepair_lab.fuzz.fed import has_specials, with_fed_weights
from conrepair_lab.fuzz.oracles.answers import again, faces, threads
from conrepair_lab.fuzz.oracles.gradients import gradients as wrong_gradients
from conrepair_lab.fuzz.oracles.gradients import trained
from conrepair_lab.fuzz.oracles.numbers import allowance, differing, numbers, spread
from conrepair_lab.fuzz.suspicion import ENDS, GRADIENT, REFUSAL, REFUSED, SLOWER, THREADS, Suspicion
from conrepair_lab.fuzz.trial import Trial, slower, timed, tried
from conrepair_lab.generate.onnx_form import RefusedError, run
from conrepair_lab.systems.system import Setting, System
from conrepair_lab.tracing.exact_side import ExactSide

RIGHT, SUSPECT, ILL = "right", "suspect", "ill-conditioned"
ALIKE, UNJUDGED = "alike", "unjudged"
"""Verdicts, with `REFUSED`. `ILL`: far apart, and both are as right as may be. `ALIKE`: nobody computes exact values,
and the answer is another system's, but for what rounding does to that. `UNJUDGED`: nobody can say."""


_WHOLE = frozenset(number for name, number in onnx.TensorProto.DataType.items() if "INT" in name)
_SLOW = 1.0  # seconds of a processor, for exact values
_NEAR = 4.0  # units in the last place: a loose bound hides no larger fault than that


@dataclass(frozen=True)
class Looked:
    """The verdict on a case in a system.

    Attributes:
        verdict: See above.
        suspicion: The first one, where it's suspect.
        message: Why the system doesn't take it, or why gradients aren't judged.
        seconds: That the trial took, and differentiating.
        near: The largest error in bounds, where it was judged: near 1 other inputs may lie beyond.
        plainly: Whether the system's plain setting is suspect of the same, where that was asked.
        odd: Which draw of `conrepair_lab.fuzz.fed` showed it, which the same build was fed; 0 for the usual
            ones.
    """

    verdict: str
    suspicion: Suspicion | None = None
    message: str = ""
    seconds: float = field(default=0.0, compare=False)
    near: float = field(default=0.0, compare=False)
    plainly: bool | None = None
    odd: int = 0


def look(
    case: Case,
    system: System,
    setting: Setting,
    folder: Path,
    *,
    strict: bool = False,
    stage: str = "",
    runs: int = 3,
) -> Looked:
    """Run a case in a system, and judge it.

    Args:
        case: Any.
        system: Which.
        setting: How it's run.
        folder: For files.
        strict: Whether what equals ONNX Runtime's answers is judged, too: where that is accused it's no witness.
        runs: As of `tried`.
        stage: Of what is looked for: gradients, other numbers of threads and times are tried where it's theirs.
    """
    trial = tried(case, system, setting, folder, runs=runs, threads=stage == THREADS)
    other = other_answers(case) if trial.answers else None
    found = looked_at(case, trial, other, setting, strict=strict)
    return further(found, case, trial, system, setting, folder, {stage})


def further(
    found: Looked, case: Case, trial: Trial, system: System, setting: Setting, folder: Path, stages: Collection[str]
) -> Looked:
    """Judge refusals, gradients and times, where the outputs are right.

    Args:
        found: Of the answers.
        case: That was tried.
        trial: What came of it.
        system: Which.
        setting: How it's run.
        folder: For files.
        stages: Of what is judged.
    """
    if REFUSAL in stages:
        found = _with_refusal(found, case, trial, system, setting, folder)
    if GRADIENT in stages:
        found = _with_gradients(found, case, trial, system, setting, folder)
    return _with_seconds(found, case, system, setting, folder) if SLOWER in stages else found


def _with_gradients(
    found: Looked, case: Case, trial: Trial, system: System, setting: Setting, folder: Path
) -> Looked:
    """Judge gradients, too, where answers are right and a system trains: its plain setting says what's right.

    They are those of inputs and, where the plain setting takes it so, of weights.
    """
    if found.verdict != RIGHT or not system.trains or setting == system.settings[system.plain]:
        return found
    fed = with_fed_weights(case)
    training, seconds = trained(fed, trial.answers[0], system, setting, folder), found.seconds
    if training.words and fed is not case:  # not everybody converts a network with such inputs
        seconds += training.seconds
        training = trained(case, trial.answers[0], system, setting, folder)
    seconds += training.seconds
    if (first := next(wrong_gradients(training), None)) is not None:
        return Looked(SUSPECT, first, "", seconds)
    return dataclasses.replace(found, message=training.words, seconds=seconds)


def _with_refusal(found: Looked, case: Case, trial: Trial, system: System, setting: Setting, folder: Path) -> Looked:
    """Suspect a refusal, too, where the plain setting takes the case: an optimization made what nothing computes."""
    plain, end = system.plain_beside(setting), trial.ended
    if found.verdict != REFUSED or end is None or plain is None or not system.alike:
        return found
    if (setting.reach, setting.backend) != (plain.reach, plain.backend):
        return found
    if not tried(case, system, plain, folder, runs=1).answers:
        return found
    seen = dataclasses.replace(end, kind="exception", stage=REFUSAL)
    return Looked(SUSPECT, seen, "", found.seconds, plainly=False)


def _with_seconds(found: Looked, case: Case, system: System, setting: Setting, folder: Path) -> Looked:
    """Judge how long it takes, too, where answers aren't suspect, beside the plain setting on the same processor."""
    plain = system.settings[system.plain]
    alike = setting.reach == plain.reach and (system.kernels or setting.backend == plain.backend)
    if found.verdict in {SUSPECT, REFUSED} or setting == plain or not alike:
        return found
    try:
        first = next(slower(*timed(case, system, (setting, plain), folder)), None)
    except Exception as error:  # noqa: BLE001 (whatever the plain setting stumbles over, nothing is compared with it)
        return dataclasses.replace(found, message=f"it couldn't be timed: {type(error).__name__}: {error}")
    return found if first is None else Looked(SUSPECT, first, "", found.seconds)


def other_answers(case: Case) -> dict[str, Array] | None:
    """Outputs of ONNX Runtime without optimizations; None where it refuses the case."""
    model = case.model
    try:
        return run(model, case.inputs, [item.name for item in model.graph.output])
    except RefusedError:
        return None


def looked_at(
    case: Case, trial: Trial, other: Mapping[str, Array] | None, setting: Setting, *, strict: bool = False
) -> Looked:
    """Judge a trial, with further sizes as with the first.

    Args:
        case: That was tried.
        trial: What came of it.
        other: ONNX Runtime's answers without optimizations.
        setting: That was tried: where that's the same, being equal says nothing.
        strict: As of `look`.
    """
    found = _one_size(case, trial, other, setting, strict=strict)
    further = resized(case)
    if further is None or not trial.further or found.verdict in {SUSPECT, REFUSED}:
        return found
    there = Trial((trial.further,), seconds=trial.seconds)
    seen = _one_size(further, there, other_answers(further), setting, strict=strict)
    if seen.suspicion is None:
        return found
    return dataclasses.replace(seen, suspicion=dataclasses.replace(seen.suspicion, stage=SIZES))


def _one_size(
    case: Case, trial: Trial, other: Mapping[str, Array] | None, setting: Setting, *, strict: bool
) -> Looked:
    end = trial.ended
    if end is not None and end.kind == REFUSED:
        return Looked(REFUSED, None, f"{end.stage}: {end.error}: {end.message}", trial.seconds)
    model = case.model
    drawn = any(node.op_type in RANDOM for node in nodes_of(model.graph))
    trusted = None if strict or _is_other(setting) else other  # who is accused doesn't say how answers look
    right: Mapping[str, Array] = declared(model) if trusted is None else trusted
    if (first := next(_without_truth(trial, right, drawn=drawn), None)) is not None:
        if end is not None and has_specials(case) and not (first.kind in ENDS and computed(case)):
            return Looked(
                REFUSED, None, f"{end.stage}, on special values that may be refused: {end.message}", trial.seconds
            )
        return Looked(SUSPECT, first, "", trial.seconds)
    if drawn:
        return Looked(UNJUDGED, None, "the network draws random numbers", trial.seconds)
    given = trial.answers[0]
    if trusted is not None and _equal(given, trial.otherwise) and _equal(given, trusted):
        return Looked(RIGHT, None, "", trial.seconds)
    try:
        return _judged(case, trial, other, witness=not _is_other(setting))
    except Exception as error:  # noqa: BLE001 (whatever the judges stumble over says nothing of the system)
        return Looked(UNJUDGED, None, f"judging it failed: {type(error).__name__}: {error}", trial.seconds)


def computed(case: Case) -> bool:
    """Whether ONNX's reference computes a case.

    Args:
        case: Any.
    """
    try:
        _exact(case.model, case.inputs)
    except InferenceError:
        return False
    return True


def referees(case: Case) -> frozenset[str]:
    """Who computes a case: ONNX's reference, and ONNX Runtime without optimizations.

    Args:
        case: Any.
    """
    asked = {"reference": computed(case), "runtime": other_answers(case) is not None}
    return frozenset(name for name, computes in asked.items() if computes)


def _without_truth(trial: Trial, right: Mapping[str, Array], *, drawn: bool) -> Iterator[Suspicion]:
    if trial.ended is not None:
        yield trial.ended
    if not drawn:
        yield from again(trial.answers)
    if trial.answers:
        yield from faces(trial.answers[0], right)


def declared(model: onnx.ModelProto) -> dict[str, Array]:
    """Outputs as the network declares them, as far as sizes go: zeros.

    Args:
        model: Any.
    """
    found = {}
    for item in model.graph.output:
        sizes, kind = sizes_of(item), item.type.tensor_type.elem_type
        if sizes is not None and kind:
            found[item.name] = np.broadcast_to(np.zeros((), onnx.helper.tensor_dtype_to_np_dtype(kind)), sizes)
    return found


def _judged(case: Case, trial: Trial, other: Mapping[str, Array] | None, *, witness: bool) -> Looked:
    given, seconds = trial.answers[0], trial.seconds
    begun = time.process_time()  # what else runs on the machine says nothing of the network
    try:
        side, truth = _exact(case.model, case.inputs)
    except InferenceError:
        return _compared(case, trial, other, witness=witness)
    if time.process_time() - begun > _SLOW:
        return _compared(case, trial, other, witness=witness)
    for estimating in (False, True):  # estimates are never larger, and take many times as long
        if estimating:
            side.estimated(case.inputs, given, ulps=_NEAR)
        allowed = {
            name: allowance(given[name], exact, side.bound[name]) for name, exact in truth.items() if name in given
        }
        found = itertools.chain(threads(given, trial.otherwise, allowed), numbers(given, truth, side.bound))
        if (first := next(found, None)) is not None:
            return Looked(SUSPECT, first, "", seconds)
    far, near = False, 0.0
    for name, exact in truth.items():
        mine = given[name]
        if not is_number(mine) or mine.shape != exact.shape:
            continue
        errors = distances(mine, exact)
        ratios = in_bounds(errors, np.broadcast_to(side.bound[name], exact.shape))
        near = max(near, float(ratios.max(initial=0, where=np.isfinite(ratios))))
        far |= bool((errors > LARGE * np.abs(exact)).any())
    return Looked(ILL if far else RIGHT, None, "", seconds, near)


def _compared(case: Case, trial: Trial, other: Mapping[str, Array] | None, *, witness: bool) -> Looked:
    """Judge by what rounding does to another system's answers; where that is no witness, other threads alone."""
    given, seconds = trial.answers[0], trial.seconds
    unjudged = Looked(UNJUDGED, None, "no other implementation computes it", seconds)
    if other is None or (not witness and not trial.otherwise):
        return unjudged
    allowed = spread(case, other)
    found = itertools.chain(
        threads(given, trial.otherwise, allowed or {}), differing(given, other, allowed) if witness else ()
    )
    if (first := next(found, None)) is not None:
        return Looked(SUSPECT, first, "", seconds)
    if not witness:
        return unjudged
    return Looked(UNJUDGED if allowed is None else ALIKE, None, "", seconds)


def _exact(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> tuple[ExactSide, dict[str, Array]]:
    """Exact values, and the side that has their bounds.

    Raises:
        InferenceError: if ONNX's reference doesn't compute them.
    """
    whole = {item.name for item in model.graph.output if item.type.tensor_type.elem_type in _WHOLE}
    side = ExactSide(model, (), [TensorSpec(item.name, (), "float32") for item in model.graph.output])
    truth = side.run(feeds)
    if not all(isinstance(value, np.ndarray | np.generic) for value in truth.values()):
        raise InferenceError("an output isn't a tensor")
    for name in whole:
        value = np.asarray(truth[name])
        if value.dtype.kind == "f" and (value != np.trunc(value)).any():  # its operator isn't one of reals
            raise InferenceError(f"{name} should hold whole numbers")
    return side, {name: np.asarray(value) for name, value in truth.items()}


def _equal(one: Mapping[str, Array], two: Mapping[str, Array]) -> bool:
    return all(one[name].tobytes() == array.tobytes() for name, array in two.items() if name in one)


def _is_other(setting: Setting) -> bool:
    """Whether a setting is what `other_answers` runs."""
    options: Mapping[str, Any] = setting.options
    return setting.backend == "onnxruntime" and not setting.route and options.get("optimization") == "disabled"
