"""Large networks are looked at in windows: small ones, looked at so, give the same pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rewritten_networks as networks
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import SHAPE, graphs
from rewritten_networks import damaged, feeds_of, opened, renamed

from conrepair.graph.layer_graph import LayerGraph
from conrepair.localization import windows as windows_module
from conrepair.localization.activations import Activations
from conrepair.localization.alignment import align, comparable
from conrepair.localization.equals import ComparedNetworks
from conrepair.localization.matching import EQUAL, EXACT, LEAST, match
from conrepair.localization.neighbourhood import Neighbourhood
from conrepair.localization.samples import Matrix, Samples, compare
from conrepair.localization.similarity import Similarity
from conrepair.localization.structure import Structure, agreement
from conrepair.localization.windows import windows

FAULTS = {
    "residual blocks": [[], ["one1"], ["one_b2", "two0", "dense"]],
    "encoder blocks": [[], ["wq0"], ["wu1", "wv2"]],
    "branches": [[], ["w1"], ["w0", "w1", "w2", "w3"]],
}
CASES = [(name, weights) for name, cases in FAULTS.items() for weights in cases]


def made(name: str, weights: list[str], folder: Path) -> tuple[Activations, Activations, dict[str, str]]:
    """A network, and the same with other names, in another order, and with wrong weights."""
    path = networks.WRITERS[name](folder / "source.onnx")
    wrong = damaged(path, folder / "damaged.onnx", weights) if weights else path
    names = renamed(wrong, folder / "target.onnx")
    feeds = feeds_of(name)
    sides = [Activations(opened(item, feeds), feeds, folder / item.stem) for item in (path, folder / "target.onnx")]
    return sides[0], sides[1], names


@pytest.mark.parametrize("most", [8, 24])
@pytest.mark.parametrize(("name", "weights"), CASES)
def test_pairs_in_small_windows_are_right(
    name: str, weights: list[str], most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows_module, "_AT_ONCE", 1)
    monkeypatch.setattr(windows_module, "_MOST", most)
    source, target, names = made(name, weights, tmp_path)
    alignment = align(source, target, tmp_path)
    wrong = [pair for pair in alignment.pairs if pair.target != names.get(pair.source, pair.source)]
    assert not wrong
    assert len(alignment.pairs) >= 0.9 * len(alignment.sources)


def all_at_once(nodes: tuple[Neighbourhood, Neighbourhood], samples: tuple[Samples, Samples]) -> dict[str, str]:
    """Pairs by one assignment of all tensors, from matrices of all pairs."""
    structure = Structure(*nodes)
    down, across = np.ix_(*(range(len(side.names)) for side in nodes))
    dense = compare(samples[0], down[:, 0], samples[1], across[0], hidden=True)
    ends = nodes[0].results[down], nodes[1].results[across]
    alike = (dense.error < EQUAL) & (dense.error <= EXACT.closer * np.maximum(dense.error.min(axis=0), 1e-6))
    possible = (dense.layout >= 0) & ((ends[0] == ends[1]) | (dense.error < EQUAL))
    equal = possible & alike
    static = structure.surface(down, across)
    if not equal.any(axis=0)[nodes[1].results].all():
        static = 0.5 * static + 0.5 * structure.weights(down, across)
    values = np.where(equal, 1.0, np.clip(dense.correlation, 0, 1) ** 4)
    local = np.where(possible, np.maximum(static, 0.5 * values + 0.5 * static), 0.0)
    score = local
    for _ in range(3):
        score = np.where(possible, 0.6 * local + 0.4 * around(score, nodes), 0.0)
    wish = np.where(possible, score + 3.0 * equal + (ends[0] & ends[1]), -1e3)
    chosen = zip(*scipy.optimize.linear_sum_assignment(wish, maximize=True), strict=True)
    return {
        nodes[0].names[row]: nodes[1].names[column]
        for row, column in chosen
        if equal[row, column] or (possible[row, column] and score[row, column] >= LEAST)
    }


def around(score: Matrix, nodes: tuple[Neighbourhood, Neighbourhood]) -> Matrix:
    return (
        agreement(score, *(side.before for side in nodes)) + agreement(score, *(side.behind for side in nodes))
    ) / 2


@pytest.mark.parametrize(("name", "weights"), CASES)
def test_the_same_pairs_as_by_one_assignment(name: str, weights: list[str], tmp_path: Path) -> None:
    source, target, _ = made(name, weights, tmp_path)
    nodes, samples = [], []
    for side in (source, target):
        names = comparable(side.network.graph)
        side.compute(names)
        nodes.append(Neighbourhood(side.network.graph, names, side.shapes()))
        samples.append(Samples(names, side.__getitem__))
    found = match(ComparedNetworks(*nodes, Similarity(*samples, EQUAL), Structure(*nodes)))
    expected = all_at_once((nodes[0], nodes[1]), (samples[0], samples[1]))
    assert {pair.source: pair.target for pair in found} == expected


@settings(deadline=None)
@given(graphs(), st.data())
def test_every_tensor_is_in_one_window_with_its_partner(graph: LayerGraph, data: st.DataObject) -> None:
    names = list(graph.order)
    side = Neighbourhood(graph, names, dict.fromkeys(names, SHAPE))
    known = sorted(data.draw(st.sets(st.integers(0, len(names) - 1))))
    rest = np.array([place for place in range(len(names)) if place not in known], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows_module, "_AT_ONCE", 1)
        patch.setattr(windows_module, "_MOST", 3)
        found = list(windows(side, side, [(place, place) for place in known], (rest, rest)))
    assert sorted(place for rows, _ in found for place in rows.tolist()) == rest.tolist()
    for rows, columns in found:
        assert len(rows) <= 3
        assert set(rows.tolist()) <= set(columns.tolist())
