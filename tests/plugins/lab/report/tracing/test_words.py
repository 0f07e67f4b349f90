"""A trace in words."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from conrepair_lab.report.tracing.words import summary_lines, traced_lines, verdict_of
from conrepair_lab.systems.system import Switch
from conrepair_lab.tracing.propagation import KernelError
from conrepair_lab.tracing.result import Culprits, Deviation, Errors, Kernels, Side, Traced

NONE = Errors(0.0, 0.0, 0.0)
WRONG = Deviation("y", 0, "wrong", "setting", (0,), dict.fromkeys(("setting", "against", "exact"), 0.0), 0, NONE, NONE, NONE)  # fmt: skip  # noqa: E501


def told(culprits: Culprits, *kernels: KernelError) -> str:
    traced = Traced("m", "", Side("one"), Side("two"), "mega", "guide", 0, deviations=(WRONG,), culprits=culprits, kernels=Kernels(kernels))  # fmt: skip  # noqa: E501
    return "\n".join(traced_lines(traced))


def test_a_set_that_is_not_the_smallest_is_not_said_to_be_a_cause() -> None:
    cause = tuple(Switch(f"pass {number}", "pass", "") for number in range(11))
    found = told(Culprits(asked=98, causes=(cause,), builds=6, exact=False))
    assert "the cause is among: pass 0 (pass) and pass 1 (pass)" in found
    assert "pass 7 (pass) and 3 more (trace.json)" in found
    assert "or fewer may be enough: more builds (--builds)" in found
    assert "only together" not in found
    assert (
        "only together they cause it: pass 0 (pass) and pass 1 (pass)\n"
        in f"{told(Culprits(asked=98, causes=(cause[:2],)))}\n"
    )


def test_a_fused_kernel_names_its_operator_or_the_fusion() -> None:
    error = KernelError("y", ("fused_a_b",), ("Abs", "Tanh"), (), 0.0, 1.0, 2.0, 1.0, "generated")
    for culprits, words in (
        (("Tanh 'y'",), "2 times the rounding error. Alone, Tanh 'y' is at fault\n"),
        ((), "2 times the rounding error. Each of its operators is right alone: their fusion is at fault\n"),
        (None, "`fused_a_b` (Abs, Tanh): receives no error, adds an error of 100 %, 2 times the rounding error\n"),
    ):
        assert words in f"{told(Culprits(), dataclasses.replace(error, culprits=culprits))}\n"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("amplified", "Sub `s`: receives an error below 0.0001 %, amplifies it to 13 %, is right itself"),
        ("damped", "Sub `s`: receives an error below 0.0001 %, reduces it to 13 %"),
        ("cancelled", "Sub `s`: receives an error below 0.0001 %, passes on an error of 13 %"),
        (
            "differs",
            "Sub `s`: receives an error below 0.0001 %, adds an error of 0.12 %, within rounding error; on the same "
            "inputs its result is 25,000 ulps from that of two",
        ),
    ],
)
def test_a_kernel_says_what_it_receives_and_what_it_makes_of_it(change: str, words: str) -> None:
    error = KernelError("y", ("s",), ("Sub",), (), 1e-7, 0.0012, 0.5, 0.13, change, apart=24_612.0)
    assert f"{words}\n" in f"{told(Culprits(), error)}\n"
    assert ". Its result isn't finite\n" in f"{told(Culprits(), dataclasses.replace(error, finite=False))}\n"


def errors(largest: float, over: float | None = 0.5) -> Errors:
    return Errors(largest, largest, 1e4 * largest, over)


def deviation(kind: str, blamed: str, total: Errors | None, framework: Errors | None, between: float) -> Deviation:
    values = {"setting": 1.5, "against": 2.5, "exact": 3.5}
    return Deviation("y", 0, kind, blamed, (0,), values, 1e-7, framework, errors(between, None), total)


@pytest.mark.parametrize(
    ("found", "against", "words"),
    [
        (
            deviation("wrong", "both", errors(0.72, 9680.0), errors(0.71, 9000.0), 0.0),
            "ort-none",
            "wrong: ort-all is 72 % off the exact value of `y`, 9,700 times the rounding error; so is ort-none "
            "(71 %)",
        ),
        (
            deviation("wrong", "setting", errors(0.13, 88.0), errors(1e-7), 0.13),
            "ort-none",
            "wrong: ort-all is 13 % off the exact value of `y`, 88 times the rounding error; ort-none is right",
        ),
        (
            deviation("wrong", "against", errors(1e-7), errors(0.13, 8.8), 0.13),
            "ort-none",
            "wrong: ort-none is 13 % off the exact value of `y`, 8.8 times the rounding error; ort-all is right",
        ),
        (
            deviation("wrong", "setting", errors(0.13, 88.0), errors(0.0), 0.13),
            "exact",
            "wrong: ort-all is 13 % off the exact value of `y`, 88 times the rounding error",
        ),
        (
            deviation("wrong", "against", errors(0.1), errors(np.inf, np.inf), np.inf),
            "ort-none",
            "wrong: `y` of ort-none is 2.5 where it should be 3.5; ort-all is right",
        ),
        (
            deviation("ill-conditioned", "", errors(0.2), errors(0.1), 0.3),
            "ort-none",
            "ill-conditioned: `y` of ort-all is 30 % off ort-none, within rounding error, which this network "
            "amplifies; neither side is at fault",
        ),
        (
            deviation("ill-conditioned", "", errors(np.inf), errors(0.1), np.inf),
            "ort-none",
            "ill-conditioned: `y` of ort-all is 1.5 where it should be 2.5, within rounding error, which this "
            "network amplifies; neither side is at fault",
        ),
        (
            deviation("within", "", errors(1e-5), errors(1e-7), 1e-5),
            "exact",
            "right: `y` of ort-all is 0.0010 % off exact values, within rounding error",
        ),
        (
            deviation("equal", "", errors(1e-5), errors(1e-5), 0.0),
            "ort-none",
            "equal: ort-all and ort-none give the same bits",
        ),
        (
            deviation("equal", "", errors(np.inf), errors(np.inf), 0.0),
            "ort-none",
            "equal: ort-all and ort-none give the same bits; `y` is 1.5 where it should be 3.5",
        ),
        (
            deviation("not judged", "", None, None, 0.2),
            "ort-none",
            "not judged: `y` of ort-all is 20 % off ort-none, and nothing computes this network in float64, so the "
            "exact value isn't known",
        ),
        (
            deviation("not judged", "", errors(0.2), errors(0.2), 0.2),
            "ort-none",
            "not judged: `y` of ort-all is 20 % off ort-none, and those who compute this network in float64 "
            "contradict each other",
        ),
    ],
)
def test_the_verdict_is_one_sentence_with_the_sides_and_their_error(
    found: Deviation, against: str, words: str
) -> None:
    traced = Traced("m", "", Side("ort-all"), Side(against), "mega", "guide", 0, deviations=(found,))
    assert verdict_of(traced) == words
    overflowing = dataclasses.replace(traced, deviations=(dataclasses.replace(found, bound=np.inf),))
    tells = found.kind == "ill-conditioned" or found.total == errors(np.inf)
    assert ("may overflow, so rounding errors have no limit" in verdict_of(overflowing)) == tells


def test_both_sides_are_told_beside_exact_values_unless_they_give_the_same() -> None:
    def lines(found: Deviation, against: str = "two") -> str:
        traced = Traced("m", "", Side("one"), Side(against), "mega", "guide", 0, deviations=(found,), changed=0.13)
        return "\n".join(traced_lines(traced))

    apart = lines(deviation("wrong", "setting", errors(0.13, 88.0), errors(0.02), 0.13))
    assert "  predictions: 13 % of the given samples get another one\n" in apart
    assert "  worst element y[0]: one 1.5, two 2.5, exact 3.5; rounding error at most 1e-07\n" in apart
    assert "    largest difference between both: 13 % (1,300 ulps)\n" in apart
    assert "one 13 % (1,300 ulps, 88 times the rounding error), two 2.0 % (200 ulps, 0.5 times the rounding" in apart
    same = lines(deviation("wrong", "both", errors(0.13, 88.0), errors(0.13, 88.0), 0.0))
    assert "from exact values: 13 % (1,300 ulps, 88 times the rounding error), the same on both sides" in same
    assert "between both" not in same
    alone = lines(deviation("wrong", "setting", errors(0.13, 88.0), errors(0.0), 0.13), "exact")
    assert "worst element y[0]: one 1.5, exact 3.5;" in alone
    assert "between both" not in alone


@pytest.mark.parametrize(
    ("culprits", "words"),
    [
        (Culprits(asked=56, builds=1), "  no optimization causes this: one is wrong with all 56 of them off"),
        (
            Culprits(asked=9, builds=3, heals=((Switch("a", "pass", "off"),),), verified=False, cost=1.5),
            "  each of these, switched off, takes the error away (3 combinations of 9 switches tried):\n"
            "    a (pass)\n      off\n"
            "    without the first, some of the other inputs are still wrong and a run takes 1.50 times as long",
        ),
        (Culprits(asked=9, builds=1, mends=((Switch("a", "pass", ""),),)), "  one is right because of these (1 "),
        (
            Culprits(asked=9, builds=2, exact=False),
            "  which optimization is the cause wasn't found (2 combinations of",
        ),
    ],
)
def test_switches_are_told_with_what_they_do(culprits: Culprits, words: str) -> None:
    assert words in told(culprits)


def test_a_folder_is_told_in_two_lines_and_its_culprits() -> None:
    heals = Culprits(heals=((Switch("a", "pass", ""),),))
    kinds = [deviation(kind, "", errors(0.1), errors(0.1), far) for kind, far in (("wrong", 0.02), ("within", 0.0))]
    found = [Traced("m", "", Side("o"), Side("t"), "mega", "guide", 0, deviations=(item,)) for item in kinds]
    found[0] = dataclasses.replace(found[0], culprits=heals)
    assert list(summary_lines([("a", found[0]), ("b", found[1])])) == [
        "2 networks: 1 wrong, 1 right",
        "  outputs differ between both sides: in 1 by more than 0.10 %, in 1 by more than 1.0 %",
        "  1 is right without a",
    ]
