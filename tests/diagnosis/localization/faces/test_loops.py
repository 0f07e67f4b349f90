"""A recurrent layer that the target unrolls: the turn that isn't like the others is at fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rewritten_networks as networks
from localizing import localize_networks
from random_graphs import graph_of

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.faces.recurrent.turns import odd_operators
from conrepair.diagnosis.localization.faces.region import region_of
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.ground.graph.kinds import Kind

Array = np.ndarray
STEPS, WIDTH, BATCH = 7, 6, 2
WEIGHTS = {
    "w": networks.drawn(1, WIDTH, WIDTH, seed=1, scale=0.5), "r": networks.drawn(1, WIDTH, WIDTH, seed=2, scale=0.5),
    "b": networks.drawn(1, 2 * WIDTH, seed=3, scale=0.3),
}  # fmt: skip
HEAD = f"small (float[{STEPS}, {BATCH}, {WIDTH}] x) => (float[a, b, c] y)"
TURN = """
    [read{n}] i{n} = MatMul (s{n}, w{n})
    [back{n}] p{n} = MatMul (h{before}, r{n})
    [sum{n}] u{n} = Add (i{n}, p{n})
    [bias{n}] a{n} = Add (u{n}, b{n})
    [bent{n}] h{n} = Tanh (a{n})
"""
FIRST = "[read0] i0 = MatMul (s0, w0)\n [bias0] a0 = Add (i0, b0)\n [bent0] h0 = Tanh (a0)"  # the state is zero


def recurrent(folder: Path) -> networks.Network:
    lines = f"""
        [layer] o, l = RNN <hidden_size = {WIDTH}> (x, w, r, b)
        [squeeze] q = Squeeze (o, one)
        [last] y = Softplus (q)
    """
    given = {**WEIGHTS, "one": np.array([1])}
    return networks.opened(networks.written(folder / "ours.onnx", f"{HEAD} {{ {lines} }}", given), feeds())


def unrolled(
    folder: Path, right: str = "", wrong: str = "", head: str = "[split]", **changed: Array
) -> networks.Network:
    """With a replacement in the turns, and with other weights in one of them."""
    outputs = ", ".join(f"x{turn}" for turn in range(STEPS))
    lines = [f"{head} {outputs} = Split <axis = 0, num_outputs = {STEPS}> ({'f' if 'f =' in head else 'x'})"]
    given: dict[str, Array] = {"zero": np.array([0]), "low": np.float32(-0.3), "high": np.float32(0.3)}
    bias = WEIGHTS["b"][0, :WIDTH] + WEIGHTS["b"][0, WIDTH:]
    for turn in range(STEPS):
        written = TURN.format(n=turn, before=turn - 1) if turn else FIRST
        lines += [
            f"[take{turn}] s{turn} = Squeeze (x{turn}, zero)",
            written.replace(right, wrong) if right else written,
        ]
        lines.append(f"[put{turn}] z{turn} = Unsqueeze (h{turn}, zero)")
        given |= {f"w{turn}": WEIGHTS["w"][0].T, f"b{turn}": bias}
        given |= {f"r{turn}": WEIGHTS["r"][0].T} if turn else {}
    lines.append(f"[join] q = Concat <axis = 0> ({', '.join(f'z{turn}' for turn in range(STEPS))})")
    text = f"{HEAD} {{ {' '.join(lines)} [last] y = Softplus (q) }}"
    assert not right or wrong in text
    used = {key: array for key, array in {**given, **changed}.items() if f", {key})" in text or f", {key}," in text}
    return networks.opened(networks.written(folder / "theirs.onnx", text, used, opset=18), feeds())


def feeds() -> dict[str, Array]:
    return {"x": networks.drawn(STEPS, BATCH, WIDTH, seed=9, scale=1)}


def faults_of(target: networks.Network, folder: Path) -> list[LocatedFault]:
    return list(localize_networks(recurrent(folder), target, [(feeds(), feeds())], folder, Options()).result.faults)


NUMBERS = {
    "bias": ("b3", lambda b: np.roll(b, 1), "bias3", "is shifted by +1 along axis 0"),
    "input": ("w3", np.zeros_like, "read3", "is zero everywhere"),
    "state": ("r5", lambda r: 2 * r, "back5", "the recurrent weights are scaled by 2"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_one_turn(name: str, tmp_path: Path) -> None:
    weight, change, layer, words = NUMBERS[name]
    array = WEIGHTS[weight[0]][0].T if weight[0] != "b" else WEIGHTS["b"][0, :WIDTH] + WEIGHTS["b"][0, WIDTH:]
    target = unrolled(tmp_path, **{weight: np.ascontiguousarray(change(array)).astype(np.float32)})
    [fault] = faults_of(target, tmp_path)
    assert (fault.kind, fault.target_layers[0], fault.source_layers[0]) == (Kind.PARAMETERS, layer, "layer"), fault
    assert words in fault.evidence[0], fault.evidence


OPERATORS: dict[str, tuple[str, str, Kind, set[str], str]] = {
    "a clamp": (
        "h3 = Tanh (a3)", "k = Tanh (a3) [clamp] h3 = Clip (k, low, high)", Kind.PRECISION, {"clamp"},
        "values saturate at -0.3 and 0.3",
    ),
    "an extra function": (
        "u3 = Add (i3, p3)", "k = Add (i3, p3) [extra] u3 = Relu (k)", Kind.GRAPH, {"extra"}, "Relu `extra`",
    ),
    "another operator": ("u3 = Add (i3, p3)", "u3 = Mul (i3, p3)", Kind.GRAPH, {"sum3"}, "`sum3` is Mul"),
    "another function": ("Tanh (a3)", "Sigmoid (a3)", Kind.GRAPH, {"bent3"}, "`bent3` is Sigmoid"),
    "nothing": (
        f"[bias{4}] a{4} = Add (u{4}, b{4})\n" + "    [bent4] h4 = Tanh (a4)",
        "[bent4] h4 = Tanh (u4)", Kind.GRAPH, {"sum4", "bent4"}, "Add is missing between `sum4` and `bent4`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_one_turn(name: str, tmp_path: Path) -> None:
    right, wrong, kind, layers, words = OPERATORS[name]
    [fault] = faults_of(unrolled(tmp_path, right, wrong), tmp_path)
    assert fault.kind is kind, fault
    assert fault.target_layers[0] in layers
    assert words in fault.evidence[0], fault.evidence


def test_a_loop_that_is_right(tmp_path: Path) -> None:
    assert not faults_of(unrolled(tmp_path), tmp_path)


def test_all_turns_alike_accuse_none(tmp_path: Path) -> None:
    """What's wrong in all turns makes none of them the odd one: neither do the first turn and the last."""
    right = {f"b{turn}": np.roll(WEIGHTS["b"][0, :WIDTH], 1) for turn in range(STEPS)}
    [fault] = faults_of(unrolled(tmp_path, **right), tmp_path)
    assert not any(words in fault.evidence[0] for words in ("other turns", "one turn"))


@pytest.mark.parametrize("right", [True, False])
def test_values_that_are_laid_out_otherwise_before_a_loop(right: bool, tmp_path: Path) -> None:
    """A transposition that's undone leaves what it was; a reshape to the same sizes mixes time and batch."""
    undo = "Transpose <perm = [1, 0, 2]> (g)" if right else "Reshape (g, sizes)"
    head = f"[turn] g = Transpose <perm = [1, 0, 2]> (x)\n [undo] f = {undo}\n [split]"
    sizes = np.array([STEPS, BATCH, WIDTH])
    target = unrolled(tmp_path, head=head, **({} if right else {"sizes": sizes}))
    faults = faults_of(target, tmp_path)
    assert right == (not faults)
    for fault in faults:
        assert (fault.kind, fault.target_layers[0]) == (Kind.STRUCTURE, "undo"), fault
        assert "`undo` reshapes values in another order" in fault.evidence[0]


def test_gates_of_which_one_is_another_function() -> None:
    """Each turn has three of the one and one of the other: that's what a turn is, and no fault."""
    gates = ("Sigmoid", "Sigmoid", "Sigmoid", "Tanh")
    nodes = []
    for turn in range(STEPS):
        nodes.append((f"split{turn}", "Sin", ["x"], [f"s{turn}"]))
        nodes += [(f"{op}{turn}{gate}", op, [f"s{turn}"], [f"g{turn}{gate}"]) for gate, op in enumerate(gates)]
        nodes += [(f"mul{turn}{gate}", "Mul", [f"g{turn}{gate}", "x"], [f"m{turn}{gate}"]) for gate in range(4)]
    ends = [f"m{turn}{gate}" for turn in range(STEPS) for gate in range(4)]
    nodes.append(("join", "Concat", ends, ["y"]))
    graph = graph_of(["x"], nodes, ["y"])
    layout = layouts((2, 3, 4), (2, 3, 4))[0]
    pair, array = Pair("y", "y", layout, 1.0, ""), np.ones((2, 3, 4), np.float32)
    pairs = [Pair("x", "x", layout, 1.0, ""), pair]
    region = region_of((graph, graph), pairs, pair, array, array, lambda _: array, {})
    assert not list(odd_operators(region, STEPS))


@pytest.mark.parametrize("odd", [0, 3, 7])
def test_another_operator_in_a_turn_is_told_in_the_first_and_the_last_one_too(odd: int) -> None:
    nodes = []
    for turn in range(8):
        read = f"t{turn - 1}" if turn else "x"
        nodes.append((f"m{turn}", "Sin", [read], [f"p{turn}"]))
        nodes.append((f"a{turn}", "Sub" if turn == odd else "Add", [f"p{turn}", "x"], [f"q{turn}"]))
        nodes.append((f"n{turn}", "Tanh", [f"q{turn}"], [f"t{turn}"]))
    graph = graph_of(["x"], nodes, ["t7"])
    layout = layouts((2, 3, 4), (2, 3, 4))[0]
    pair, array = Pair("t7", "t7", layout, 1.0, ""), np.ones((2, 3, 4), np.float32)
    region = region_of(
        (graph, graph), [Pair("x", "x", layout, 1.0, ""), pair], pair, array, array, lambda _: array, {}
    )
    told = {finding.words for finding in odd_operators(region, 8)}
    assert told == {f"`a{odd}` is Sub, Add in other iterations of the loop"}
