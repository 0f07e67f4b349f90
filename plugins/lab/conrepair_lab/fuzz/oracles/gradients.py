"""The oracle of gradients: a system's own, the right ones, and whether they differ beyond rounding error."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from conrepair.formats.models.runnable import Runnable
from conrepair.verdicts.truth.disturbed import shaken, with_noise
from conrepair.verdicts.truth.judging import furthest
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.fuzz.oracles.answers import faces
from conrepair_lab.fuzz.oracles.numbers import numbers
from conrepair_lab.fuzz.suspicion import GRADIENT, REFUSED, Suspicion
from conrepair_lab.fuzz.trial import how_ended
from conrepair_lab.systems.system import Setting, System
from conrepair_lab.systems.wrapped import cotangent

_MARGIN = 4.0  # what answers have to be off by until that's a finding: this is an estimate, too


@dataclass(frozen=True)
class Training:
    """The gradients of a case, and the right ones.

    Attributes:
        given: By the setting in question.
        exact: By the system's plain setting in float64.
        allowed: How far right ones may be from these, element by element; infinite where nobody can say.
        ended: Why the setting gave none.
        words: Why they aren't judged.
        seconds: That it took.
    """

    given: Mapping[str, Array] = field(default_factory=dict)
    exact: Mapping[str, Array] = field(default_factory=dict)
    allowed: Mapping[str, Array] = field(default_factory=dict)
    ended: Suspicion | None = None
    words: str = ""
    seconds: float = field(default=0.0, compare=False)


def trained(case: Case, answers: Mapping[str, Array], system: System, setting: Setting, folder: Path) -> Training:
    """Differentiate a case: by a system's plain setting, disturbed and in float64, and by the setting in question.

    The plain setting runs in the network's own types, with every real result disturbed by some of its last place, as
    `conrepair.verdicts.truth.disturbed` does with answers. How far that's from float64 is what rounding does, to
    results that the backward pass takes up, too. Where a gradient jumps (a maximum of equals, a step), that comes to
    the jump.

    Args:
        case: Whose answers are right.
        answers: Of it.
        system: Which trains.
        setting: In question.
        folder: For files.
    """
    begun = time.perf_counter()
    given = {
        cotangent(name): np.asarray(np.random.default_rng(0).standard_normal(array.shape), array.dtype)
        for name, array in answers.items()
        if array.dtype.kind == "f"
    }
    if not given or all(array.dtype.kind != "f" for array in case.inputs.values()):
        return Training(words="there's nothing to differentiate")
    with tempfile.TemporaryDirectory(dir=folder) as made:
        try:
            exact, allowed = _expected(case, given, system, Path(made))
        except Exception as error:  # noqa: BLE001 (whatever the plain setting stumbles over, nothing is compared with it)
            words = f"the plain setting doesn't differentiate it: {type(error).__name__}: {error}"
            return Training(words=words, seconds=time.perf_counter() - begun)
        try:
            runnable = system.gradients(case.file(Path(made)), setting, Path(made))
            found = runnable.run(_fed(runnable, {**case.inputs, **given}))
        except Exception as error:  # noqa: BLE001 (as in a trial)
            return Training(ended=how_ended(GRADIENT, error, case), seconds=time.perf_counter() - begun)
    return Training(found, exact, allowed, seconds=time.perf_counter() - begun)


def _expected(
    case: Case, given: Mapping[str, Array], system: System, folder: Path
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Gradients in float64, and how far right ones may be from them.

    Raises:
        ConrepairError: if the plain setting doesn't give them.
    """
    network, ones = with_noise(case.model)
    feeds = {**case.inputs, **ones, **given}
    noisy, plain = Case.of(network, {**case.inputs, **ones}), system.settings[system.plain]
    wide, own = (system.gradients(noisy.file(folder), plain, folder, double=double) for double in (True, False))
    exact = wide.run(_fed(wide, feeds))
    far = furthest((own.run(_fed(own, fed)) for fed in shaken(feeds)), exact)
    allowed = {name: np.where(np.isfinite(exact[name]), _MARGIN * found, np.inf) for name, found in far.items()}
    return exact, allowed


def _fed(runnable: Runnable, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """What a model takes of feeds: converters leave out what nobody reads."""
    return {spec.name: feeds[spec.name] for spec in runnable.inputs}


def gradients(training: Training) -> Iterator[Suspicion]:
    """Suspect gradients further from those in float64 than right ones may be, and a backward pass that fails.

    Args:
        training: Any.
    """
    if training.ended is not None and training.ended.kind != REFUSED:
        yield training.ended
    for name, given in training.given.items():
        mine, exact = {name: given}, training.exact[name]
        shapes = faces(mine, {name: exact.astype(given.dtype)})
        for item in (*shapes, *numbers(mine, {name: exact}, training.allowed)):
            kind = item.kind if item.kind == "shape" else GRADIENT
            yield dataclasses.replace(item, kind=kind, stage=GRADIENT, message=f"the gradient of {item.message}")
