"""Values in another order, and what is to blame for it: a permutation, sizes, an axis between transpositions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from localizing import localize_networks
from onnx_networks import drawn, specs, written
from small_models import model_of

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.formats.networks.network import open_network
from conrepair.ground.graph.kinds import Kind

Array = np.ndarray


def faults(
    source: str, target: str, shape: tuple[int, ...], weights: dict[str, Array], folder: Path
) -> list[LocatedFault]:
    feeds = {"x": drawn(*shape, seed=7, scale=1)}
    sides = []
    for name, lines in (("source", source), ("target", target)):
        used = {key: array for key, array in weights.items() if f"{key})" in lines or f"{key}," in lines}
        sizes = ", ".join(map(str, shape))
        text = f"small (float[{sizes}] x) => (float[a, b] y) {{ {lines} }}"
        model = model_of("onnx", written(folder / f"{name}.onnx", text, used))
        sides.append(open_network(model, specs(model, feeds)))
    return list(localize_networks(*sides, [(feeds, feeds)], folder, Options()).result.faults)


TURNED = "[act] a = Tanh (x) [there] b = Transpose <perm = {there}> (a) [soft] c = Softmax <axis = -1> (b)"
TURNED += " [back] y = Transpose <perm = {back}> (c)"


def test_an_axis_between_transpositions(tmp_path: Path) -> None:
    source = "[act] a = Tanh (x) [soft] y = Softmax <axis = {}> (a)"
    target = TURNED.format(there="[1, 0]", back="[1, 0]")
    assert faults(source.format(0), target, (3, 4), {}, tmp_path) == []
    [fault] = faults(source.format(1), target, (3, 4), {}, tmp_path)
    assert (fault.kind, fault.target_layers[0]) == (Kind.HYPERPARAMETERS, "soft")
    assert fault.evidence[0] == "`soft` has axis 0 in the converted model, 1 in the original"


FLAT = "[flat] f = Reshape (b, flat) [dense] y = MatMul (f, w)"
WEIGHTS = {"flat": np.int64([2, 60]), "w": drawn(60, 5, seed=3, scale=0.3)}


@pytest.mark.parametrize("perm", ["[0, 3, 2, 1]", "[0, 1, 3, 2]", "[0, 2, 1, 3]"])
def test_a_wrong_permutation_in_front_of_a_flattening(perm: str, tmp_path: Path) -> None:
    source = f"[act] b = Tanh (x) {FLAT}"
    target = "[act] a = Tanh (x) [last] l = Transpose <perm = [0, 2, 3, 1]> (a) [turn] b = Transpose <perm = {}> (l)"
    assert faults(source, f"{target.format('[0, 3, 1, 2]')} {FLAT}", (2, 3, 4, 5), WEIGHTS, tmp_path) == []
    [fault] = faults(source, f"{target.format(perm)} {FLAT}", (2, 3, 4, 5), WEIGHTS, tmp_path)
    assert (fault.kind, fault.target_layers[0]) == (Kind.HYPERPARAMETERS, "turn")
    assert "[0, 3, 1, 2] would give the original's order" in fault.evidence[0]


def test_sizes_that_are_computed_otherwise(tmp_path: Path) -> None:
    lines = """
        [act] a = Tanh (x)
        [shape] s = Shape (a)
        [rows] r = Gather (s, zero)
        [columns] c = Gather (s, one)
        [sizes] z = Concat <axis = 0> ({})
        [reshape] b = Reshape (a, z)
        [soft] y = Softmax <axis = -1> (b)
    """
    weights = {"zero": np.int64([0]), "one": np.int64([1])}
    fault, *_ = faults(lines.format("c, r"), lines.format("r, c"), (4, 6), weights, tmp_path)
    assert (fault.kind, fault.source_layers[0], fault.target_layers[0]) == (Kind.STRUCTURE, "sizes", "sizes")
    written = "[act] a = Tanh (x) [reshape] b = Reshape (a, fixed) [soft] y = Softmax <axis = -1> (b)"
    fault, *_ = faults(lines.format("c, r"), written, (4, 6), {**weights, "fixed": np.int64([4, 6])}, tmp_path)
    assert (fault.source_layers[0], fault.target_layers[0]) == ("sizes", "reshape")


def test_a_bias_that_is_taken_away(tmp_path: Path) -> None:
    weights = {"w": drawn(4, 5, seed=1, scale=0.5), "b": drawn(5, seed=2, scale=1)}
    source = "[act] a = Tanh (x) [dense] y = Gemm (a, w, b)"
    target = "[act] a = Tanh (x) [product] p = MatMul (a, w) [bias] y = Sub (p, b)"
    [fault] = faults(source, target, (3, 4), weights, tmp_path)
    assert (fault.kind, fault.target_layers[0]) == (Kind.GRAPH, "bias")
    assert "subtracts the bias that the original adds" in fault.evidence[0]


SHUFFLED = "[first] a = Conv (x, u) [act] r = Tanh (a) [apart] v = Reshape (r, {sizes})"
SHUFFLED += " [turn] t = Transpose <perm = [0, 2, 1, 3, 4]> (v) [whole] j = Reshape (t, whole)"
SHUFFLED += " [second] c = Conv (j, k) [flat] y = Flatten (c)"


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("groups", [2, 4])
def test_a_shuffle_of_other_groups(batch: int, groups: int, tmp_path: Path) -> None:
    """Axes of the batch's size, or of the groups', may stand for one another: only what moves give tells."""
    weights = {"u": drawn(16, 3, 1, 1, seed=1, scale=1), "k": drawn(16, 16, 1, 1, seed=2, scale=1)}
    weights |= {"ours": np.int64([batch, 2, 8, 6, 6]), "whole": np.int64([batch, 16, 6, 6])}
    weights["theirs"] = np.int64([batch, 16 // groups, groups, 6, 6])
    ours, theirs = (SHUFFLED.format(sizes=name) for name in ("ours", "theirs"))
    [fault] = faults(ours, theirs, (batch, 3, 6, 6), weights, tmp_path)
    assert (fault.kind, fault.target_layers[0]) == (Kind.HYPERPARAMETERS, "apart")
    assert f"has shape [{batch}, {16 // groups}, {groups}, 6, 6] in the converted model" in fault.evidence[0]
