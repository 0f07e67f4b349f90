"""What the numbers decide by which differences are explained."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import numpy as np
from random_graphs import Computed, graph_of

from conrepair.evaluate.evidence import Evidence, _as_others, beside_exact, fits_of
from conrepair.evaluate.tolerance import Tolerance
from conrepair.evaluate.verdict import Verdict
from conrepair.judging import exact, numbers
from conrepair.judging.disturbance import DISTURBED, as_rounding, shaken
from conrepair.judging.explained import By
from conrepair.judging.floor import Floor, Rounding
from conrepair.judging.recognition import Fit, fit, recognized
from conrepair.judging.simulation import Simulated
from decisions.decision import Decision

_DRAWN = np.random.default_rng(0)
_RIGHT, _NOISE, _OTHER = (_DRAWN.normal(size=(64, 64)) for _ in range(3))
_STEP = 2.0**-23


def _off(by: float, noise: np.ndarray = _NOISE) -> np.ndarray:
    return np.asarray(_RIGHT + by * np.linalg.norm(_RIGHT) / np.linalg.norm(noise) * noise)


def _is_made(work: float) -> bool:
    asked: list[int] = []
    network = cast("Any", SimpleNamespace(as_onnx=lambda *_: asked.append(1)))
    with mock.patch.object(exact, "_work", return_value=work):
        exact.exact_values(network, {}, [])
    return bool(asked)


def _accused(bounds: float) -> bool:
    """Whether a candidate is judged by exact values that's so many bounds off, and its source within them."""
    bound = np.full(_RIGHT.shape, 1e-9)
    known = Evidence(exact=_RIGHT, bounds=bound)
    found = SimpleNamespace(verdict=Verdict.FAULTY, reason="", floor=Floor(1e-7, By.OPERATORS))
    return beside_exact(_RIGHT, _RIGHT + bounds * bound, known, Tolerance(), lambda *_: found) is not None


def _seldom(by: float) -> bool:
    """Whether an arithmetic explains what's moved by so much of it, but for a few numbers by more."""
    few = _DRAWN.permuted(np.arange(_RIGHT.size) < 40).reshape(_RIGHT.shape)
    return fit("float16", _RIGHT, _RIGHT + 1e-3 * np.where(few, 10.0, by) * _OTHER, _RIGHT + 1e-3 * _NOISE).explains


def _near(by: float) -> bool:
    """Whether outputs are explained that are off by so much of what an arithmetic makes."""
    return fits_of(_RIGHT, _off(by * 1e-3, _OTHER), Evidence(simulated={"float16": _off(1e-3)}), 0.0)[0].explains


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


DECISIONS = [
    Decision("work of {} is computed exactly", _is_made, (7e8, 1.4e9)),
    Decision("other samples off by {} times what the first are are like them", _others, (2.1, 4.2)),
    Decision("off by {} bounds is judged by exact values", _accused, (70.0, 140.0)),
    Decision("off by {} times what an arithmetic makes is explained", _fits, (1.4, 2.8)),
    Decision("off by {} of what an arithmetic makes is explained", _near, (0.21, 0.42)),
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
]
