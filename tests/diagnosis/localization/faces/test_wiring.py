"""Branches that are lost, added, or read in another order: what is said of a graph, and of its inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rewritten_networks as networks
from localizing import localize_networks
from random_graphs import graph_of

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.faces.region import region_of
from conrepair.diagnosis.localization.faces.wiring import wiring_findings
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.ground.graph.kinds import Kind

HEAD = "small (float[batch, 6] x, float[batch, 6] z) => (float[batch, a] y)"
SOURCE = """
    [left] l = MatMul (x, w)
    [right] r = MatMul (z, v)
    [bent] b = Tanh (r)
    [join] j = {}
    [last] y = MatMul (j, u)
"""


def fault_of(ours: str, theirs: str, folder: Path) -> LocatedFault:
    weights = {"w": networks.drawn(6, 6, seed=1), "v": networks.drawn(6, 6, seed=2)}
    feeds = {"x": networks.drawn(4, 6, seed=4, scale=1), "z": networks.drawn(4, 6, seed=5, scale=1)}
    opened = []
    for name, lines in (("ours", ours), ("theirs", theirs)):
        rows = 12 if "Concat" in lines else 6
        given = {**weights, "u": networks.drawn(rows, 3, seed=3)}
        opened.append(
            networks.opened(networks.written(folder / f"{name}.onnx", f"{HEAD} {{ {lines} }}", given), feeds)
        )
    [fault] = localize_networks(*opened, [(feeds, feeds)], folder, Options()).result.faults
    return fault


CASES = [
    ("Sub (l, b)", "Sub (b, l)", Kind.GRAPH, "the operands of `join` are in another order"),
    ("Div (l, b)", "Div (b, l)", Kind.GRAPH, "the operands of `join` are in another order"),
    (
        "Concat <axis = 1> (l, b)", "Concat <axis = 1> (b, l)", Kind.STRUCTURE,
        "the operands of `join` are in another order",
    ),
    ("Add (l, b)", "Add (l, r)", Kind.GRAPH, "`join` reads ['r'] in the converted model, ['b'] in the original"),
    ("Sum (l, b, r)", "Sum (l, r)", Kind.GRAPH, ("['b'] isn't read by `join` in the converted model: "
                                                 "a branch is missing")),
    ("Add (l, b)", "Identity (l)", Kind.GRAPH, "Add `join` of the original is missing in the converted model"),
    ("Sum (l, b)", "Sum (l, b, r)", Kind.GRAPH, "r"),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs", "kind", "words"), CASES)
def test_what_is_read(ours: str, theirs: str, kind: Kind, words: str, tmp_path: Path) -> None:
    fault = fault_of(SOURCE.format(ours), SOURCE.format(theirs), tmp_path)
    assert fault.kind is kind, fault
    assert "join" in {*fault.source_layers[:1], *fault.target_layers[:1]}
    assert words in " ".join(fault.evidence), fault.evidence


@pytest.mark.parametrize("operator", ["Add", "Mul", "Max"])
def test_an_order_that_says_nothing(operator: str, tmp_path: Path) -> None:
    """Another fault at the same place isn't explained by it."""
    theirs = SOURCE.format(f"{operator} (b, l)").replace("[bent] b = Tanh (r)", "[bent] b = Sigmoid (r)")
    fault = fault_of(SOURCE.format(f"{operator} (l, b)"), theirs, tmp_path)
    assert (fault.kind, fault.target_layers[0]) == (Kind.GRAPH, "bent")
    assert "another order" not in " ".join(fault.evidence)


def test_inputs_that_are_exchanged(tmp_path: Path) -> None:
    theirs = SOURCE.replace("MatMul (x, w)", "MatMul (z, w)").replace("MatMul (z, v)", "MatMul (x, v)")
    fault = fault_of(SOURCE.format("Add (l, b)"), theirs.format("Add (l, b)"), tmp_path)
    assert fault.kind is Kind.INPUT
    assert "inputs are exchanged" in fault.evidence[0]
    assert {*fault.target_layers} >= {"left", "right"}


def test_an_input_of_one_layer_that_is_another() -> None:
    """Where only one of two readers takes the wrong one, both inputs aren't simply exchanged."""
    sides = [
        graph_of(["x", "z"], [("join", "Sin", [name, "x"], ["j"]), ("last", "Tanh", ["j"], ["y"])], ["y"])
        for name in ("z", "x")
    ]
    layout = layouts((2, 3, 4), (2, 3, 4))[0]
    pairs = [Pair(name, name, layout, 1.0, "") for name in ("x", "z", "j")]
    array = np.ones((2, 3, 4), np.float32)
    region = region_of((sides[0], sides[1]), pairs, pairs[2], array, 2 * array, lambda _: array, {})
    [finding] = wiring_findings(region)
    assert finding.kind is Kind.GRAPH
    assert "['z'] isn't read by `join` in the converted model" in finding.words


BRANCH = """
    [first] l = MatMul (x, w)
    [start] s = Tanh (l)
    {}
    [end] e = Tanh ({})
    [last] y = MatMul (e, u)
"""
INNER = "[inner] i = MatMul (s, v) [middle] m = Relu (i)"
JOINED = "[join] j = Add (s, {})"


@pytest.mark.parametrize(
    ("ours", "theirs", "named"),
    [
        ((f"{INNER} [outer] o = MatMul (m, v) {JOINED.format('o')}", "j"), ("", "s"), [{"join", "inner", "middle"}]),
        ((f"{INNER} {JOINED.format('m')}", "j"), (INNER.split(" [middle]")[0], "i"), [{"join"}, {"middle"}]),
    ],
)
def test_a_branch_that_is_gone_with_its_layers_is_one_fault(
    ours: tuple[str, str], theirs: tuple[str, str], named: list[set[str]], tmp_path: Path
) -> None:
    """A function and a sum that are gone from around a layer that stays are two."""
    feeds = {"x": networks.drawn(4, 6, seed=4, scale=1)}
    numbers = {"w": (6, 6), "v": (6, 6), "u": (6, 3)}
    opened = []
    for name, lines in (("ours", ours), ("theirs", theirs)):
        text = f"small (float[batch, 6] x) => (float[batch, a] y) {{ {BRANCH.format(*lines)} }}"
        given = {key: networks.drawn(*shape, seed=place) for place, (key, shape) in enumerate(numbers.items())}
        used = {key: array for key, array in given.items() if f", {key})" in text}
        opened.append(networks.opened(networks.written(tmp_path / f"{name}.onnx", text, used), feeds))
    faults = localize_networks(*opened, [(feeds, feeds)], tmp_path, Options()).result.faults
    for fault, layers in zip(faults, named, strict=True):
        assert layers <= {*fault.source_layers}
        assert fault.source_layers[0] in layers
