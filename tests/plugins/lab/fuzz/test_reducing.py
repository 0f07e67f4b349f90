"""A suspicion becomes the smallest case, is judged by others, and its cause isolated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fuzz_cases import case, compared_by_halves, padded_pool, right

from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.looking import RIGHT, SUSPECT, look, referees
from conrepair_lab.fuzz.reducing import GONE, Reduction, reduced, worse
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.systems.registry import SYSTEMS, entry
from conrepair_lab.systems.system import Setting


def made_of(what: Case, name: str, folder: Path) -> Reduction:
    asked = entry(name)
    suspicion = look(what, asked.runs, asked.chosen, folder).suspicion
    assert suspicion is not None
    return reduced(what, suspicion, asked, folder, seconds=20, longest=10)


def operators(found: Reduction) -> list[str]:
    return [node.op_type for node in found.case.model.graph.node]


def test_a_kernels_fault_is_reduced_to_its_node(tmp_path: Path) -> None:
    text = """g (int64[3] x, float[3] z) => (int64[3] y, float[3] w) <int64 c = {-2147483649}>
    { a = Neg (x) b = Min (a, c) y = Abs (b) w = Exp (z) }"""
    found = made_of(case(text, x=np.array([1, 0, -5], np.int64), z=np.ones(3, np.float32)), "ort-none", tmp_path)
    assert (found.verdict, operators(found)) == (SUSPECT, ["Min"])
    assert found.smallest
    assert found.cause.plainly, "with optimizations off, too"
    assert "torch-eager" in found.words, "somebody else says so"


def test_an_optimizations_fault_names_its_switch(tmp_path: Path) -> None:
    found = made_of(padded_pool(), "ort-all", tmp_path)
    assert (found.verdict, operators(found)) == (SUSPECT, ["Pad", "MaxPool"])
    assert found.cause.causes == (("Pad_Fusion",),)
    assert "Pad_Fusion" in found.cause.lines[0]
    assert found.cause.exact


def test_what_the_runtime_shows_without_a_converter_is_not_the_converters(tmp_path: Path) -> None:
    asked = entry("convert-version")
    assert look(compared_by_halves(), asked.runs, asked.chosen, tmp_path).verdict == RIGHT, "as without it"
    outside = case(
        "g (float[1] x) => (float[1] y) <int64[1] i = {7}> { y = Gather (x, i) }", x=np.ones(1, np.float32)
    )
    suspicion = look(outside, asked.runs, asked.chosen, tmp_path).suspicion
    assert suspicion is not None
    found = reduced(outside, suspicion, asked, tmp_path, seconds=5, longest=5)
    assert found.verdict != SUSPECT, "no referee computes it"


def test_what_is_not_seen_again_is_gone(tmp_path: Path) -> None:
    asked = entry("ort-none")
    found = reduced(right(), Suspicion("numbers", "answers"), asked, tmp_path, seconds=5, longest=5)
    assert found.verdict == GONE


def test_what_is_hardly_beyond_its_bound_is_searched_for_clearer_inputs(tmp_path: Path) -> None:
    asked = entry("ort-none")
    made = case("g (float[1] x) => (float[1] y) { y = Elu (x) }", x=np.array([-0.04], np.float32))
    clearer = worse(made, asked.runs, asked.chosen, tmp_path)
    assert clearer is not None
    found = look(clearer, asked.runs, asked.chosen, tmp_path).suspicion
    assert found is not None
    assert (found.over or 0) > 100


def test_without_real_inputs_nothing_is_searched(tmp_path: Path) -> None:
    asked = entry("ort-none")
    assert worse(compared_by_halves(), asked.runs, asked.chosen, tmp_path) is None


def test_a_smaller_case_is_one_that_all_referees_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """g (float[1,3,4] b, float[1,1,3] s, int64[1] m, float[1] i, float[1] t) => (int64[n,3] y)
    { y = NonMaxSuppression (b, s, m, i, t) }"""
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11]]], np.float32)
    made = case(
        text,
        b=boxes,
        s=np.array([[[0.9, 0.75, 0.6]]], np.float32),
        m=np.array([3]),
        i=np.float32([0.5]),
        t=np.float32([0]),
    )

    class Empty(type(SYSTEMS["ort"])):  # type: ignore[misc]
        name = "empty"

        def open(self, model: Model, setting: Setting, folder: Path) -> Runnable:
            opened = super().open(model, setting, folder)
            run = opened._run
            opened._run = lambda feeds: {name: array[:0] for name, array in run(feeds).items()}
            return opened

    monkeypatch.setitem(SYSTEMS, "empty", Empty())
    seen = look(made, SYSTEMS["empty"], SYSTEMS["empty"].settings["all"], tmp_path).suspicion
    assert seen is not None
    found = reduced(made, seen, entry("empty-all"), tmp_path, seconds=20, longest=10)
    assert referees(found.case) == referees(made) == {"reference", "runtime"}
    assert found.case.inputs["b"].shape == (1, 1, 4), "fewer boxes, of four numbers each"
    assert found.case.inputs["m"].shape == (1,)


def test_what_is_seen_is_reduced_where_it_is_another_thing_each_time(tmp_path: Path) -> None:
    chance = Suspicion("chance", "answers", message="y isn't the same in run 1 and run 3")
    found = reduced(padded_pool(), chance, entry("ort-all"), tmp_path, seconds=10, longest=10)
    assert (found.verdict, found.suspicion.kind) == (SUSPECT, "numbers")
