"""Make a finding of a suspicion: reproduce it, reduce it, judge it again, find its cause."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from conrepair.ground.metrics.ulps import is_real
from conrepair.ground.runtime.errors import ConrepairError, UsageError
from conrepair_lab.cases.case import Case
from conrepair_lab.cases.reduce import Budget, reduce
from conrepair_lab.cases.sizes import SIZES, definite, resized
from conrepair_lab.fuzz.apart import PROCESS, looking_apart
from conrepair_lab.fuzz.cause import Cause, isolated
from conrepair_lab.fuzz.fed import with_fed_weights
from conrepair_lab.fuzz.looking import ALIKE, ILL, RIGHT, SUSPECT, UNJUDGED, Looked, look, referees
from conrepair_lab.fuzz.suspicion import ENDS, OF_RUNS, SLOWER, Suspicion
from conrepair_lab.fuzz.trial import RUNS
from conrepair_lab.systems.registry import Entry, entry
from conrepair_lab.systems.system import Setting, System
from conrepair_lab.tracing.exact_side import ExactSide, over_bound
from conrepair_lab.tracing.search.space import HIGH, LOW, space_of
from conrepair_lab.tracing.searching import Sides, search_inputs

# Inputs on which an error is clearer.

_EVALUATIONS = 200


def worse(case: Case, system: System, setting: Setting, folder: Path, *, seconds: float = 20.0) -> Case | None:
    """Search for inputs on which a system's error is as large as possible beside the rounding error.

    Args:
        case: Whose real inputs are varied; others stay.
        system: Which.
        setting: How it's run.
        folder: For files.
        seconds: For the search.

    Returns:
        None where nothing can be searched.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        try:
            runnable = system.open(case.file(Path(made)), setting, Path(made))
            exact = ExactSide(case.model, runnable.inputs, runnable.outputs)
            kept = [{name: array for name, array in case.inputs.items() if not is_real(array)}]
            size = max([HIGH, *(float(abs(array).max()) for array in case.inputs.values() if is_real(array))])
            space = space_of(runnable.inputs, min(LOW, -size), size, around=kept, seed=0)
            sides = Sides(runnable, exact, space, functools.partial(over_bound, exact))
            found = search_inputs(sides, "mega", evaluations=_EVALUATIONS, seconds=seconds, seed=0)
        except ConrepairError:
            return None
    best = next(iter(found.best), None)
    return None if best is None else Case(case.network, dict(best.feeds), case.options)


GONE, NEAR = "gone", "near"
"""Verdicts of what isn't seen a second time, and of numbers hardly beyond the bound, on the worst inputs found."""

_CLEAR = 4.0  # bounds: what functions are off by beyond what is usual is no finding yet
_LOOKS = 3
_JUDGED = {"numbers", "not finite"}
_OF_ANSWERS = _JUDGED | {"differs", "shape", "type"}
_WITNESSES = ("ort-none", "torch-eager", "convert-import", "tvm-O0")
"""Implementations that share no kernels."""


@dataclass(frozen=True)
class Reduction:
    """What became of a suspicion.

    Attributes:
        verdict: `SUSPECT` where it stands; else `ILL`, `UNJUDGED`, `NEAR` or `GONE`.
        case: The smallest on which it's seen.
        suspicion: As it's seen there.
        words: Why it doesn't stand, or by whom it was judged.
        tries: Of the reduction.
        smallest: Whether nothing could be left out any more.
        cause: What it hangs on.
    """

    verdict: str
    case: Case
    suspicion: Suspicion
    words: str = ""
    tries: int = 0
    smallest: bool = False
    cause: Cause = field(default_factory=Cause)


def reduced(
    case: Case,
    suspicion: Suspicion,
    accused: Entry,
    folder: Path,
    *,
    seconds: float,
    longest: float,
    apart: bool = False,
) -> Reduction:
    """Reduce a suspicion.

    Args:
        case: On which it was seen.
        suspicion: What was seen.
        accused: By which system and setting.
        folder: For files.
        seconds: For the reduction; the rest takes as much again at most.
        longest: Seconds for a try of what may hang.
        apart: Whether each case is looked at in a process of its own, as smaller ones may end it.
    """
    system, setting = accused.runs, accused.chosen
    runs = 3 if suspicion.kind in OF_RUNS else 1
    looked = functools.partial(look, system=system, setting=setting, folder=folder, runs=runs)
    if suspicion.stage == SIZES and (alone := _of_one_size(case, suspicion, looked)) is not None:
        case, suspicion = alone
    looked = functools.partial(looked, stage=suspicion.stage)
    if suspicion.kind == "memory":  # what the system killed it for
        suspicion = Suspicion("crash", PROCESS, "SIGKILL", suspicion.message)
    if not apart and (suspicion.kind not in ENDS or suspicion.stage != PROCESS):
        return _reduced(case, suspicion, accused, folder, looked, seconds)
    with looking_apart(looked, longest, {setting.backend, *system.needs(setting)}) as there:
        return _reduced(case, suspicion, accused, folder, there, seconds)


def _reduced(
    case: Case, suspicion: Suspicion, accused: Entry, folder: Path, looked: Callable[[Case], Looked], seconds: float
) -> Reduction:
    suspicion = _seen_again(case, suspicion, looked)
    try:
        smaller, tries, smallest = _smaller(case, suspicion, looked, seconds)
        fed = with_fed_weights(smaller) if suspicion.of_gradients else smaller
        if fed is not smaller and suspicion.same(looked(fed).suspicion):
            smaller = fed  # programs show gradients of what's fed alone
        first = looked(smaller)
        if suspicion.kind == "differs" and first.suspicion is not None and first.suspicion.kind in _JUDGED:
            suspicion = first.suspicion
            smaller, more, smallest = _smaller(smaller, suspicion, looked, seconds)
            first, tries = looked(smaller), tries + more
    except UsageError as error:
        return Reduction(GONE if "doesn't hold" in str(error) else UNJUDGED, case, suspicion, str(error))
    seen = first.suspicion
    if seen is None:
        return Reduction(ILL if first.verdict == ILL else GONE, smaller, suspicion, first.message, tries, smallest)
    if seen.kind == "numbers" and seen.over is not None and seen.over < _CLEAR:
        smaller, seen = _clearer(smaller, seen, accused, folder)
        if (seen.over or 0.0) < _CLEAR:
            return Reduction(NEAR, smaller, seen, "hardly beyond rounding error", tries, smallest)
    verdict, words = _confirmed(smaller, seen, accused, folder)
    cause = Cause()
    if verdict == SUSPECT and seen.kind not in ENDS:
        cause = isolated(smaller, seen, accused.runs, accused.chosen, folder)
        if cause.plainly and not accused.runs.kernels:
            return Reduction(GONE, smaller, seen, "it happens without the converter, too", tries, smallest)
    return Reduction(verdict, smaller, seen, words, tries, smallest, cause)


def _seen_again(case: Case, suspicion: Suspicion, looked: Callable[[Case], Looked]) -> Suspicion:
    """The same where it's seen again; else what is seen: memory that nobody wrote looks otherwise each time."""
    other = suspicion
    for _ in range(_LOOKS):
        seen = looked(case).suspicion
        if suspicion.same(seen):
            return suspicion
        other = seen or other
    return other


def _of_one_size(case: Case, suspicion: Suspicion, looked: Callable[[Case], Looked]) -> tuple[Case, Suspicion] | None:
    """What's seen of a further size where that is the only one, too: then it's no matter of sizes."""
    further = resized(case)
    alone = None if further is None else definite(further)
    seen = None if alone is None else looked(alone).suspicion
    return None if alone is None or seen is None or seen.kind != suspicion.kind else (alone, seen)


def _clearer(case: Case, seen: Suspicion, accused: Entry, folder: Path) -> tuple[Case, Suspicion]:
    """The same network on inputs where more bounds are between the answer and the exact value, if there are any."""
    found = worse(case, accused.runs, accused.chosen, folder)
    again = None if found is None else look(found, accused.runs, accused.chosen, folder).suspicion
    if found is None or again is None or not seen.same(again) or (again.over or 0.0) < (seen.over or 0.0):
        return case, seen
    return found, again


def _smaller(
    case: Case, suspicion: Suspicion, looked: Callable[[Case], Looked], seconds: float
) -> tuple[Case, int, bool]:
    """Smaller while it's seen, and while those referees compute it that computed the case."""
    wanted = frozenset() if suspicion.kind in ENDS else referees(case)

    def seen(tried: Case) -> bool:
        return suspicion.same(looked(tried).suspicion) and (not wanted or wanted <= referees(tried))

    found = reduce(case, seen, budget=Budget(seconds=seconds))
    return found.case, found.tries, found.exact


def _confirmed(case: Case, suspicion: Suspicion, accused: Entry, folder: Path) -> tuple[str, str]:
    """Whether others say the same: nobody is blamed on one word."""
    if suspicion.of_gradients:
        return SUSPECT, f"{accused.runs.name}-{accused.runs.plain}, in float64 and in the network's own types"
    if suspicion.kind == SLOWER:
        return SUSPECT, f"{accused.runs.name}-{accused.runs.plain}, by medians of {RUNS} runs in turn"
    if suspicion.kind not in _OF_ANSWERS:
        return SUSPECT, "ONNX's checker takes the network, and its reference or ONNX Runtime computes it"
    for_it, against = [], []
    if suspicion.stage == SIZES and (further := resized(case)) is not None:  # which not all build once for
        case, suspicion = definite(further), dataclasses.replace(suspicion, stage="answers")
    for witness in map(entry, _WITNESSES):
        if witness.runs.runner(witness.chosen) == accused.runs.runner(accused.chosen):
            continue
        seen = look(case, witness.runs, witness.chosen, folder, strict=True)
        if seen.verdict in {RIGHT, ILL, ALIKE}:
            for_it.append(witness.name)
            break
        if suspicion.same(seen.suspicion):
            against.append(witness.name)
    if for_it and not against:
        first = "ONNX Runtime without optimizations" if suspicion.kind == "differs" else "ONNX's reference in float64"
        return SUSPECT, f"{first} and {for_it[0]}"
    return (
        UNJUDGED,
        f"{', '.join(against)} gives the same as {accused.name}" if against else "only one implementation says so",
    )
