"""Normalizations in pieces, as libraries write them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from onnx_networks import written
from small_models import model_of

from conrepair.diagnosis.localization.align.neighbourhood import Neighbourhood
from conrepair.diagnosis.localization.align.normalizations import normalizations
from conrepair.diagnosis.localization.align.refinement import refined
from conrepair.formats.onnx.read.network import open_network
from conrepair.ground.graph.layer_graph import LayerGraph

WIDTH = 8
CONSTANTS = {
    "small": np.float32(1e-5),
    "two": np.float32(2),
    "gamma": np.linspace(0.5, 2, WIDTH, dtype=np.float32),
    "beta": np.linspace(-1, 1, WIDTH, dtype=np.float32),
    "weight": np.eye(WIDTH, dtype=np.float32),
}
PLAIN = """
    m = ReduceMean <axes = [-1]> (s)
    d = Sub (s, m)
    q = Pow (d, two)
    v = ReduceMean <axes = [-1]> (q)
    e = Add (v, small)
    r = Sqrt (e)
    n = Div (d, r)
    g = Mul (n, gamma)
    o = Add (g, beta)
"""
FOLDED = """
    m = ReduceMean <axes = [-1]> (s)
    d = Sub (s, m)
    q = Mul (d, d)
    v = ReduceMean <axes = [-1]> (q)
    e = Add (v, small)
    t = Sqrt (e)
    r = Reciprocal (t)
    f = Mul (r, gamma)
    a = Mul (s, f)
    k = Neg (m)
    b = Mul (k, f)
    o = Add (a, b)
"""
OF_SQUARES = """
    q = Mul (s, s)
    v = ReduceMean <axes = [-1]> (q)
    e = Add (v, small)
    r = Sqrt (e)
    n = Div (s, r)
    o = Mul (n, gamma)
"""
NONE = """
    q = Mul (s, s)
    v = ReduceMean <axes = [-1], keepdims = 0> (q)
    r = Sqrt (v)
    o = Concat <axis = 0> (s, q)
"""


def graph_of(folder: Path, pieces: str) -> LayerGraph:
    """Behind a sum and in front of another one, which reads the sum too."""
    text = f"""net (float[4, {WIDTH}] x) => (float[u, {WIDTH}] y) {{
        l = MatMul (x, weight)
        s = Add (x, l)
        {pieces}
        w = MatMul (o, weight)
        y = Add (w, o)
    }}"""
    used = {name: array for name, array in CONSTANTS.items() if re.search(rf"[ (]{name}\b", text)}
    return open_network(model_of("onnx", written(folder / "net.onnx", text, used)), []).graph


@pytest.mark.parametrize(("pieces", "count"), [(PLAIN, 9), (FOLDED, 12), (OF_SQUARES, 5), (NONE, 0)])
def test_pieces_of_one_normalization(pieces: str, count: int, tmp_path: Path) -> None:
    found = normalizations(graph_of(tmp_path, pieces))
    assert len(found) == count
    assert set(found.values()) <= {"o"}
    assert "s" not in found
    assert "w" not in found


def test_two_of_them(tmp_path: Path) -> None:
    """One behind the other."""
    renamed = PLAIN.replace(" s,", " o,").replace("(s", "(o")
    for name in "mdqverng":
        renamed = renamed.replace(f"    {name} =", f"    {name}2 =")
        renamed = renamed.replace(f"({name},", f"({name}2,").replace(f"({name})", f"({name}2)")
        renamed = renamed.replace(f", {name})", f", {name}2)")
    found = normalizations(graph_of(tmp_path, PLAIN + renamed.replace("    o = Add", "    z = Add")))
    assert set(found.values()) == {"o", "z"}
    assert sum(end == "z" for end in found.values()) == 9


def test_the_result_is_no_sum_of_two_tensors(tmp_path: Path) -> None:
    """A lost shortcut leaves the sum at the end of a normalization as the only one there is."""
    (tmp_path / "one").mkdir()
    graph = graph_of(tmp_path, FOLDED)
    whole = graph_of(tmp_path / "one", "o = LayerNormalization <axis = -1> (s, gamma, beta)")
    sides = []
    for item in (whole, graph):
        names = [name for node in item.nodes for name in node.outputs]
        sides.append(Neighbourhood(item, names, dict.fromkeys(names, (4, WIDTH))))
    one, two = sides
    pairs = [(one.names[row], two.names[column]) for (row, column), _ in refined(one, two, {}, lambda *_: True)]
    assert ("o", "o") in pairs
    assert ("s", "o") not in pairs
