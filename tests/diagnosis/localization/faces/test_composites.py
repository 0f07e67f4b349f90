"""Normalizations that the target writes in pieces: which piece is wrong is told by computing them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rewritten_networks as networks
from localizing import localize_networks

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.ground.graph.kinds import Kind

Array = np.ndarray
WIDTH, COUNT = 8, 3
PIECES = """
    [mean{n}] m{n} = ReduceMean <axes = [-1]> (d{n})
    [centre{n}] c{n} = Sub (d{n}, m{n})
    [square{n}] q{n} = Mul (c{n}, c{n})
    [variance{n}] v{n} = ReduceMean <axes = [-1]> (q{n})
    [add{n}] a{n} = Add (v{n}, epsilon)
    [root{n}] r{n} = Sqrt (a{n})
    [divide{n}] e{n} = Div (c{n}, r{n})
    [scale{n}] f{n} = Mul (e{n}, g{n})
    [shift{n}] t{n} = Add (f{n}, h{n})
"""


def network(
    folder: Path,
    name: str,
    block: str,
    last: tuple[str, str] = ("", ""),
    weights: dict[str, Array] | None = None,
    count: int = COUNT,
) -> networks.Network:
    """Linear layers with a normalization behind each; in that of the second one something is replaced."""
    given: dict[str, Array] = {
        "epsilon": np.float32(1e-5), "low": np.float32(-0.3), "high": np.float32(0.3), "other": np.float32(0.5),
    }  # fmt: skip
    lines = []
    for place in range(count):
        reads = f"t{place - 1}" if place else "x"
        written = block.format(n=place)
        if place == 1:
            changed = written.replace(last[0].format(n=1), last[1].format(n=1))
            assert changed != written or not last[0]
            written = changed
        lines += [f"[dense{place}] b{place} = MatMul ({reads}, w{place})", f"[act{place}] d{place} = Tanh (b{place})"]
        lines.append(written)
        given[f"w{place}"] = networks.drawn(WIDTH, WIDTH, seed=place, scale=0.6)
        given[f"g{place}"] = networks.drawn(WIDTH, seed=10 + place, scale=0.2) + 1
        given[f"h{place}"] = networks.drawn(WIDTH, seed=20 + place, scale=0.2) + 0.1
    given |= weights or {}
    head = f"small (float[batch, 3, {WIDTH}] x) => (float[batch, a, b] y)"
    text = f"{head} {{ {' '.join(lines)} [last] y = Softplus (t{count - 1}) }}"
    used = {key: array for key, array in given.items() if f"{key})" in text or f"{key}," in text}
    return networks.opened(networks.written(folder / f"{name}.onnx", text, used), feeds())


def feeds() -> dict[str, Array]:
    return {"x": networks.drawn(4, 3, WIDTH, seed=99, scale=1)}


def faults_of(target: networks.Network, folder: Path, count: int = COUNT) -> list[LocatedFault]:
    norm = "[norm{n}] t{n} = LayerNormalization <epsilon = 1e-5> (d{n}, g{n}, h{n})"
    source = network(folder, "ours", norm, count=count)
    return list(localize_networks(source, target, [(feeds(), feeds())], folder, Options()).result.faults)


WRONG: dict[str, tuple[str, str, Kind, str, str]] = {
    "another operator": (
        "Mul (e{n}, g{n})", "Add (e{n}, g{n})", Kind.GRAPH, "scale1", "if `scale1` were Mul instead of Add",
    ),
    "a clamp": (
        "[scale{n}] f{n} = Mul (e{n}, g{n})",
        "[clamp] k{n} = Clip (e{n}, low, high) [scale{n}] f{n} = Mul (k{n}, g{n})",
        Kind.PRECISION, "clamp", "values saturate at -0.3 and 0.3",
    ),
    "a clamp of two": (
        "[scale{n}] f{n} = Mul (e{n}, g{n})",
        "[over] j{n} = Max (e{n}, low) [under] k{n} = Min (j{n}, high) [scale{n}] f{n} = Mul (k{n}, g{n})",
        Kind.PRECISION, "under", "values saturate at -0.3 and 0.3",
    ),
    "an extra function": (
        "[scale{n}] f{n} = Mul (e{n}, g{n})",
        "[bent] k{n} = Tanh (e{n}) [scale{n}] f{n} = Mul (k{n}, g{n})",
        Kind.GRAPH, "bent", "Tanh `bent` is only in the converted model",
    ),
    "nothing under the root": (
        "[root{n}] r{n} = Sqrt (a{n})\n    [divide{n}] e{n} = Div (c{n}, r{n})",
        "[divide{n}] e{n} = Div (c{n}, a{n})",
        Kind.GRAPH, "add1", "Sqrt is missing behind `add1`",
    ),
    "another axis": (
        "v{n} = ReduceMean <axes = [-1]>", "v{n} = ReduceMean <axes = [1]>", Kind.HYPERPARAMETERS, "variance1",
        "`variance1` has axes (1): with (2), these layers would compute what `norm1` of the original does",
    ),
    "another epsilon": (
        "Add (v{n}, epsilon)", "Add (v{n}, other)", Kind.HYPERPARAMETERS, "add1",
        "`add1` has 0.5, `norm1` has epsilon 1e-05",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_piece_that_is_wrong(name: str, tmp_path: Path) -> None:
    right, wrong, kind, layer, words = WRONG[name]
    [fault] = faults_of(network(tmp_path, "theirs", PIECES, (right, wrong)), tmp_path)
    assert (fault.kind, fault.target_layers[0]) == (kind, layer), fault
    assert fault.source_layers[0] == "norm1"
    assert words in fault.evidence[0], fault.evidence


NUMBERS = {
    "scale": (lambda g: 2 * g, "g1", "scale1", "is scaled by 2"),
    "turned": (lambda g: np.roll(g, 1), "g1", "scale1", "is shifted by +1 along axis 0"),
    "lost": (np.zeros_like, "g1", "scale1", "is zero everywhere"),
    "bias": (lambda h: -h, "h1", "shift1", "is negated"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_are_wrong(name: str, tmp_path: Path) -> None:
    """Those of other layers say nothing; the composite's own do, without a layer like it too."""
    change, weight, layer, words = NUMBERS[name]
    seed = {"g": 11, "h": 21}[weight[0]]
    array = networks.drawn(WIDTH, seed=seed, scale=0.2) + (1 if weight[0] == "g" else 0.1)
    changed = {weight: change(array).astype(np.float32)}
    for count in (COUNT, 2):
        target = network(tmp_path, f"theirs{count}", PIECES, weights=changed, count=count)
        [fault] = faults_of(target, tmp_path, count)
        assert (fault.kind, fault.target_layers[0]) == (Kind.PARAMETERS, layer), fault
        assert words in fault.evidence[0], fault.evidence


def test_numbers_that_nothing_is_known_of(tmp_path: Path) -> None:
    """Both parameters are others: which is which can't be told, but that it's they."""
    changed = {name: networks.drawn(WIDTH, seed=50 + place) + 1 for place, name in enumerate(("g1", "h1"))}
    [fault] = faults_of(network(tmp_path, "theirs", PIECES, weights=changed), tmp_path)
    assert fault.kind is Kind.PARAMETERS
    assert set(fault.target_layers[:3]) <= {"add1", "scale1", "shift1"}


def test_pieces_that_are_right(tmp_path: Path) -> None:
    assert not faults_of(network(tmp_path, "theirs", PIECES), tmp_path)


def test_a_composite_that_nothing_is_like(tmp_path: Path) -> None:
    """Its numbers are there, and nothing tells which piece is wrong: the composite is named, not all pieces."""
    last = "[scale{n}] f{n} = Mul (e{n}, g{n})\n    [shift{n}] t{n} = Add (f{n}, h{n})"
    wrong = last.replace("Mul", "Add").replace("Add (f", "Div (f")
    target = network(tmp_path, "theirs", PIECES, (last, wrong), count=2)
    norm = "[norm{n}] t{n} = LayerNormalization <epsilon = 1e-5> (d{n}, g{n}, h{n})"
    source = network(tmp_path, "ours", norm, ("epsilon = 1e-5", "epsilon = 1e-4"), count=2)
    [fault] = localize_networks(source, target, [(feeds(), feeds())], tmp_path, Options()).result.faults
    assert fault.source_layers[0] == "norm1"
    assert "the converted model has 9 layers for `norm1`" in fault.evidence[0], fault.evidence
