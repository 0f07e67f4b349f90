"""A suspicion becomes the smallest case, is judged by others, and its cause isolated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from fuzz_cases import case, compared_by_halves, padded_pool, right

from conrepair.cases.case import Case
from conrepair.fuzz.looking import RIGHT, SUSPECT, look
from conrepair.fuzz.reducing import GONE, Reduction, reduced
from conrepair.fuzz.suspicion import Suspicion
from conrepair.fuzz.worse import worse
from conrepair.systems.registry import entry


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
