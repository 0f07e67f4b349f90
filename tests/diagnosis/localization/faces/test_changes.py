"""One piece of a composite is wrong, and nothing like it is right elsewhere: computing the pieces tells which."""

from __future__ import annotations

from pathlib import Path

import pytest
from localizing import localize_networks
from onnx_networks import drawn, specs, written
from small_models import model_of

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.formats.networks.network import open_network
from conrepair.ground.graph.kinds import Kind

WIDTH = 8
PIECES = """
    [dense] d = MatMul (x, w)
    [mean] m = ReduceMean <axes = [-1]> (d)
    [centre] c = Sub (d, m)
    [square] q = Mul (c, c)
    [variance] v = ReduceMean <axes = [-1]> (q)
    [add] a = Add (v, epsilon)
    [root] r = Sqrt (a)
    [divide] e = Div (c, r)
    [scale] f = Mul (e, g)
    [shift] t = Add (f, h)
    [last] y = Softplus (t)
"""
WHOLE = "[dense] d = MatMul (x, w) [norm] t = LayerNormalization <epsilon = 1e-5> (d, g, h) [last] y = Softplus (t)"


def faults(pieces: str, folder: Path) -> list[LocatedFault]:
    weights = {"w": drawn(WIDTH, WIDTH, seed=1), "g": drawn(WIDTH, seed=2, scale=0.2) + 1, "h": drawn(WIDTH, seed=3)}
    weights |= {name: drawn(seed=0, scale=0) + number for name, number in (("epsilon", 1e-5), ("other", 0.5))}
    feeds = {"x": drawn(4, 3, WIDTH, seed=9, scale=1)}
    sides = []
    for name, lines in (("source", WHOLE), ("target", pieces)):
        used = {key: array for key, array in weights.items() if f"{key})" in lines or f"{key}," in lines}
        text = f"small (float[4, 3, {WIDTH}] x) => (float[4, 3, a] y) {{ {lines} }}"
        model = model_of("onnx", written(folder / f"{name}.onnx", text, used))
        sides.append(open_network(model, specs(model, feeds)))
    return list(localize_networks(*sides, [(feeds, feeds)], folder, Options()).result.faults)


def test_the_right_pieces_are_right(tmp_path: Path) -> None:
    assert faults(PIECES, tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "layer", "kind"),
    [
        ("Mul (e, g)", "Add (e, g)", "scale", Kind.GRAPH),
        ("Add (f, h)", "Sub (f, h)", "shift", Kind.GRAPH),
        ("Div (c, r)", "Div (r, c)", "divide", Kind.GRAPH),
        ("Sqrt (a)", "Abs (a)", "root", Kind.GRAPH),
        ("[variance] v = ReduceMean", "[variance] v = ReduceMax", "variance", Kind.GRAPH),
        ("Add (v, epsilon)", "Add (v, other)", "add", Kind.HYPERPARAMETERS),
        ("[root] r = Sqrt (a)", "[extra] z = Sqrt (a) [root] r = Sqrt (z)", "extra", Kind.GRAPH),
    ],
)
def test_the_wrong_piece_is_named_first(old: str, new: str, layer: str, kind: Kind, tmp_path: Path) -> None:
    assert old in PIECES
    [fault] = faults(PIECES.replace(old, new), tmp_path)
    assert fault.kind is kind
    assert fault.target_layers[0] in ({layer, "root"} if layer == "extra" else {layer})
    assert fault.source_layers[0] == "norm"


def test_numbers_are_not_blamed_on_an_operator(tmp_path: Path) -> None:
    [fault] = faults(PIECES.replace("(f, h)", "(f, g)"), tmp_path)
    assert fault.target_layers[0] == "shift"
    assert "would compute" not in fault.evidence[0]
