"""What is concluded from layers, bounded by what the outputs say."""

from __future__ import annotations

import math

import localizations
import numpy as np
import pytest
from random_graphs import SHAPE, graph_of

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.judge.conclusion import concluded, coverage_of
from conrepair.diagnosis.localization.judge.hidden import Explained
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.result import Coverage, LocatedFault, Rule
from conrepair.diagnosis.localization.run.measurement import Cut
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.compare import ComparedOutputs
from conrepair.verdicts.evaluate.verdict import Verdict

ALL = Coverage(nodes=7, all_nodes=7, parameters=10, all_parameters=10)
PART = Coverage(nodes=4, all_nodes=7, parameters=5, all_parameters=10, unseen=("lstm", "gru", "dense", "last"))
FEW = Coverage(nodes=3, all_nodes=7, parameters=5, all_parameters=10, unseen=("lstm", "gru", "dense", "last"))
EPSILON = (("epsilon is 0.01", "b0"),)


def outputs(verdict: Verdict) -> ComparedOutputs:
    return ComparedOutputs(verdict=verdict, reason="they say so", outputs=(), unpaired=())


def fault(place: int, introduced: float = 0.25, **changes: object) -> LocatedFault:
    return localizations.fault_of(localizations.row(place, introduced), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_no_guilty_layer_proves_nothing_where_outputs_are_wrong(verdict: Verdict) -> None:
    found, words = concluded((), (), outputs(verdict), None, ALL, 0.3)
    assert found is (verdict if verdict.is_right else Verdict.UNDECIDED)
    assert ("they say so" in words) is (verdict not in (Verdict.EQUIVALENT, Verdict.QUANTIZED))
    assert ("the outputs don't tell" in words) is (verdict is Verdict.UNDECIDED)
    assert ("but the outputs are wrong" in words) is (verdict in (Verdict.FAULTY, Verdict.UNDEPLOYABLE))
    assert ("weren't compared" in words) is False


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_guilty_layer_is_a_fault_whatever_the_outputs_say(verdict: Verdict) -> None:
    found, words = concluded((fault(3), fault(1)), (), outputs(verdict), None, ALL, 0.3)
    assert found is Verdict.FAULTY
    assert words == "`layer_3` adds an error of 25 % itself, and 1 more fault"


def test_words_of_one_fault() -> None:
    one = concluded((fault(3),), (), outputs(Verdict.FAULTY), None, ALL, 0.3)[1]
    assert one == "`layer_3` adds an error of 25 % itself"
    lost = fault(3, math.inf, kind=Kind.STRUCTURE, target_layers=())
    words = concluded((lost,), (), outputs(Verdict.FAULTY), None, ALL, 0.3)[1]
    assert words == f"`block/3/conv`: {localizations.EVIDENCE[0]}"
    other = fault(3, math.inf, kind=Kind.HYPERPARAMETERS)
    words = concluded((other,), (), outputs(Verdict.FAULTY), None, ALL, 0.3)[1]
    assert words == f"`layer_3`: {localizations.EVIDENCE[0]}"


@pytest.mark.parametrize(("introduced", "words"), [(0.0, "pads"), (1e-9, "pads"), (0.25, "adds an error of 25 %")])
def test_a_figure_that_says_nothing_is_not_told(introduced: float, words: str) -> None:
    one = fault(3, introduced)
    assert words in concluded((one,), (), outputs(Verdict.FAULTY), None, ALL, 0.3)[1]
    assert ("adds an error of" in one.measured) is (introduced > one.noise_floor)


def test_words_of_rules_and_of_those_that_are_alone() -> None:
    rule = Rule(Kind.HYPERPARAMETERS, "epsilon is 0.01", ("b0", "b1"), among=2)
    known = fault(0, differences=EPSILON)
    words = concluded((known,), (rule,), outputs(Verdict.FAULTY), None, ALL, 0.3)[1]
    assert words == "epsilon is 0.01, in all 2 places (`b0` and others)"
    words = concluded((known, fault(1)), (rule, rule), outputs(Verdict.FAULTY), None, ALL, 0.3)[1]
    assert words.endswith("; epsilon is 0.01, in all 2 places; and 1 more fault")


@pytest.mark.parametrize(
    ("before", "by_rounding", "words"),
    [
        (Verdict.FAULTY, ("a", "b", "c", "d"), "rounding errors at `a`, `b`, `c` change the outputs as much"),
        (Verdict.EQUIVALENT, (), "layers were compared on the first batch, whose outputs are right"),
        (Verdict.EQUIVALENT, ("a",), "rounding errors at `a` change the outputs as much"),
    ],
)
def test_why_nothing_is_decided(before: Verdict, by_rounding: tuple[str, ...], words: str) -> None:
    explained = Explained((), outputs(before), outputs(Verdict.FAULTY), by_rounding)
    told = concluded((), (), outputs(Verdict.FAULTY), explained, PART, 0.3)[1]
    assert words in told
    assert "3 of 7 operators weren't compared, such as `lstm`, `gru`, `dense`" in told
    silent = Explained((), outputs(Verdict.FAULTY), outputs(Verdict.FAULTY))
    told = concluded((), (), outputs(Verdict.FAULTY), silent, ALL, 0.3)[1]
    assert told == "no layer adds more than rounding error, but the outputs are wrong: they say so"


def passed(cut: Cut) -> Judged:
    return Judged(cut, cut.introduced.relative_l2, cut.introduced.relative_l2, 0.0, guilty=False)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_where_most_layers_tell_nothing_only_equal_outputs_are_right(verdict: Verdict) -> None:
    found, words = concluded((), (), outputs(verdict), None, FEW, 0.3)
    assert found is (verdict if verdict is Verdict.EQUIVALENT else Verdict.UNDECIDED)
    assert ("4 of 7 operators weren't compared, such as `lstm`" in words) is (verdict is not Verdict.EQUIVALENT)
    assert concluded((fault(3),), (), outputs(verdict), None, FEW, 0.3)[0] is Verdict.FAULTY


def test_coverage_is_what_lies_in_front_of_what_told_something() -> None:
    nodes = [(name, "Tanh", [read], [f"{name}.out"]) for name, read in (("a", "x"), ("b", "a.out"), ("c", "b.out"))]
    graph = graph_of(["x"], nodes, ["c.out"])
    layout = layouts(SHAPE, SHAPE)[0]
    middle, end = (Cut(Pair(name, name, layout, 1.0, "")) for name in ("b.out", "c.out"))
    middle.introduced.count, middle.introduced.untold = 5, 4
    end.introduced.count, end.introduced.untold = 5, 5  # nothing but NaN
    known = frozenset({"x", "b.out"})
    found = coverage_of(graph, known, [passed(middle), passed(end)], 0.5)
    assert (found.nodes, found.all_nodes, found.unseen, found.explained) == (2, 3, ("c",), 0.5)
    end.introduced.untold, middle.introduced.untold = 0, 5  # what's behind is fed the source's values
    assert coverage_of(graph, known, [passed(middle), passed(end)], 0.5).unseen == ("a", "b")


def test_values_that_hardly_depend_on_inputs_cover_nothing_where_they_are_further_off() -> None:
    graph = graph_of(["x"], [("a", "Tanh", ["x"], ["a.out"])], ["a.out"])
    cut = Cut(Pair("a.out", "a.out", layouts(SHAPE, SHAPE)[0], 1.0, ""), spread=1e-4)
    values = np.ones(SHAPE, np.float32)
    cut.introduced.add(values, values * (1 + 1e-6))
    assert coverage_of(graph, frozenset("x"), [passed(cut)], None).nodes == 1
    cut.introduced.add(values, values * 1.01)
    assert coverage_of(graph, frozenset("x"), [passed(cut)], None).nodes == 0
