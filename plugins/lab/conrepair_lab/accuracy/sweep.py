"""Measure all operators in one system, in as few networks as possible."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, count, groupby
from operator import attrgetter, not_, truediv
from pathlib import Path

import numpy as np

from conrepair.formats.models.arithmetic import settled
from conrepair.formats.models.runnable import Runnable
from conrepair.ground.metrics.ulps import grid_of
from conrepair.ground.operators.record import Array
from conrepair.ground.runtime.errors import ConrepairError, InferenceError
from conrepair.ground.runtime.words import shortened
from conrepair_lab.accuracy.forms import Exact, errors_of, likeliest_form, special_words
from conrepair_lab.accuracy.measured import WRONG, Measured
from conrepair_lab.accuracy.network import exact, feeds_of, network, output_name
from conrepair_lab.accuracy.operators.all_operators import FAMILIES
from conrepair_lab.accuracy.operators.case import Case
from conrepair_lab.accuracy.regions import region, region_of_pairs, region_of_sizes
from conrepair_lab.accuracy.samples import CONDITIONS, condition_of, element, feed

Opener = Callable[[Path], Runnable]

_REASON = 200
_ROUNDINGS = 8
_WORD = re.compile(r"[a-z]\w{2,}")


def measure(
    opener: Opener,
    dtype: str = "float32",
    families: Collection[str] = tuple(FAMILIES),
    *,
    system: str = "",
    operators: Collection[str] = (),
) -> list[Measured]:
    """Measure operators.

    Args:
        opener: Loads an ONNX file in the system, to be fed and to answer by the file's names; what it raises of
            `ConrepairError` counts as a refusal.
        dtype: Name of the element type.
        families: Which; see `FAMILIES`.
        system: Its name, for the results.
        operators: ONNX's names of those that are measured; none: all.

    Returns:
        One for each operator.
    """
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        paths = (Path(scratch) / f"{number}.onnx" for number in count())
        for family in families:
            # A later opset's operator must not keep the others from a system that doesn't know it.
            wished = [case for case in FAMILIES[family] if not operators or case.operator.split()[0] in operators]
            opset = attrgetter("opset")
            for _, group in groupby(sorted(wished, key=opset), opset):
                cases = list(group)
                wanted = {case.name: truth_of(case, dtype) for case in cases}
                answers, refused = _answers(opener, cases, wanted, dtype, paths)
                for operator in dict.fromkeys(case.operator for case in cases):
                    own = [case for case in cases if case.operator == operator]
                    names = ((case, case.name) for case in own if case.name in answers)
                    taken = [_Judged(case, answers[name], wanted[name], dtype) for case, name in names]
                    if taken:
                        results.append(_measured(taken, dtype, system))
                    else:
                        reason = refused[own[0].name]
                        results.append(Measured(system, dtype, operator, family, refused=reason))
    return results


def truth_of(case: Case, dtype: str) -> Exact:
    """The exact values, and their scale."""
    with np.errstate(all="ignore"):
        inputs = _fed(case, dtype)
        values = exact(case, inputs, dtype)
        if case.sums:
            sizes = {name: np.abs(array) for name, array in case.constants.items() if array.dtype == np.float64}
            return values, exact(replace(case, constants={**case.constants, **sizes}), [*map(np.abs, inputs)], dtype)
        return values, np.abs(values) if case.scale is None else case.scale(values, *inputs)


def _fed(case: Case, dtype: str) -> list[Array]:
    return [feed(name, dtype).astype(np.float64) for name in case.feeds.values()]


def _answers(
    opener: Opener, cases: Sequence[Case], wanted: Mapping[str, Exact], dtype: str, paths: Iterator[Path]
) -> tuple[dict[str, Array], dict[str, str]]:
    """Answers, and reasons of refusals, by cases' names; what isn't taken together is tried in parts."""
    import onnx

    path = next(paths)
    onnx.save(network(cases, {case.name: wanted[case.name][0].shape for case in cases}, dtype), path)
    try:
        found = opener(path).run(feeds_of(cases, dtype))
        settled()  # else what's exact wouldn't be
        return {case.name: _shaped(found, case, wanted[case.name][0].shape) for case in cases}, {}
    except ConrepairError as error:
        words = str(error).replace(str(path), "the network")
        if len(cases) == 1:
            return {}, {cases[0].name: shortened(" ".join(words.split()), _REASON)}
    answers: dict[str, Array] = {}
    refused: dict[str, str] = {}
    for part in _parts(cases, words):
        some, others = _answers(opener, part, wanted, dtype, paths)
        answers |= some
        refused |= others
    return answers, refused


def _parts(cases: Sequence[Case], words: str) -> list[Sequence[Case]]:
    """What a refusal doesn't name, and what it names one by one; halves where it names nothing or all."""
    lines = words.lower().splitlines()
    # Beside its errors a converter may write out the whole network, in which all operators are named.
    named = set(_WORD.findall(" ".join([line for line in lines if "error" in line] or lines)))
    there = [not named.isdisjoint(_WORD.findall(case.body.lower())) for case in cases]
    if any(there) and not all(there):
        return [list(compress(cases, map(not_, there))), *([case] for case in compress(cases, there))]
    return [cases[: len(cases) // 2], cases[len(cases) // 2 :]]


def _shaped(found: Mapping[str, Array], case: Case, shape: tuple[int, ...]) -> Array:
    answer = found[output_name(case)]
    if answer.shape != shape:
        raise InferenceError(f"{case.name} has the shape {list(answer.shape)}, and {list(shape)} is right")
    return answer


class _Judged:
    """A case with its errors.

    Attributes:
        missing: Which elements are no numbers.
        ulps: Errors, 0 there.
        wrong: Which elements are off by more than a system may be.
    """

    def __init__(self, case: Case, answer: Array, truth: Exact, dtype: str) -> None:
        self.case, self.answer, self.inputs = case, answer, _fed(case, dtype)
        self.errors = errors_of(answer, truth, self.inputs, dtype)
        self.missing = np.isinf(self.errors.ulps)
        self.ulps = np.where(self.missing, 0, self.errors.ulps)
        self.wrong = self.ulps > WRONG

    @property
    def place(self) -> tuple[np.intp, ...]:
        """The largest error; among those that are nearly as large, that of the most ordinary inputs."""
        ulps = self.ulps
        near = np.nonzero(ulps >= ulps.max() / 2)
        if self.case.size:
            return np.unravel_index(int(ulps.argmax()), ulps.shape)
        odd = sum(np.abs(np.log(np.abs(array[near]) + np.finfo(np.float64).tiny)) for array in self.inputs)
        return tuple(index[int(np.argmin(odd))] for index in near)

    def at(self, place: tuple[np.intp, ...]) -> str:
        """The input at which an element was computed, in words."""
        if self.case.size:
            return f"size {self.case.size}, terms {list(CONDITIONS)[condition_of(len(self.answer))[place[0]]]}"
        return ", ".join(f"{array[place]:.9g}" for array in self.inputs)


def _measured(judged: Sequence[_Judged], dtype: str, system: str) -> Measured:
    worst = max(judged, key=lambda one: one.ulps.max(initial=0))
    case = worst.case
    wrong, missing = [one.wrong for one in judged], [one.missing for one in judged]
    above, none = (sum(int(places.sum()) for places in found) for found in (wrong, missing))
    relative = [float(np.where(one.missing, 0, one.errors.relative).max(initial=0)) for one in judged]
    with np.errstate(all="ignore"):
        specials = () if case.size else tuple(special_words(worst.answer, worst.errors.truth[0], worst.inputs, dtype))
        form = likeliest_form({one.case: one.errors for one in judged}, dtype) if above or none else ""
    # A sum of so many terms, added one after another, with a few roundings before and behind.
    bounds = [(one.case.terms + _ROUNDINGS) * grid_of(element(dtype)).unit for one in judged]
    return Measured(
        system=system,
        dtype=dtype,
        operator=case.operator,
        family=case.family,
        values=sum(int(one.errors.ordinary.sum()) for one in judged),
        ulps=float(worst.ulps.max(initial=0)),
        relative=max(relative),
        of_bound=max(map(truediv, relative, bounds)) if case.size else None,
        at=worst.at(worst.place) if above or not none else "",
        above=above,
        region=_region(judged, wrong) if above else "",
        missing=none,
        missing_region=_region(judged, missing) if none else "",
        form=form,
        specials=specials,
    )


def _region(judged: Sequence[_Judged], places: Sequence[Array]) -> str:
    if judged[0].case.size:
        return region_of_sizes({one.case.size: _conditions(found) for one, found in zip(judged, places, strict=True)})
    (one,), (found,) = judged, places
    if len(one.inputs) == 1:
        return region(one.inputs[0], found, one.errors.ordinary)
    return region_of_pairs(one.inputs[0], one.inputs[1], found, one.errors.ordinary)


def _conditions(places: Array) -> Array:
    """Which of the conditions hold such an element."""
    count = len(places)
    rows = places.reshape(count, -1).any(1)
    return np.asarray(np.bincount(condition_of(count), rows, len(CONDITIONS)) > 0)
