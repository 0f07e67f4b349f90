"""What no layer shows and the outputs do: nothing is called right that isn't, and what hides it is found."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from localizing import localize_networks
from onnx_networks import drawn, written
from rewritten_networks import opened

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.judge.hidden import Explained, _Runs
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.diagnosis.localization.run.measurement import Cut
from conrepair.ground.metrics.tensors import compare_tensors
from conrepair.verdicts.evaluate.compare import ComparedOutputs, OutputComparison
from conrepair.verdicts.evaluate.pairing import OutputPair
from conrepair.verdicts.evaluate.verdict import Verdict

CHANNELS, QUIET = 256, 3


def quiet(path: Path, wrong: float = 0.0, then: str = "Mul (r, louder)") -> Path:
    """One channel of many is so quiet that no norm hears it, and only that one is listened to behind."""
    weight = drawn(8, CHANNELS, seed=1)
    weight[:, QUIET] *= 1e-6
    other = weight.copy()
    other[:, QUIET] *= 1 + wrong
    listened = drawn(CHANNELS, 5, seed=2) * 1e-6
    listened[QUIET] = drawn(5, seed=3)
    louder = np.ones(CHANNELS, np.float32)
    louder[QUIET] = 1e6
    text = f"""small (float[batch, 8] x) => (float[batch, 5] y) {{
        a = Tanh (x)
        h = MatMul (a, w)
        r = Identity (h)
        l = {then}
        y = MatMul (l, listened)
    }}"""
    return written(path, text, {"w": other, "louder": louder, "listened": listened})


def localized(source: Path, target: Path, folder: Path) -> Localization:
    batches = [({"x": drawn(4, 8, seed=seed, scale=1)},) * 2 for seed in range(2)]
    sides = opened(source, batches[0][0]), opened(target, batches[0][0])
    return localize_networks(*sides, batches, folder / "work", Options()).result


@pytest.mark.parametrize("wrong", [0.01, 0.3, -1.0, 5.0])
def test_a_channel_that_no_norm_hears_is_found_by_what_listens_to_it(wrong: float, tmp_path: Path) -> None:
    source = quiet(tmp_path / "s.onnx", then="Add (r, louder)")
    result = localized(source, quiet(tmp_path / "t.onnx", wrong, then="Add (r, louder)"), tmp_path)
    assert result.verdict is Verdict.EQUIVALENT  # nobody can hear it there
    source = quiet(tmp_path / "s.onnx")
    result = localized(source, quiet(tmp_path / "t.onnx", wrong), tmp_path)
    assert result.verdict is Verdict.FAULTY, result.reason
    [fault] = result.faults
    assert fault.target_layers[0] == "h"
    assert result.coverage is not None
    assert result.coverage.explained == 1.0


def test_right_stays_right(tmp_path: Path) -> None:
    result = localized(quiet(tmp_path / "s.onnx"), quiet(tmp_path / "t.onnx"), tmp_path)
    assert result.verdict is Verdict.EQUIVALENT
    assert result.coverage is not None
    assert result.coverage.explained is None


def nearly_the_same(path: Path, off: float) -> Path:
    """What is left of two products that differ in the fifth digit: rounding of either is a hundred thousand times as
    large there."""
    weight = drawn(8, 6, seed=1)
    other = weight * (1 + 1e-4 * drawn(8, 6, seed=3, scale=1))
    weight = weight * (1 + off * drawn(8, 6, seed=4, scale=1))
    text = """small (float[batch, 8] x) => (float[batch, 6] y) {
        a = Tanh (x)
        h = MatMul (a, w)
        g = MatMul (a, v)
        d = Sub (h, g)
        y = Mul (d, louder)
    }"""
    held = {"w": weight, "v": other, "louder": np.full(6, 1e4)}
    return written(path, text, {name: array.astype(np.float32) for name, array in held.items()})


@pytest.mark.parametrize(
    ("off", "verdict", "words"),
    [
        (1e-7, Verdict.NOISE, "accumulated rounding"),  # no more than rounding on the way does to the outputs
        (
            1e-6,
            Verdict.UNDECIDED,
            "rounding errors at `h` change the outputs as much",
        ),  # more, and no more than rounding at one place
        (1e-5, Verdict.FAULTY, "`h` adds an error"),
    ],
)
def test_what_rounding_does_as_well_is_no_fault(off: float, verdict: Verdict, words: str, tmp_path: Path) -> None:
    source = nearly_the_same(tmp_path / "s.onnx", 0.0)
    result = localized(source, nearly_the_same(tmp_path / "t.onnx", off), tmp_path)
    assert (result.verdict, words in result.reason) == (verdict, True), result.reason
    assert [fault.target_layers for fault in result.faults] == ([("h",)] if verdict is Verdict.FAULTY else [])


def outputs(verdict: Verdict, *errors: float, mismatched: int = 0) -> ComparedOutputs:
    plain = compare_tensors(np.ones(3), np.ones(3), rtol=0, atol=0)
    found = [dataclasses.replace(plain, relative_l2=error, mismatched=mismatched) for error in errors]
    pair = OutputPair("y", "y")
    each = tuple(
        OutputComparison(
            pair=pair,
            error=error,
            floor=0.0,
            floor_measured=False,
            answers=None,
            verdict=verdict,
            reason="",
            notes=(),
        )
        for error in found
    )
    return ComparedOutputs(verdict=verdict, reason="", outputs=each, unpaired=())


@pytest.mark.parametrize(
    ("before", "left", "share"),
    [
        (outputs(Verdict.FAULTY, 0.1, 0.4), outputs(Verdict.FAULTY, 0.1, 0.05), 0.75),
        (outputs(Verdict.FAULTY, 0.4), outputs(Verdict.EQUIVALENT, 0.1), 1.0),  # nothing that matters is left
        (outputs(Verdict.FAULTY, 0.4), outputs(Verdict.UNDECIDED, 0.5), 0.0),
        (outputs(Verdict.FAULTY), outputs(Verdict.FAULTY), 1.0),
        (outputs(Verdict.FAULTY, 0.4, mismatched=1), outputs(Verdict.FAULTY, 0.4), 1.0),
        (outputs(Verdict.FAULTY, 0.4), outputs(Verdict.FAULTY, 0.1, mismatched=1), 0.0),
    ],
)
def test_the_share_that_guilty_pieces_bring(before: ComparedOutputs, left: ComparedOutputs, share: float) -> None:
    assert Explained((), before, left).share == pytest.approx(share)


class Runs(_Runs):
    """Of four cuts; the outputs' error depends on which of them are fed."""

    def __init__(self, error: Callable[[frozenset[str]], float], disturbed: float = 0.05) -> None:
        plain = layouts((2, 3), (2, 3))[0]
        self._cuts = [Pair(name, name, plain, 1.0, "") for name in "abcd"]
        self._judged = {}
        self._error, self._disturbed = error, disturbed

    def outputs(self, fed: Sequence[Pair], disturbed: str = "", *, inputs: bool = True) -> ComparedOutputs:
        error = self._disturbed if disturbed else self._error(frozenset(pair.target for pair in fed))
        return outputs(Verdict.FAULTY if error > 0.1 else Verdict.NOISE, error)


@pytest.mark.parametrize("needed", ["a", "b", "c", "d", "bd", "abc"])
def test_the_last_cut_that_is_needed(needed: str) -> None:
    runs = Runs(lambda fed: 0.0 if fed.issuperset(needed) else 0.4)
    assert runs.last_needed(()) == (needed[-1], 0.4, 0.05)
    known = [pair for pair in runs._cuts if pair.target == needed[0]]
    assert (runs.last_needed(known) == (needed[-1], 0.4, 0.05)) is (len(needed) > 1)


@pytest.mark.parametrize(("left", "tips"), [(0.05, False), (0.06, False), (0.07, True), (0.1, True)])
def test_what_only_tips_the_scales_is_not_at_fault(left: float, tips: bool) -> None:
    runs = Runs(lambda fed: 0.12 if len(fed) < 4 else left)
    assert runs.last_needed(()) == (("d", 0.0, 0.0) if tips else ("d", 0.12, 0.05))


def test_outputs_that_are_wrong_whatever_is_fed_are_at_fault_themselves() -> None:
    runs = Runs(lambda _: 0.4)
    one, two, right = (
        outputs(verdict, error).outputs[0]
        for verdict, error in ((Verdict.FAULTY, 0.2), (Verdict.UNDECIDED, 0.4), (Verdict.NOISE, 0.9))
    )
    named = [
        dataclasses.replace(item, pair=OutputPair(name, name))
        for name, item in (("one", one), ("two", two), ("right", right), ("lost", two))
    ]
    tensors = {"one": "a", "two": "b", "right": "c", "lost": "other"}
    runs._given = cast(Any, SimpleNamespace(network=SimpleNamespace(output_names=tensors)))
    runs.pairs = {pair.target: pair for pair in runs._cuts}
    compared = ComparedOutputs(verdict=Verdict.FAULTY, reason="", outputs=tuple(named), unpaired=())
    assert runs._wrong_end(compared) == ("b", 0.4, 0.0), "the furthest off of those that are wrong"
    runs._judged = {"b": Judged(Cut(runs.pairs["b"]), 0.0, 0.0, 1e-6, guilty=False)}
    assert runs._wrong_end(compared) == ("b", 0.4, 1e-6)
    assert (
        runs._wrong_end(ComparedOutputs(verdict=Verdict.FAULTY, reason="", outputs=tuple(named[2:]), unpaired=()))
        is None
    )


def test_outputs_without_a_number_end_the_search(tmp_path: Path) -> None:
    """A logarithm of what's negative: no cut makes an output right, and the same one is furthest off each time."""
    text = "small (float[4, 8] x) => (float[4, 3] y) {{ [log] l = Log (x) [mm] y = MatMul (l, {}) }}"
    weights = {name: drawn(8, 3, seed=place) for place, name in enumerate(("s", "t"))}
    paths = [written(tmp_path / f"{name}.onnx", text.format(name), weights) for name in weights]
    folder = tmp_path / "work"
    folder.mkdir()
    found = localized(*paths, folder)
    assert found.verdict is Verdict.UNDECIDED
