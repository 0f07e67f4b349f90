"""Guesses that make wrong what reads them are moved, or dropped; those that come out right are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from random_graphs import SHAPE, Computed, drawn_feeds, graph_of

from conrepair.localize.activations import Activations
from conrepair.localize.isolated import Isolated
from conrepair.localize.layout import layouts
from conrepair.localize.matching import Pair
from conrepair.localize.neighbourhood import Neighbourhood
from conrepair.localize.settling import settle

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
    assert found["t1"].confidence < 1.0


def test_a_guess_that_fits_nowhere_is_dropped(tmp_path: Path) -> None:
    """Without it what reads it is right: it comes from the cut behind the fault."""
    graph_pairs = settled({"t3": "t1"}, "x t0 t2 t4", tmp_path)
    assert graph_pairs.get("t3") is None or graph_pairs["t3"].source == "t3"
    assert {name: pair.source for name, pair in graph_pairs.items() if name != "t3"} == {
        name: name for name in ("x", "t0", "t2", "t4")
    }


@pytest.mark.parametrize("right", [True, False])
def test_a_guess_whose_values_come_out_right_is_known(right: bool, tmp_path: Path) -> None:
    found = settled({"t1": "t1", "t2": "t2"} if right else {"t1": "t1"}, "x t0", tmp_path)
    assert found["t1"].confidence < 1.0
    if right:
        assert found["t2"].confidence == 1.0
        assert "from the cut before" in found["t2"].evidence
