"""Guesses that make wrong what reads them are moved, or dropped; those that come out right are known."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_graphs import FUNCTIONS, SHAPE, Computed, drawn_feeds, graph_of

from conrepair.diagnosis.localization.align.compensating import Isolated
from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.align.neighbourhood import Neighbourhood
from conrepair.diagnosis.localization.align.settling import _alternatives, _doubtful, _moved, _tried, settle
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.ground.graph.layer_graph import Array

CHAIN = [("n0", "Tanh", ["x"], ["t0"]), ("n1", "Sin", ["t0"], ["t1"]), ("n2", "Erf", ["t1"], ["t2"])]
CHAIN += [("n3", "Abs", ["t2"], ["t3"]), ("n4", "Sin", ["t3"], ["t4"])]


def settled(guesses: dict[str, str], known: str, folder: Path) -> dict[str, Pair]:
    """Pairs by the target's names, where the target's second operator gives something else."""
    graph = graph_of(["x"], CHAIN, ["t4"])
    feeds = drawn_feeds(graph)
    source = Activations(Computed(graph), feeds, folder / "source")
    target = Activations(Computed(graph, {"n1": lambda x: 0.3 * x + np.float32(0.9)}), feeds, folder / "target")
    names = list(graph.order)
    source.compute(names)
    nodes = Neighbourhood(graph, names, dict.fromkeys(names, SHAPE))
    plain = layouts(SHAPE, SHAPE)[0]
    pairs = [Pair(name, name, plain, 1.0, "the same values") for name in known.split()]
    pairs += [Pair(one, two, plain, 0.6, "operators") for two, one in guesses.items()]
    pairs.sort(key=lambda pair: graph.order[pair.target])
    found = settle((nodes, nodes), pairs, Isolated(source, target, folder))
    return {pair.target: pair for pair in found}


def test_a_guess_moves_to_where_what_reads_it_comes_out_right(tmp_path: Path) -> None:
    found = settled({"t1": "t2"}, "x t0 t4", tmp_path)
    assert {name: pair.source for name, pair in found.items()} == {"x": "x", "t0": "t0", "t1": "t1", "t4": "t4"}
    assert "what reads it comes out right" in found["t1"].evidence
    assert found["t1"].confidence == 1.0


def test_a_guess_that_fits_nowhere_is_dropped(tmp_path: Path) -> None:
    """Without it what reads it is right: it comes from the cut behind the fault."""
    graph_pairs = settled({"t3": "t1"}, "x t0 t2 t4", tmp_path)
    assert graph_pairs.get("t3") is None or graph_pairs["t3"].source == "t3"
    assert {name: pair.source for name, pair in graph_pairs.items() if name != "t3"} == {
        name: name for name in ("x", "t0", "t2", "t4")
    }


def test_a_guess_is_dropped_that_makes_wrong_by_much_what_is_wrong_by_a_little(tmp_path: Path) -> None:
    """The target has a factor and an offset that the next operator takes back, and each layer is off by a bit."""
    graph = graph_of(["x"], CHAIN, ["t4"])
    feeds = drawn_feeds(graph)
    step = FUNCTIONS["Erf"]

    def taken_back(given: Array) -> Array:
        inner = (given - 0.3) / (1 - np.abs(given - 0.3))  # of which the operator is a function
        return np.asarray(1.02 * step((inner - 0.5) * 6))

    own = {"n1": lambda x: 1.001 * (x / 6 + 0.5), "n2": taken_back}
    source = Activations(Computed(graph), feeds, tmp_path / "source")
    target = Activations(Computed(graph, own), feeds, tmp_path / "target")
    names = list(graph.order)
    source.compute(names)
    nodes = Neighbourhood(graph, names, dict.fromkeys(names, SHAPE))
    pairs = [Pair(name, name, layouts(SHAPE, SHAPE)[0], 0.6 if name[0] == "t" else 1.0, "") for name in names]
    found = settle((nodes, nodes), pairs, Isolated(source, target, tmp_path))
    assert [pair.target for pair in found] == ["x", "t0", "t2", "t3", "t4"]


@pytest.mark.parametrize("right", [True, False])
def test_a_guess_whose_values_come_out_right_is_known(right: bool, tmp_path: Path) -> None:
    found = settled({"t1": "t1", "t2": "t2"} if right else {"t1": "t1"}, "x t0", tmp_path)
    assert (found["t1"].confidence == 1.0) == right, "by what reads it alone: its own values are wrong"
    if right:
        assert found["t2"].confidence == 1.0
        assert "from the cut before" in found["t2"].evidence


def sides() -> tuple[Neighbourhood, Neighbourhood]:
    """A chain, and the same with channels last and other names."""
    found = []
    for prefix, shape in (("s", (2, 3, 4, 5)), ("t", (2, 4, 5, 3))):
        names = [f"{prefix}{place}" for place in range(5)]
        nodes = [(f"n{two}", "Sin", [one], [two]) for one, two in itertools.pairwise(names)]
        graph = graph_of(names[:1], nodes, names[-1:], shape)
        shapes = dict.fromkeys(names, shape)
        shapes[names[3]] = (7, 7)  # which has no layout in common with the others
        found.append(Neighbourhood(graph, names, shapes))
    return found[0], found[1]


def test_a_pair_is_moved_in_the_layout_that_it_has() -> None:
    nodes = sides()
    choices = layouts((2, 3, 4, 5), (2, 4, 5, 3))
    pair = Pair("s1", "t1", choices[-1], 0.6, "operators")
    moved = _moved(nodes, pair, "s2", "t1")
    assert (moved.source, moved.target, moved.layout, moved.confidence) == ("s2", "t1", choices[-1], 0.6)
    flat = _moved(nodes, pair, "s3", "t3")
    usual, turned = layouts((7, 7), (7, 7))
    assert flat.layout == usual != turned, "where that doesn't fit"


def test_other_tensors_are_tried_one_after_the_other_and_then_none() -> None:
    nodes = sides()
    plain = layouts((2, 3, 4, 5), (2, 4, 5, 3))[0]
    pairs = [Pair(f"s{place}", f"t{place}", plain, 1.0, "") for place in (0, 4)]
    guess = Pair("s2", "t2", plain, 0.6, "")

    def moves(*others: Pair, errors: Mapping[str, float]) -> list[tuple[str, str] | None]:
        guesses, doubtful = [*pairs, guess, *others], {"t2": ["t4"]}
        found = [_alternatives(nodes, guesses, doubtful, errors, Counter({"t2": tried})) for tried in range(4)]
        return [None if (pair := item["t2"]) is None else (pair.source, pair.target) for item in found]

    assert moves(errors={"t2": 1.0}) == [("s1", "t2"), ("s2", "t1"), None, None]
    other = Pair("s3", "t1", plain, 0.6, "")
    assert moves(other, errors={"t1": 1.0, "t2": 1.0})[0] == ("s2", "t1"), "a wrong guess gives way"
    assert ("s2", "t1") not in moves(other, errors={"t1": 1e-4, "t2": 1.0})
    assert ("s2", "t1") not in moves(replace(other, confidence=1.0), errors={"t1": 1.0, "t2": 1.0})
    assert _alternatives(nodes, [*pairs, guess], {}, {}, Counter()) == {}


@pytest.mark.parametrize(
    ("errors", "cleared", "expected"),
    [
        ({"t1": 0.5, "t2": 0.5}, set(), {"t1": ["t2"]}),
        ({"t1": 0.5, "t2": 1e-3}, set(), {}),  # what reads it is right
        ({"t1": 1e-3, "t2": 0.5, "t3": 1e-4}, set(), {}),
        ({"t1": 0.5, "t2": 0.5, "t3": 0.5}, set(), {"t1": ["t2"]}),  # of neighbours the first
        ({"t1": 0.5, "t2": 0.5, "t3": 0.5, "t4": 0.5}, set(), {"t1": ["t2"], "t3": ["t4"]}),
        ({"t1": 0.5, "t2": 0.5, "t3": 0.5}, {"t1"}, {"t2": ["t3"]}),
        ({"t4": 0.5}, set(), {}),  # an output
    ],
)
def test_doubtful_is_what_makes_wrong_what_reads_it(
    errors: dict[str, float], cleared: set[str], expected: dict[str, list[str]]
) -> None:
    _, target = sides()
    plain = layouts((2, 3, 4, 5), (2, 4, 5, 3))[0]
    pairs = [Pair(f"s{place}", f"t{place}", plain, 0.6, "") for place in range(1, 5)]
    known = {f"t{place}": 1e-5 for place in range(1, 5)} | errors
    feeding = {f"t{place}": (f"t{place - 1}",) for place in range(1, 5)}
    assert _doubtful(target.graph, pairs, feeding, known, cleared) == expected


def test_an_output_is_not_doubted_though_others_read_it() -> None:
    _, target = sides()
    plain = layouts((2, 3, 4, 5), (2, 4, 5, 3))[0]
    pairs = [Pair(f"s{place}", f"t{place}", plain, 0.6, "") for place in (1, 2)]
    errors, feeding = {"t1": 0.5, "t2": 0.5}, {"t1": ("t0",), "t2": ("t1",)}
    assert _doubtful(target.graph, pairs, feeding, errors, set()) == {"t1": ["t2"]}
    ending = replace(target.graph, outputs=("t1", "t4"))
    assert _doubtful(ending, pairs, feeding, errors, set()) == {}


class Told(Isolated):
    """Errors that are known beforehand."""

    def __init__(self, errors: dict[str, float]) -> None:
        self._errors = errors

    def errors(self, pairs: Sequence[Pair], wanted: Sequence[Pair]) -> dict[str, float]:
        return {pair.target: self._errors[pair.target] for pair in wanted}


@pytest.mark.parametrize(
    ("confidence", "own", "behind", "moved"),
    [
        (0.6, 0.5, 1e-7, True),  # what reads it is right
        (1.0, 0.5, 1e-7, True),
        (0.6, 0.03, 0.5, True),  # it's sixteen times nearer
        (0.6, 0.03, 0.52, True),
        (0.6, 0.04, 0.5, False),
        (0.6, 0.03, 0.53, False),  # what reads it gets worse
        (0.6, 0.12, 0.12, True),  # so is what reads it, four times
        (0.6, 0.13, 0.12, False),
        (0.6, 0.12, 0.13, False),
        (1.0, 0.12, 0.12, False),
        (1.0, 0.03, 0.5, False),  # no guess is moved for being nearer
    ],
)
@pytest.mark.parametrize("other", ["t2", "t1"])
def test_a_pair_is_moved_to_what_is_right_behind_it_and_a_guess_to_what_is_much_nearer(
    confidence: float, own: float, behind: float, moved: bool, other: str
) -> None:
    plain = layouts(SHAPE, SHAPE)[0]
    pair, reader = Pair("s2", "t2", plain, confidence, ""), Pair("s4", "t4", plain, 1.0, "")
    instead = replace(pair, source="s1", target=other)
    known = {"t2": 0.5, "t4": 0.5}
    told = Told({other: own, "t4": behind})
    found = _tried([pair, reader], {"t2": ["t4"]}, known, told, {"t2": instead})
    assert found == [instead if moved else pair, reader]


class Dropped(Isolated):
    """What reads a tensor is right as soon as that isn't fed any more, and by no other tensor in its place."""

    def __init__(self) -> None:
        self.tried: list[tuple[str, str]] = []

    def errors(self, pairs: Sequence[Pair], wanted: Sequence[Pair]) -> dict[str, float]:
        moved = [(pair.source, pair.target) for pair in pairs if pair.confidence < 1.0]
        self.tried += moved
        return {pair.target: 0.5 if moved and pair.target != "t0" else 1e-7 for pair in wanted}


def test_a_pair_is_dropped_when_some_others_were_tried() -> None:
    found = []
    for prefix in "st":
        names = [f"{prefix}{place}" for place in range(7)]
        nodes = [("n1", "Sin", names[:1], [names[1]]), ("n2", "Sin", [names[1]], [names[2]])]
        nodes += [(f"n{place}", "Sin", [names[2]], [names[place]]) for place in (3, 4, 5)]
        graph = graph_of(names[:1], [*nodes, ("n6", "Sin", names[3:6], [names[6]])], names[-1:])
        found.append(Neighbourhood(graph, names, dict.fromkeys(names, SHAPE)))
    plain = layouts(SHAPE, SHAPE)[0]
    pairs = [Pair(f"s{place}", f"t{place}", plain, 0.6 if place == 2 else 1.0, "") for place in (0, 2, 6)]
    isolated = Dropped()
    kept = settle((found[0], found[1]), pairs, isolated)
    assert [pair.target for pair in kept] == ["t0", "t6"]
    assert len(set(isolated.tried)) == 1 + 5, "itself, and five others"
