"""What feeding a guess proves."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.graph.layer_graph import LayerGraph, Node, Parameter, Tensor
from conrepair.localization.evidence import Evidence
from conrepair.localization.layout import layouts
from conrepair.localization.learning import learn
from conrepair.localization.matching import EQUAL, Pair
from conrepair.localization.neighbourhood import Neighbourhood
from conrepair.localization.samples import Samples
from conrepair.localization.similarity import Similarity
from conrepair.localization.structure import Structure

Array = np.ndarray
SHAPE = (3, 8)
CHAIN = ["x", "h", "r", "s", "y", "z"]
NAMES = [*CHAIN, "apart"]


def graph() -> LayerGraph:
    """x, a layer, a Relu, another Relu that changes nothing, a layer, something behind it; a Relu that ends there."""
    weight = Parameter("w", (8, 8), "float32", lambda: np.ones((8, 8), np.float32))
    nodes = [
        Node(two, two, op, op, (one,), (two,), {}, {"weight": weight} if op == "MatMul" else {})
        for one, two, op in zip(CHAIN, CHAIN[1:], ("MatMul", "Relu", "Relu", "MatMul", "Sin"), strict=False)
    ]
    nodes.append(Node("apart", "apart", "Relu", "Relu", ("h",), ("apart",)))
    return LayerGraph(("x",), ("z",), {name: Tensor(name, SHAPE, "float32") for name in NAMES}, tuple(nodes))


def values(wrong: bool) -> dict[str, Array]:
    generator = np.random.default_rng(0)
    x, first, second = (generator.normal(size=size).astype(np.float32) for size in (SHAPE, (8, 8), (8, 8)))
    h = x @ first + (1.0 if wrong else 0.0)
    return {"x": x, **behind(h, second)}


def behind(h: Array, second: Array) -> dict[str, Array]:
    r = np.maximum(h, 0)
    y = r @ second
    return {"h": h, "r": r, "s": r, "y": y, "z": np.sin(y), "apart": r}


def learned(source: str, target: str, names: list[str], confidence: float = 0.6) -> tuple[bool, dict[int, int]]:
    """Feed the source's values of a tensor in the place of one of the target, and look at some behind it."""
    right, wrong = values(False), values(True)
    sides = [Neighbourhood(graph(), NAMES, dict.fromkeys(NAMES, SHAPE)) for _ in range(2)]
    samples = Samples(NAMES, right.__getitem__), Samples(NAMES, wrong.__getitem__)
    evidence = Evidence(*sides, Similarity(*samples, EQUAL), Structure(*sides), expected=right.__getitem__)
    plain = layouts(SHAPE, SHAPE)[0]
    fed = [Pair("x", "x", plain, 1.0, ""), Pair(source, target, plain, confidence, "")]
    second = np.random.default_rng(0)
    second.normal(size=SHAPE), second.normal(size=(8, 8))
    given = behind(right[source], second.normal(size=(8, 8)).astype(np.float32))
    found = learn(evidence, fed, names, given.__getitem__)
    return found, evidence.similarity.proven


def test_a_wrong_guess_that_only_a_relu_forgives_is_not_proven() -> None:
    """The Relu's values in place of those before it come out right of the Relu, as anything without weights may."""
    assert learned("r", "h", ["r", "s"]) == (False, {})


@pytest.mark.parametrize("names", [["r", "s", "y"], ["y"], ["z"]])
def test_a_guess_is_proven_by_weights_behind_it(names: list[str]) -> None:
    found, proven = learned("h", "h", names)
    assert found
    assert proven == {1: 1}


def test_a_guess_that_nothing_right_comes_out_of_is_not_proven() -> None:
    assert learned("x", "h", ["r", "s", "y", "z"]) == (False, {})


def test_what_comes_out_right_of_elsewhere_hides_nothing_behind_it() -> None:
    """The Relu gives the values of what's fed, which doesn't lie behind itself; the layer behind it tells."""
    assert learned("s", "h", ["r"]) == (False, {})
    assert learned("s", "h", ["r", "y"]) == (True, {3: 1})


def test_what_comes_out_right_proves_only_what_it_is_computed_from_in_the_source() -> None:
    """The same values stand elsewhere in the source, and nothing is computed from them there."""
    assert learned("apart", "h", ["y"]) == (False, {})


@pytest.mark.parametrize(("source", "shows"), [("h", True), ("x", False)])
def test_right_values_behind_what_is_known_show_something_and_prove_no_guess(source: str, shows: bool) -> None:
    """Behind the fault they weren't right before; fed other values, they aren't."""
    assert learned(source, "h", ["y"], confidence=1.0) == (shows, {})
