"""Ranking of layers, against scipy's test of one element at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.stats

from conrepair.diagnosis.localization.ranking.suspicion_draws import Draws, SuspicionSettings, draw_inputs
from conrepair.diagnosis.localization.ranking.suspiciousness import (
    LayerDifferences,
    classic_layer_analysis,
    elements_that_differ,
    rank_layers,
)

SETTINGS = SuspicionSettings()


def by_scipy(similar: np.ndarray, dissimilar: np.ndarray, significance: float) -> tuple[int, int]:
    """How many elements are significant, after the correction and before."""
    p = []
    for index in range(similar.shape[1]):
        one, two = similar[:, index].astype(np.float64), dissimilar[:, index].astype(np.float64)
        same = len(np.unique(np.concatenate([one, two]))) == 1
        p.append(np.nan if same else scipy.stats.kruskal(one, two).pvalue)
    known = np.array(p)[~np.isnan(p)]
    corrected = scipy.stats.false_discovery_control(known)
    return int((corrected <= significance).sum()), int((known < significance).sum())


@pytest.mark.parametrize(("rectified", "moved"), [(False, 0), (False, 60), (True, 60), (True, 200)])
def test_counts_are_scipys(rectified: bool, moved: int) -> None:
    generator = np.random.default_rng(moved)
    similar, dissimilar = (generator.normal(size=(15, 200)).astype(np.float32) for _ in range(2))
    dissimilar[:, :moved] += 1.5
    if rectified:
        similar, dissimilar = np.maximum(similar, 0), np.maximum(dissimilar, 0)
        similar[:, 190:] = dissimilar[:, 190:] = 0  # dead: p is NaN
    found = elements_that_differ(similar, dissimilar, SETTINGS)
    assert found.constant == 0
    assert (found.significant, found.uncorrected) == by_scipy(similar, dissimilar, 0.05)
    assert found.elements == 200


def test_constant_where_the_models_agree() -> None:
    similar, dissimilar = np.zeros((15, 3)), np.zeros((15, 3))
    dissimilar[4, 0] = 1e-3
    found = elements_that_differ(similar, dissimilar, SETTINGS)
    assert (found.significant, found.constant, found.uncorrected) == (1, 1, 1)
    # The other way round it's the test's to say, as in ConRepAIr.
    assert elements_that_differ(dissimilar, similar, SETTINGS).significant == 0


def test_nan_is_a_difference() -> None:
    similar, dissimilar = np.random.default_rng(0).normal(size=(2, 15, 4))
    dissimilar[:, 1] = np.nan
    assert elements_that_differ(similar, dissimilar, SETTINGS).significant == 1


def test_nothing_is_significant_in_noise() -> None:
    """Uncorrected, about five of a hundred elements are."""
    generator = np.random.default_rng(0)
    similar, dissimilar = (generator.normal(size=(15, 20_000)).astype(np.float32) for _ in range(2))
    found = elements_that_differ(similar, dissimilar, SETTINGS)
    assert found.significant <= 2
    assert 0.03 < found.uncorrected / found.elements < 0.07


def layers(planted: dict[str, float], disagree: np.ndarray, draws: Draws) -> Iterator[LayerDifferences]:
    """Noise on what's drawn; in planted layers, half of the elements are moved on inputs with different answers."""
    generator = np.random.default_rng(0)
    for name in ("one", "two", "three", "four"):
        differences = generator.normal(size=(len(disagree), 5, 8, 8)).astype(np.float32)
        differences[disagree, :, :4] += planted.get(name, 0.0)
        yield LayerDifferences(f"s/{name}", f"t/{name}", differences[list(draws.inputs)], (5, 8, 8), (5, 8, 8), 0.25)


def test_planted_layer_is_first() -> None:
    disagree = np.arange(80) % 2 == 0
    draws = draw_inputs(disagree, SETTINGS)
    ranked = rank_layers(layers({"three": 3.0, "four": 1.5}, disagree, draws), draws, SETTINGS)
    assert [layer.source_layer for layer in ranked.layers[:2]] == ["s/three", "s/four"]
    assert ranked.layers[0].ranks == (1.0, 1.0, 1.0)
    assert ranked.layers[0].share == pytest.approx(0.5, abs=0.05)
    assert ranked.layers[-1].share < 0.01
    assert (ranked.similar, ranked.dissimilar, ranked.shortage) == (40, 40, None)


def test_draws() -> None:
    disagree = np.arange(100) < 30
    draws = draw_inputs(disagree, SuspicionSettings(similar_sample=20, dissimilar_sample=10, repetitions=4, seed=7))
    assert len(draws.repetitions) == 4
    for draw in draws.repetitions:
        assert len(set(draw.similar)) == 20
        assert len(set(draw.dissimilar)) == 10
        assert all(index >= 30 for index in draw.similar)
        assert all(index < 30 for index in draw.dissimilar)
    assert len({draw.similar for draw in draws.repetitions}) == 4
    again = draw_inputs(disagree, SuspicionSettings(similar_sample=20, dissimilar_sample=10, repetitions=4, seed=7))
    assert again == draws


def test_only_drawn_inputs_need_be_captured() -> None:
    disagree = np.arange(200) % 3 == 0
    draws = draw_inputs(disagree, SETTINGS)
    assert len(draws.inputs) < 100
    few = rank_layers(layers({"two": 2.0}, disagree, draws), draws, SETTINGS)
    values = np.random.default_rng(0).normal(size=(200, 5, 8, 8)).astype(np.float32)  # of all inputs
    groups = [[values[list(rows)] for rows in (draw.similar, draw.dissimilar)] for draw in draws.repetitions]
    first = next(layer for layer in few.layers if layer.source_layer == "s/one")
    assert list(first.tests) == [elements_that_differ(*both, SETTINGS) for both in groups]


def test_too_few_inputs_are_said() -> None:
    disagree = np.arange(30) < 4

    def unread() -> Iterator[LayerDifferences]:
        pytest.fail("layers need not be captured")
        yield

    ranked = rank_layers(unread(), draw_inputs(disagree, SETTINGS), SETTINGS)
    assert not ranked.layers
    assert ranked.shortage is not None
    assert "disagree on 4 inputs, and 15 such inputs are needed" in ranked.shortage
    assert "agree on 26" not in ranked.shortage


def test_layers_of_other_shapes_are_listed() -> None:
    disagree = np.arange(60) % 2 == 0
    odd = LayerDifferences("s/odd", "t/odd", None, (5, 8, 8), (5, 7, 8))
    draws = draw_inputs(disagree, SETTINGS)
    ranked = rank_layers([odd, *layers({}, disagree, draws)], draws, SETTINGS)
    assert len(ranked.layers) == 4
    assert ranked.incomparable[0].reason == "the shape is [5, 7, 8], in the original [5, 8, 8]"


def test_classic_file_is_json() -> None:
    disagree = np.arange(60) % 2 == 0
    odd = LayerDifferences("s/odd", "t/odd", None, (1,), (2,), float("nan"))
    draws = draw_inputs(disagree, SETTINGS)
    ranked = rank_layers([odd, *layers({"two": 3.0}, disagree, draws)], draws, SETTINGS)
    entries = json.loads(json.dumps(classic_layer_analysis(ranked), allow_nan=False))
    assert [entry["rank"] for entry in entries] == [1, 2, 3, 4, None]
    first, last = entries[0], entries[-1]
    assert (first["source_layer"], first["params_mean_diff"]) == ("s/two", 0.25)
    assert first["ranks"] == {"1": 1.0, "2": 1.0, "3": 1.0}
    assert first["elems_percentage"] >= first["elems_percentage_corrected"] > 45
    assert last["source_layer"] == "s/odd"
    assert last["elems_percentage"] is last["params_mean_diff"] is None
    assert "the shape is" in last["reason"]


@pytest.mark.parametrize("wrong", [{"similar_sample": 1}, {"repetitions": 0}, {"significance": 0.0}])
def test_settings_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="not"):
        SuspicionSettings(**wrong)  # type: ignore[arg-type]
