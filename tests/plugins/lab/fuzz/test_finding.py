"""Doubles of a finding have its key, others have another one; names and titles are for people."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from fuzz_findings import comparing
from hypothesis import given
from hypothesis import strategies as st

from conrepair_lab.fuzz.cause import Cause
from conrepair_lab.fuzz.finding import Finding, key_of
from conrepair_lab.fuzz.suspicion import Suspicion

_OPERATORS = st.lists(st.sampled_from(["Add", "Mul", "Pad", "MaxPool", "Relu"]), min_size=1, max_size=5)
_SWITCHES = st.lists(st.sampled_from(["Pad_Fusion", "GeluFusion", "Div_Mul"]), min_size=1, max_size=3, unique=True)
NUMBERS = Suspicion("numbers", "answers", "", "y[3] is 1 and should be 2", "", "y", (3,), 1.0, 2.0, 0.1, 10.0)
THROWN = Suspicion("exception", "load", "Fail", "node 'a' has 3 inputs", "session.py:load")
PLAIN = Cause(plainly=True, exact=True)


@given(_OPERATORS, st.randoms(use_true_random=False))
def test_a_kernels_doubles_have_other_numbers_and_an_order_of_their_own(operators: list[str], random: Any) -> None:
    other = [*operators, operators[0]]
    random.shuffle(other)
    elsewhere = dataclasses.replace(NUMBERS, message="z is 7 and should be 8", output="z", index=(), over=99.0)
    assert key_of("ort", NUMBERS, tuple(operators), PLAIN) == key_of("ort", elsewhere, tuple(other), PLAIN)


@given(_SWITCHES, st.randoms(use_true_random=False))
def test_the_order_of_switches_says_nothing(names: list[str], random: Any) -> None:
    other = list(names)
    random.shuffle(other)
    together = [Cause(causes=(tuple(item),)) for item in (names, other)]
    assert len({key_of("ort", NUMBERS, ("Add",), cause) for cause in together}) == 1


def test_the_order_in_which_causes_were_found_says_nothing() -> None:
    one, two = Cause(causes=(("A",), ("B", "C"))), Cause(causes=(("B", "C"), ("A",)))
    assert key_of("ort", NUMBERS, ("Add",), one) == key_of("ort", NUMBERS, ("Add",), two)


def test_doubles_of_an_exception_have_its_words_and_place() -> None:
    first = key_of("ort", THROWN, ("Add",), Cause())
    doubled = dataclasses.replace(THROWN, message="node 'b' has 5 inputs")
    assert key_of("ort", doubled, ("Mul", "Pad"), Cause()) == first
    changes: tuple[Any, ...] = ({"message": "node 'a' has no inputs"}, {"place": "file.py:other"}, {"stage": "run"})
    for change in changes:
        assert key_of("ort", dataclasses.replace(THROWN, **change), ("Add",), Cause()) != first


def test_another_system_kind_operator_or_switch_is_another_finding() -> None:
    keys = [
        key_of("ort", NUMBERS, ("Add",), PLAIN),
        key_of("tvm", NUMBERS, ("Add",), PLAIN),
        key_of("ort", dataclasses.replace(NUMBERS, kind="not finite"), ("Add",), PLAIN),
        key_of("ort", NUMBERS, ("Add", "Mul"), PLAIN),
        key_of("ort", NUMBERS, ("Add",), Cause(causes=(("Pad_Fusion",),))),
        key_of("ort", NUMBERS, ("Mul",), Cause(causes=(("Pad_Fusion",),))),
        key_of("ort", NUMBERS, ("Add",), Cause(causes=(("GeluFusion",),))),
    ]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("cause", [PLAIN, Cause(causes=(("Pad_Fusion",),))])
def test_ways_of_one_operator_are_findings_of_their_own(cause: Cause) -> None:
    ways = [(), ("DFT.inverse", "DFT.onesided"), ("DFT.inverse",)]
    keys = {key_of("ort", NUMBERS, ("DFT", "Add"), cause, way) for way in ways}
    assert len(keys) == 3
    assert key_of("ort", NUMBERS, ("Add", "DFT"), cause, ("DFT.onesided", "DFT.inverse")) in keys
    assert key_of("ort", THROWN, ("DFT",), PLAIN, ways[1]) == key_of("ort", THROWN, ("DFT",), PLAIN)


def test_an_optimizations_exception_is_the_same_on_other_operators() -> None:
    cause = Cause(causes=(("Pad_Fusion",),))
    first = key_of("ort", THROWN, ("Add",), cause)
    assert key_of("ort", THROWN, ("Mul", "Add"), cause) == first
    assert key_of("ort", dataclasses.replace(THROWN, message="no such axis"), ("Add",), cause) != first


def test_a_name_is_a_folders(tmp_path: Path) -> None:
    found = comparing(tmp_path)
    assert found.name == f"ort-none-numbers-{found.key[:8]}"
    strange = dataclasses.replace(found, suspicion=Suspicion("not finite", "answers"))
    assert strange.name == f"ort-none-not-finite-{found.key[:8]}"


@pytest.mark.parametrize(
    ("suspicion", "words"),
    [
        (Suspicion("numbers", "answers"), "wrong numbers"),
        (Suspicion("not finite", "answers"), "NaN or infinity"),
        (Suspicion("shape", "answers"), "wrong shape"),
        (Suspicion("type", "answers"), "wrong element type"),
        (Suspicion("outputs", "answers"), "missing outputs"),
        (Suspicion("chance", "answers"), "other outputs in each run"),
        (Suspicion("layout", "answers"), "outputs depend on how inputs lie in memory"),
        (Suspicion("exception", "load", "Fail"), r"Fail (load)"),
        (Suspicion("crash", "process", "SIGSEGV"), "crash (SIGSEGV)"),
        (Suspicion("hang", "process"), "never ends"),
        (Suspicion("memory", "process"), "takes all memory"),
    ],
)
def test_a_title_names_each_operator_once(suspicion: Suspicion, words: str, tmp_path: Path) -> None:
    found: Finding = comparing(tmp_path, suspicion=suspicion, operators=("Add", "Mul", "Add"))
    assert found.title == f"ort-none: {words} for Add, Mul"


def test_one_functions_exceptions_at_several_operators_are_doubles() -> None:
    words = "Non-zero status code returned while running {} node. " + "count == 1 was false. " * 9
    keys = {
        key_of("ort", dataclasses.replace(THROWN, message=words.format(name)), (name, "Add"), Cause())
        for name in ("ReduceMax", "ReduceLogSumExp", "ReduceL2")
    }
    assert len(keys) == 1
    other = dataclasses.replace(THROWN, message="Non-zero status code returned while running Add node. size")
    assert key_of("ort", other, ("Add",), Cause()) not in keys
