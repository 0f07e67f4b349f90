"""A bias in its layer on one side, as an Add on the other, with and without a fault in between."""

from __future__ import annotations

from pathlib import Path

import pytest
import rewritten_networks as networks
from localizing import localize_networks

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.ground.graph.kinds import Kind

HEAD = "small (float[batch, 6] x) => (float[batch, 3] y)"
FUSED = "[first] f = Gemm (x, w, b)\n [bent] r = Relu (f)\n [last] y = Gemm (r, u, c)"
APART = (
    "[first] p = MatMul (x, w)\n {}[bias] f = Add ({}, b)\n [bent] r = Relu (f)\n [second] q = MatMul (r, u)\n"
    " [shift] y = Add (q, c)"
)


def faults_of(ours: str, theirs: str, folder: Path, bias: float = 1.0) -> tuple[LocatedFault, ...]:
    feeds = {"x": networks.drawn(4, 6, seed=5, scale=1)}
    opened = []
    for name, lines, factor in (("ours", ours, 1.0), ("theirs", theirs, bias)):
        weights = {
            "w": networks.drawn(6, 6, seed=1), "b": factor * networks.drawn(6, seed=2),
            "u": networks.drawn(6, 3, seed=3), "c": networks.drawn(3, seed=4), "small": networks.drawn(1, seed=6),
        }  # fmt: skip
        used = {
            key: array.astype("float32") for key, array in weights.items() if f"{key})" in lines or f"{key}," in lines
        }
        path = networks.written(folder / f"{name}.onnx", f"{HEAD} {{ {lines} }}", used)
        opened.append(networks.opened(path, feeds))
    return localize_networks(*opened, [(feeds, feeds)], folder, Options()).result.faults


def test_both_ways_to_write_it_are_the_same(tmp_path: Path) -> None:
    assert faults_of(FUSED, APART.format("", "p"), tmp_path) == ()


@pytest.mark.parametrize("inserted", ["[extra] e = Mul (p, small)", "[extra] e = Relu (p)"])
def test_what_lies_between_is_named_and_no_bias_is_missed(inserted: str, tmp_path: Path) -> None:
    [fault] = faults_of(FUSED, APART.format(f"{inserted}\n ", "e"), tmp_path)
    assert fault.target_layers[0] == "extra"
    assert fault.kind is Kind.GRAPH
    assert not any("bias" in words for words in fault.evidence)


def test_a_wrong_bias_is_named_where_it_is_added(tmp_path: Path) -> None:
    [fault] = faults_of(FUSED, APART.format("", "p"), tmp_path, bias=2.0)
    assert fault.kind is Kind.PARAMETERS
    assert {"first", "bias"} & set(fault.target_layers)
    assert any("scaled by 2" in words for words in fault.evidence)


def test_a_bias_that_a_layer_has_lost_is_a_parameter(tmp_path: Path) -> None:
    [fault] = faults_of(APART.format("", "p"), FUSED, tmp_path, bias=0.0)
    assert fault.kind is Kind.PARAMETERS
    assert "first" in fault.target_layers


def test_a_lost_bias_is_one_rule_whether_it_is_zero_or_missing(tmp_path: Path) -> None:
    rules = set()
    for name, target, bias in (
        ("zero", FUSED, 0.0),
        ("apart", APART.format("", "p"), 0.0),
        ("none", FUSED.replace(", b)", ")"), 1.0),
    ):
        folder = tmp_path / name
        folder.mkdir()
        [fault] = faults_of(FUSED, target, folder, bias=bias)
        rules |= {rule for rule, _ in fault.differences}
    assert rules == {"a bias is lost"}
