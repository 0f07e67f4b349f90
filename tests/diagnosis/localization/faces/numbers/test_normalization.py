"""Normalizations that were folded with another epsilon, or with a deviation for a variance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_networks
import pytest

from conrepair.diagnosis.localization.faces.numbers.normalization import explain_folding, lacks_normalization
from conrepair.diagnosis.localization.faces.numbers.parameters import compare_parameters
from conrepair.diagnosis.localization.faces.region import Side, side
from conrepair.diagnosis.localization.faces.steps.readings import fused, normalized
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph

Array = np.ndarray
Factor = Callable[[Array, Array], Array]

SCALE, SHIFT, MEAN = (onnx_networks.drawn(4, seed=seed) + 1 for seed in (1, 2, 3))
VARIANCE = np.abs(onnx_networks.drawn(4, seed=4)) * 0.02 + 0.001  # so small that epsilon matters


def only_step(
    lines: str, weights: dict[str, Array], folder: Path, name: str, read: Callable[[Side], list[Step]] = fused
) -> Step:
    text = f"small (float[2, 4, 4, 4] x) => (float[2, a, b, c] y) {{ {lines} }}"
    model = onnx_networks.model_of("onnx", onnx_networks.written(folder / f"{name}.onnx", text, weights))
    feeds = {"x": onnx_networks.drawn(2, 4, 4, 4)}
    graph = onnx_networks.open_network(model, onnx_networks.specs(model, feeds)).graph
    [step] = read(side(graph, {"x"}, "y"))
    return step


def both(factor: Factor, folder: Path, epsilon: float = 1e-5) -> tuple[Step, Step]:
    """Conv and BatchNormalization, and the Conv that a converter made of both."""
    weight = onnx_networks.drawn(4, 4, 3, 3)
    lines = (
        f"[conv] h = Conv (x, w)\n [norm] y = BatchNormalization <epsilon = {epsilon}> (h, scale, shift, mean, var)"
    )
    named = {"w": weight, "scale": SCALE, "shift": SHIFT, "mean": MEAN, "var": VARIANCE}
    factors = factor(SCALE, VARIANCE)
    folded = {"w": (weight * factors[:, None, None, None]), "b": SHIFT - MEAN * factors}
    folded = {name: array.astype(np.float32) for name, array in folded.items()}
    return only_step(lines, named, folder, "ours"), only_step("y = Conv (x, w, b)", folded, folder, "theirs")


@pytest.mark.parametrize(("right", "wrong"), [(1e-5, 1e-3), (1e-3, 1e-5), (1e-3, 2e-3)])
def test_another_epsilon(right: float, wrong: float, tmp_path: Path) -> None:
    ours, theirs = both(lambda scale, variance: scale / np.sqrt(variance + wrong), tmp_path, right)
    found = explain_folding(ours, theirs, "weight")
    rule = f"epsilon of BatchNormalization is {wrong:.3g}, in the original {right:g}"
    assert found == (Kind.HYPERPARAMETERS, rule.replace("BatchNormalization", "`norm`"), rule)
    assert explain_folding(ours, theirs, "bias") == found


def test_another_epsilon_beside_variances_that_hide_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of numbers in float32, what's left behind a large variance is rounding."""
    monkeypatch.setitem(globals(), "VARIANCE", np.array([500, 1e-4, 0.3, 40], np.float32))
    ours, theirs = both(lambda scale, variance: scale / np.sqrt(variance + 1e-3), tmp_path)
    found = explain_folding(ours, theirs, "weight")
    assert found is not None
    assert found[2] == "epsilon of BatchNormalization is 0.001, in the original 1e-05"


def test_variances_of_one_are_not_taken_for_deviations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only the bias is wrong, weights say nothing of how it was folded."""
    monkeypatch.setitem(globals(), "VARIANCE", np.ones(4, np.float32))
    ours, theirs = both(lambda scale, variance: scale / np.sqrt(variance + 1e-5), tmp_path)
    assert explain_folding(ours, theirs, "bias") is None


@pytest.mark.parametrize("product_first", [True, False])
@pytest.mark.parametrize("wrong", [1e-3, 1e-5])
def test_a_product_and_a_sum_stand_for_a_normalization(wrong: float, product_first: bool, tmp_path: Path) -> None:
    factor = SCALE / np.sqrt(VARIANCE + wrong)
    offset = SHIFT - MEAN * factor
    named = {"scale": SCALE, "shift": SHIFT, "mean": MEAN, "var": VARIANCE}
    pieces = {"f": factor, "o": offset if product_first else offset / factor}
    pieces = {name: array.astype(np.float32)[:, None, None] for name, array in pieces.items()}
    lines = "h = Mul (x, f) y = Add (h, o)" if product_first else "h = Add (x, o) y = Mul (h, f)"
    ours = only_step(
        "[norm] y = BatchNormalization (x, scale, shift, mean, var)", named, tmp_path, "ours", normalized
    )
    theirs = only_step(lines, pieces, tmp_path, "theirs", normalized)
    found = explain_folding(ours, theirs, "factor")
    if wrong == 1e-5:
        assert found is None
        for role in ("factor", "offset"):
            assert compare_parameters(ours.parameters[role], theirs.parameters[role]) is None
    else:
        assert found is not None
        assert found[1] == "epsilon of `norm` is 0.001, in the original 1e-05"


def test_a_product_and_a_sum_along_other_axes_are_two_steps(tmp_path: Path) -> None:
    pieces = {"f": SCALE[:, None, None], "o": SHIFT[:, None]}
    with pytest.raises(ValueError, match="too many values"):
        only_step("h = Mul (x, f) y = Add (h, o)", pieces, tmp_path, "theirs", normalized)


def test_a_deviation_for_a_variance(tmp_path: Path) -> None:
    """What was folded divides by the variance itself."""
    ours, theirs = both(lambda scale, variance: scale / (variance + 1e-5), tmp_path)
    found = explain_folding(ours, theirs, "weight")
    assert found is not None
    assert found[:2] == (Kind.PARAMETERS, "the variance of `norm` is used as a standard deviation")


@pytest.mark.parametrize(
    "factor",
    [
        lambda scale, variance: 2 * scale / np.sqrt(variance + 1e-5),
        lambda scale, variance: scale,
        lambda scale, variance: -scale / np.sqrt(variance + 1e-3),
        lambda scale, variance: scale / np.sqrt(variance[::-1] + 1e-5),
    ],
)
def test_what_a_normalization_does_not_explain(factor: Factor, tmp_path: Path) -> None:
    ours, theirs = both(factor, tmp_path)
    assert explain_folding(ours, theirs, "weight") is None


def test_weights_that_are_right_need_no_explanation(tmp_path: Path) -> None:
    ours, theirs = both(lambda scale, variance: scale / np.sqrt(variance + 1e-5), tmp_path)
    assert explain_folding(ours, theirs, "weight") is None


def test_a_normalization_is_missing_where_others_have_one(tmp_path: Path) -> None:
    lines = (
        "[c0] a = Conv (x, w0) [n0] b = BatchNormalization (a, s, t, m, v) [r0] c = Relu (b) [c1] d = Conv (c, w1) {}"
    )
    lines += " [r1] y = Relu ({})"
    normal = {"s": SCALE, "t": SHIFT, "m": MEAN, "v": VARIANCE}
    weights = {f"w{place}": onnx_networks.drawn(4, 4, 3, 3, seed=10 + place) for place in (0, 1)}
    factors = (SCALE / np.sqrt(VARIANCE + 1e-5)).astype(np.float32)

    def step(last: str, read: str, given: dict[str, Array], name: str) -> tuple[Step, LayerGraph]:
        text = f"small (float[2, 4, 8, 8] x) => (float[2, a, b, c] y) {{ {lines.format(last, read)} }}"
        path = onnx_networks.written(tmp_path / f"{name}.onnx", text, given)
        model = onnx_networks.model_of("onnx", path)
        graph = onnx_networks.open_network(
            model, onnx_networks.specs(model, {"x": onnx_networks.drawn(2, 4, 8, 8)})
        ).graph
        return fused(side(graph, {"c"}, "y"))[0], graph

    folded = {**normal, **weights, "w1": weights["w1"] * factors[:, None, None, None]}
    ours, _ = step("", "d", folded, "ours")
    theirs, graph = step("", "d", {**normal, **weights}, "theirs")
    assert lacks_normalization(ours, theirs, graph)
    assert not lacks_normalization(theirs, theirs, graph)
    scaled, graph = step("", "d", {**folded, "w1": folded["w1"] * np.float32(2)}, "scaled")
    assert not lacks_normalization(ours, scaled, graph)
    norm = "[n1] e = BatchNormalization (d, s, t, m, v)"
    complete, graph = step(norm, "e", {**normal, **weights}, "complete")
    assert not lacks_normalization(ours, complete, graph)
