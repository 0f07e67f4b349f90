"""What the numbers decide by which differences are explained."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import numpy as np
from random_graphs import Computed, graph_of

from conrepair.ground.data.tensor_spec import FEW_DIGITS, TensorSpec
from conrepair.ground.metrics.tensors import compare_tensors
from conrepair.verdicts.evaluate.compare import ComparedOutputs, compare_outputs
from conrepair.verdicts.evaluate.evidence import Evidence, _as_others, beside_exact, by_arithmetic, fits_of
from conrepair.verdicts.evaluate.run import HeldRun
from conrepair.verdicts.evaluate.slices import coarse_slices, wrong_slices
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Integers, Verdict, judge, of_types
from conrepair.verdicts.judging import exact, measured, numbers
from conrepair.verdicts.judging.arithmetic import DISTURBED, arithmetic_of, as_rounding, shaken
from conrepair.verdicts.judging.floor import By, Floor, Rounding
from conrepair.verdicts.judging.recognition import Fit, fit, recognized
from conrepair.verdicts.judging.simulation import Simulated
from decisions.decision import Decision

_DRAWN = np.random.default_rng(0)
_RIGHT, _NOISE, _OTHER = (_DRAWN.normal(size=(64, 64)) for _ in range(3))
_STEP = 2.0**-23


def _off(by: float, noise: np.ndarray = _NOISE) -> np.ndarray:
    return np.asarray(_RIGHT + by * np.linalg.norm(_RIGHT) / np.linalg.norm(noise) * noise)


def _is_made(work: float) -> bool:
    asked: list[int] = []
    network = cast("Any", SimpleNamespace(as_onnx=lambda *_: asked.append(1)))
    with mock.patch.object(exact, "work_of", return_value=work):
        exact.exact_values(network, {}, [])
    return bool(asked)


def _simulated(work: float, nodes: int) -> int:
    """How many of 99 batches are simulated that are so much work each."""
    graph = SimpleNamespace(inputs=[], nodes=range(nodes))
    network = cast("Any", SimpleNamespace(output_names={"y": "y"}, graph=graph))
    known = {"work_of": lambda *_, **__: work, "_exact": lambda *_: ({}, "")}
    known |= {"Simulated": lambda *_, **__: None, "_outputs": lambda *_: dict}
    with mock.patch.multiple(measured, **known):
        return len(measured.measured(network, [{}] * 99, ["bfloat16"]).runs["bfloat16"])


def _accused(bounds: float) -> bool:
    """Whether a candidate is judged by exact values that's so many bounds off, and its source within them."""
    bound = np.full(_RIGHT.shape, 1e-9)
    known = Evidence(exact=_RIGHT, bounds=bound)
    found = SimpleNamespace(verdict=Verdict.FAULTY, reason="", floor=Floor(1e-7, By.OPERATORS))
    return beside_exact(_RIGHT, _RIGHT + bounds * bound, known, Tolerance(), lambda *_: found) is not None


def _seldom(by: float) -> bool:
    """Whether an arithmetic explains what's moved by so much of it, but for a few numbers by more."""
    few = np.random.default_rng(1).permuted(np.arange(_RIGHT.size) < 40).reshape(_RIGHT.shape)
    return fit("float16", _RIGHT, _RIGHT + 1e-3 * np.where(few, 10.0, by) * _OTHER, _RIGHT + 1e-3 * _NOISE).explains


def _near(by: float) -> bool:
    """Whether outputs are explained that are off by so much of what an arithmetic makes."""
    return fits_of(_RIGHT, _off(by * 1e-3, _OTHER), Evidence(simulated={"float16": _off(1e-3)}), 0.0)[0].explains


@dataclass(frozen=True)
class _Output:
    """As much of a comparison of outputs as an arithmetic is recognised by."""

    error: Any
    fits: tuple[Fit, ...]
    verdict: Verdict = Verdict.FAULTY
    reason: str = ""
    notes: tuple[str, ...] = ()
    explained: Any = None
    tests: Any = None


def _of_a_function(units: float) -> bool:
    """Whether the one arithmetic that's known excuses outputs off by so many of its units, of which it makes few."""
    off = units * arithmetic_of("float16").unit
    error = SimpleNamespace(relative_l2=off, max_reference=1.0, max_abs=off)
    output = _Output(error, (Fit("float16", off / 100, off, off, False),))
    return bool(by_arithmetic(cast("Any", [output]), ["float16"])[1])


def _column(by: float) -> bool:
    simulated, given = _off(1e-2), _off(1e-2, _OTHER)
    given[:, 7] = _RIGHT[:, 7] + by * (given - _RIGHT)[:, 7]
    return fits_of(_RIGHT, given, Evidence(simulated={"float16": simulated}), 0.0)[0].explains


def _steps() -> int:
    nodes = [(f"n{place}", "Sin", [f"t{place - 1}" if place else "x"], [f"t{place}"]) for place in range(256)]
    network = Computed(graph_of(["x"], nodes, ["t255"]))
    return len(cast("Any", Simulated(network, DISTURBED, most=numbers.STEPS).segment(["x"], ["t255"]))._steps)


def _shaken() -> str:
    number = np.full(1, 1.1, np.float32)
    return f"{abs(float(shaken(number)[0] / number[0]) - 1):.1e}"


def _others(by: float) -> bool:
    return _as_others(_RIGHT, np.concatenate([_off(1e-3)[:32], _off(by * 1e-3)[32:]]), 32)


def _fits(by: float) -> bool:
    return fit("float16", _RIGHT, _off(by * 1e-3, _OTHER), _off(1e-3)).explains


def _left(by: float) -> bool:
    return fit("float16", _RIGHT, _off(1.0) + by * (_off(1.0, _OTHER) - _RIGHT), _off(1.0)).explains


def _floor(times: float) -> Floor:
    return Rounding(operators=1).floor(times * _STEP)


def _agree(times: float) -> bool:
    return Rounding(operators=1).floor(times * 1e-5, 1e-5).relative_l2 >= times * 1e-5


def _as_simulated(by: float) -> bool:
    return fit("float16", _RIGHT, _off(by), _off(by)).explains


def _as_much(by: float) -> bool:
    return fit("float16", _RIGHT, _off(by, _OTHER), _off(by)).explains


def _doubted(by: float) -> bool:
    return _floor(by / _STEP).doubted > 0


def _of_few(share: float) -> bool:
    """Whether an arithmetic is recognized that explains such a share of ten pieces."""
    fits = [{"float16": Fit("float16", 1.0, 1.0, 1.0, place < round(10 * share))} for place in range(10)]
    return bool(recognized(fits, ["float16"], numbers.MOST))


_PLAIN = compare_tensors(np.ones(100), np.ones(100), rtol=0, atol=0)


def _verdict(relative: float, floor: float, **of_error: float) -> str:
    error = replace(_PLAIN, **{"relative_l2": relative, "exceeding": 5, "max_abs": 1.0, **of_error})
    tolerance = Tolerance(noise_margin=10.0)
    return str(judge(error, Floor(floor, By.SECOND), tolerance, quantized=False, top1_difference=None)[0])


def _integers(relative: float, largest: float = 1.0, **known: Any) -> str:
    error = replace(_PLAIN, relative_l2=relative, exceeding=5, max_abs=largest)
    floor, owed = Floor(1e-7, By.OPERATORS), Integers(**known)
    return str(judge(error, floor, Tolerance(), quantized=False, top1_difference=None, integers=owed)[0])


def _flipped(share: float) -> bool:
    """Whether numbers of which some became the next one of their type are noise."""
    kind = "float8_e4m3fn"
    floor = of_types(Floor(1e-9, By.OPERATORS), (kind, kind), 10000, Tolerance(noise_margin=1.0))
    return FEW_DIGITS[kind] * math.sqrt(share) <= floor.relative_l2


def _run(array: np.ndarray, name: str = "run", **known: Any) -> HeldRun:
    spec = TensorSpec("y", ("batch", *array.shape[1:]), "float32")
    held = {"y": array.astype(np.float32)}
    return HeldRun(name=name, outputs=(spec,), folder=Path(), count=len(array), operators=20, held=held, **known)


def _compared(one: np.ndarray, two: np.ndarray, second: np.ndarray | None = None) -> ComparedOutputs:
    other = _run(one if second is None else second, "second", exact=True)
    return compare_outputs(_run(one), _run(two), Tolerance(), second_opinion=other, rounded=other)


def _without_numbers(share: float) -> str:
    """Of outputs whose numbers are right, as many as there are."""
    values = np.where(np.arange(_RIGHT.size).reshape(_RIGHT.shape) < share * _RIGHT.size, np.nan, _RIGHT)
    return str(_compared(values, values).verdict)


def _of_small(by: float) -> str:
    """Of a column of a hundredth of the others' size, off by so much of its own."""
    one = _RIGHT.copy()
    one[:, 3] *= 1e-3
    two = one.copy()
    two[:, 3] *= 1 + by
    return str(_compared(one, two).verdict)


def _told(by: float) -> float:
    """Relative error of a column that's so many times as far off as all."""
    one, two = _RIGHT.copy(), _off(1e-2)
    two[:, 3] = one[:, 3] + (two - one)[:, 3] * by
    return round(_compared(one, two).outputs[0].hidden, 2)


def _beside(by: float) -> bool:
    """Whether a sigmoid's tail, off by so many units of the largest value, is wrong beside its largest ones."""
    one = np.abs(_RIGHT) / np.abs(_RIGHT).max()
    one[:, 3] = 1e-12
    two = one.copy()
    two[:, 3] += by * 10 * _STEP
    known = {"disturbed": one.copy()}
    return wrong_slices(one, two, known, Rounding(operators=1), margin=10.0) is not None


def _slice(off: float, own: float, others: float, size: float = 1.0) -> bool:
    """Whether a column is wrong that differs from itself by less than the others do from themselves."""
    one = _RIGHT * size
    one[:, 3] /= size
    two, again = one.copy(), one * (1 + others)
    two[:, 3] *= 1 + off
    again[:, 3] = one[:, 3] * (1 + own)
    return wrong_slices(one, two, {"disturbed": again}, Rounding(operators=1), margin=10.0) is not None


def _coarse(largest: float, next_one: float, share: float) -> bool:
    """Whether scores are wrong that one grid holds beside boxes and what's between, as they became zero."""
    one = np.abs(_RIGHT[:, :32]) + 0.1
    few = max(1, round(share * 32))
    one[:, few:] *= next_one / 2
    one[:, -1] *= largest / next_one
    two = one.copy()
    two[:, :few] = 0
    found = coarse_slices(one, two, 0.0, 0.4)
    return found is not None and found.certain


def _same_run(by: float) -> bool:
    """Whether exact values accuse a candidate, where the source gives others in their batches."""
    bound = np.full(_RIGHT.shape, 1e-9)
    known = Evidence(exact=_RIGHT, bounds=bound, own=_RIGHT * (1 + by))
    found = SimpleNamespace(verdict=Verdict.FAULTY, reason="", floor=Floor(1e-7, By.OPERATORS))
    return beside_exact(_RIGHT, _RIGHT + 1e3 * bound, known, Tolerance(), lambda *_: found) is not None


def _sharp(by: float) -> bool:
    bound = by * np.abs(_RIGHT)
    known = Evidence(exact=_RIGHT, bounds=bound)
    found = beside_exact(_RIGHT, _RIGHT, known, Tolerance(relative_l2=None), lambda *_: None)
    return found is not None


def _beside_larger(size: float) -> bool:
    return _slice(0.05, 0.0, 1e-2, size)


def _beside_itself(off: float) -> bool:
    return _slice(off, 0.01, 0.0)


def _looked_at(rows: float) -> bool:
    """Whether a column is looked at that's wrong in samples from the twelfth or the twenty-fourth on."""
    two = _RIGHT.copy()
    two[int(rows) :, 3] *= 1.5
    return wrong_slices(_RIGHT, two, {}, Rounding(operators=1), margin=10.0) is not None


def _wrong_places() -> int:
    one = np.ones((4, 200))
    found = wrong_slices(one, 2 * one, {"disturbed": one}, Rounding(operators=1), margin=10.0)
    return 0 if found is None else len(found.places)


def _beyond_a_step(by: float) -> str:
    return _integers(0.3, 0.1 * (1 + by), measured=1e-3, operators=1, step=0.1)


def _of_integers(by: float) -> str:
    return _integers(by, measured=None, operators=1)


def _of_kernels(by: float) -> str:
    return _integers(by, measured=0.02, operators=1)


def _of_reals(by: float) -> str:
    return _integers(5e-3, measured=by, operators=1)


def _of_nothing(size: float) -> str:
    return _verdict(0.5, 1e-7, exceeding=0, max_reference=size)


DECISIONS = [
    Decision("work of {} is computed exactly", _is_made, (7e8, 1.4e9)),
    Decision("batches simulated that are work of {} each", lambda x: _simulated(x, 0), (7e8, 1.4e9)),
    Decision("batches simulated that are hardly any work", lambda _: _simulated(1.0, 0), (0.0,)),
    Decision("batches simulated of {} operators", lambda x: _simulated(0, int(x)), (350, 700)),
    Decision("other samples off by {} times what the first are are like them", _others, (2.1, 4.2)),
    Decision("off by {} bounds is judged by exact values", _accused, (70.0, 140.0)),
    Decision("off by {} times what an arithmetic makes is explained", _fits, (1.4, 2.8)),
    Decision("off by {} of what an arithmetic makes is explained", _near, (0.21, 0.42)),
    Decision("off by {} units of the arithmetic that's known is explained", _of_a_function, (2.8, 5.6)),
    Decision("most numbers moved by {} of what an arithmetic moves them by: explained", _seldom, (0.14, 0.28)),
    Decision("what leaves {} of a difference has its numbers", lambda x: Fit("", 1, x, 1, True).close, (0.35, 0.7)),
    Decision("a column off by {} times the others' is explained", _column, (5.6, 11.0)),
    Decision("off by {} as the simulation is explained", _as_simulated, (2.8, 5.6)),
    Decision(
        "off by {} as much as the simulation",
        _as_much,
        (0.35, 0.7),
    ),
    Decision("off by 1, of which a simulation leaves {}, is explained", _left, (0.21, 0.42)),
    Decision("what explains {} of the pieces is recognized", _of_few, (0.4, 0.7)),
    Decision("a measurement of {} estimates is believed", lambda x: _floor(x).measured, (70.0, 140.0)),
    Decision("other kernels that differ by {} leave a doubt", _doubted, (7e-4, 1.4e-3)),
    Decision("a measurement of {} times another is believed", _agree, (21.0, 42.0)),
    Decision("how much a number is disturbed by", lambda _: _shaken(), (0.0,)),
    Decision("what of a disturbance by 1 is rounding", lambda _: float(as_rounding(*np.eye(2)[:, :1])[0]), (0.0,)),
    Decision("in how many steps 256 tensors are disturbed", lambda _: _steps(), (0.0,)),
    Decision("off by {}, where rounding explains 0.3", lambda x: _verdict(x, 0.3), (0.07, 0.14)),
    Decision("off by {}, the source by 0.3 from itself", lambda x: _verdict(x, 0.3), (0.42, 0.84)),
    Decision("some {} of numbers became the next ones of their type: noise", _flipped, (7e-3, 1.4e-2)),
    Decision("values of {} off by half of themselves", _of_nothing, (8e-39, 1.6e-38)),
    Decision("{} beyond a step", _beyond_a_step, (7e-4, 1.4e-3)),
    Decision("integers off by {} for one operator", _of_integers, (5.5e-3, 1.1e-2)),
    Decision("integers off by {}, of which kernels explain 0.02", _of_kernels, (0.042, 0.084)),
    Decision("integers off by 0.005 whose kernels differ by {}", _of_reals, (7e-6, 1.4e-5)),
    Decision("outputs of which {} are no numbers", _without_numbers, (0.35, 0.7)),
    Decision("error of a column that's {} times as far off as all", _told, (1.4, 2.8)),
    Decision("a small column off by {}", _of_small, (7e-4, 1.4e-3)),
    Decision("zeros off by {} units of the largest value, ten times, are wrong", _beside, (0.7, 1.4)),
    Decision(
        "a column off by 5 %, larger ones ({} times) by 1 % of themselves, is wrong", _beside_larger, (5.6, 11.0)
    ),
    Decision("a column off by {}, by 0.01 from itself, is wrong", _beside_itself, (0.11, 0.12, 0.13)),
    Decision("a column wrong from row {} on, where nothing was measured, is seen", _looked_at, (12, 24)),
    Decision("of 200 wrong columns told", lambda _: _wrong_places(), (0.0,)),
    Decision("zeros of scores beside boxes of {} are wrong", lambda x: _coarse(x, 20.0, 0.5), (60.0, 120.0, 240.0)),
    Decision("the same beside boxes of 1000, and others of {}", lambda x: _coarse(1000.0, x, 0.5), (5.6, 11.0)),
    Decision("zeros of {} of scores beside boxes are wrong", lambda x: _coarse(1000.0, 20.0, x), (1 / 32, 3 / 32)),
    Decision("a run that differs by {} in its batches is the same", _same_run, (7e-6, 1.4e-5)),
    Decision("bounds of {} of the values prove something", _sharp, (7e-5, 1.4e-4)),
]
