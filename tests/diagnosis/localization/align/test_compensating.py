"""Pairs between two pieces whose errors cancel aren't pairs; those that a softmax forgives aren't either."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from random_graphs import FUNCTIONS, SHAPE, Computed, drawn_feeds, graph_of
from scipy.special import softmax

from conrepair.diagnosis.localization.align.compensating import Isolated, _choices, without_compensated
from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.run.activations import Activations

Array = npt.NDArray[np.float32]
CHAIN = [
    ("first", "Tanh", ["x"], ["a"]),
    ("scaled", "Identity", ["a"], ["b"]),
    ("left", "Identity", ["b"], ["c"]),
    ("right", "Identity", ["b"], ["d"]),
    ("joined", "Identity", ["c", "d"], ["e"]),
    ("back", "Identity", ["e"], ["f"]),
    ("last", "Tanh", ["f"], ["y"]),
]


def kept(changes: dict[str, Callable[[Array], Array]], folder: Path, *, last: str = "Tanh") -> list[str]:
    """The target's tensors that are still pairs, where all were; its operators are the source's but for changes."""
    written = [(*node[:1], last, *node[2:]) if node[0] == "last" else node for node in CHAIN]
    graph = graph_of(["x"], written, ["y"])
    feeds = drawn_feeds(graph)
    source = Activations(Computed(graph), feeds, folder / "source")
    target = Activations(Computed(graph, changes), feeds, folder / "target")
    names: Sequence[str] = list(graph.order)
    source.compute(names)
    plain = layouts(SHAPE, SHAPE)[0]
    pairs = [Pair(name, name, plain, 1.0, "what's computed from it comes out right") for name in names]
    isolated = Isolated(source, target, folder)
    found, errors = without_compensated(graph, pairs, isolated.errors(pairs, pairs), isolated)
    assert errors.keys() == {pair.target for pair in found} - {"x"}
    return [pair.target for pair in found]


def test_a_factor_that_is_taken_back(tmp_path: Path) -> None:
    """Both branches between the two are dropped, and the end stays."""
    changes = {"scaled": lambda a: 2 * a, "back": lambda e: e / 2}
    assert kept(changes, tmp_path) == ["x", "a", "f", "y"]


def test_two_faults_that_cancel_nothing(tmp_path: Path) -> None:
    assert kept({"scaled": lambda a: 2 * a, "back": lambda e: e / 3}, tmp_path) == [*"xabcdefy"]


def test_one_fault(tmp_path: Path) -> None:
    assert kept({"joined": np.sin}, tmp_path) == [*"xabcdefy"]


def test_what_a_softmax_forgives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An offset of each row changes nothing behind it; behind other operators it would."""
    monkeypatch.setitem(FUNCTIONS, "Softmax", lambda x: softmax(x, axis=-1))
    changes = {"back": lambda e: e + np.float32(3)}
    assert kept(changes, tmp_path, last="Softmax") == ["x", "a", "b", "c", "d", "e", "y"]
    assert kept(changes, tmp_path) == [*"xabcdefy"]


def test_before_a_wrong_pair_the_nearest_wrong_ones_may_be_taken_back() -> None:
    chain = {two: [one] for one, two in itertools.pairwise("abcdefgh")}
    assert choices("h", chain, "aceh") == ["abcdefg", "cdefg", "efg"]
    assert choices("h", chain, "abcdfh") == ["bcdefg", "cdefg", "defg", "fg"], "four at most"
    assert choices("h", chain, "h") == []
    assert choices("c", chain, "ceg") == [], "none behind it"


def test_of_several_branches_each_alone_and_both_may_be_taken_back() -> None:
    branches = {"b": ["a"], "c": ["a"], "d": ["b", "c"]}
    assert choices("d", branches, "bcd") == ["b", "bc", "c"]
    assert choices("d", branches, "ad") == ["abc"]


def test_wrong_ones_in_a_row_may_be_taken_back_together() -> None:
    """However many there are, and wherever other ones are nearer: a normalization written otherwise."""
    chain = {two: [one] for one, two in itertools.pairwise("bcdefg")} | {"g": ["f", "a"]}
    assert "abcdef" in choices("g", chain, "abcdefg")
    nearer = {"b": ["z"], "c": ["b"], "d": ["c", "x"], "x": ["w", "v"]}
    assert "bc" in choices("d", nearer, "bcdwv")


def choices(end: str, feeding: Mapping[str, Sequence[str]], wrong: str) -> list[str]:
    found = _choices(end, feeding, set(wrong), "abcdefgh")
    assert [name for name, _ in found] == [end] * len(found)
    assert [len(between) for _, between in found] == sorted(len(between) for _, between in found)
    return sorted("".join(sorted(between)) for _, between in found)
