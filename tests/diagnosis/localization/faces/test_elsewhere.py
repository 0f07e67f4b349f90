"""Numbers that belong to another layer, or to another place of their own: said as that, and not as noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from localizing import localize_networks
from onnx_networks import drawn, specs, written
from small_models import model_of

from conrepair.diagnosis.localization.faces import differences
from conrepair.diagnosis.localization.faces.numbers.parameters import ParameterDifference
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.formats.networks.network import open_network
from conrepair.ground.graph.layer_graph import Parameter

Array = np.ndarray


def faults(
    lines: str, shapes: tuple[str, str], ours: dict[str, Array], theirs: dict[str, Array], folder: Path
) -> list[LocatedFault]:
    sides = []
    shape = tuple(int(size) for size in shapes[0].split(","))
    feeds = {"x": drawn(*shape, seed=7, scale=1)}
    for name, numbers in (("source", ours), ("target", theirs)):
        text = f"small (float[{shapes[0]}] x) => (float[{shapes[1]}] y) {{ {lines} }}"
        model = model_of("onnx", written(folder / f"{name}.onnx", text, numbers))
        sides.append(open_network(model, specs(model, feeds)))
    return list(localize_networks(*sides, [(feeds, feeds)], folder, Options()).result.faults)


def words(found: list[LocatedFault]) -> dict[str, str]:
    return {fault.target_layers[0]: fault.evidence[0] for fault in found}


CHAIN = """[a] h = MatMul (x, wa) [act] i = Tanh (h) [b] j = MatMul (i, wb) [act2] k = Tanh (j)
    [c] l = MatMul (k, wc) [act3] m = Tanh (l) [out] y = MatMul (m, wo)"""
NUMBERS = {f"w{name}": drawn(6, 6, seed=seed, scale=0.6) for seed, name in enumerate("abco")}


def test_weights_of_two_layers_exchanged(tmp_path: Path) -> None:
    exchanged = {**NUMBERS, "wa": NUMBERS["wb"], "wb": NUMBERS["wa"]}
    said = words(faults(CHAIN, ("3, 6", "3, 6"), NUMBERS, exchanged, tmp_path))
    assert said == {
        one: f"the weights (w{one}) of `{one}` are those of `{two}` of the original, and those of this layer are in "
        f"`{two}`: they're exchanged"
        for one, two in ("ab", "ba")
    }


def test_a_matrix_is_compared_once_by_all_readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared, compare = list[str](), differences.compare_parameters

    def counted(source: Parameter, target: Parameter) -> ParameterDifference | None:
        compared.append(target.name)
        return compare(source, target)

    monkeypatch.setattr(differences, "compare_parameters", counted)
    disturbed = {**NUMBERS, "wa": NUMBERS["wa"] + drawn(6, 6, seed=9, scale=0.1)}
    assert faults(CHAIN, ("3, 6", "3, 6"), NUMBERS, disturbed, tmp_path)
    assert compared == ["wa"]


def test_weights_of_another_layer(tmp_path: Path) -> None:
    given = {**NUMBERS, "wa": NUMBERS["wc"]}
    said = words(faults(CHAIN, ("3, 6", "3, 6"), NUMBERS, given, tmp_path))
    assert said == {"a": "the weights (wa) of `a` are those of `c` of the original"}
    disturbed = {**NUMBERS, "wa": NUMBERS["wa"] + drawn(6, 6, seed=9, scale=0.1)}
    [noise] = words(faults(CHAIN, ("3, 6", "3, 6"), NUMBERS, disturbed, tmp_path)).values()
    assert noise.endswith("as if random noise were added")


def test_the_multiplier_of_a_depthwise_layer(tmp_path: Path) -> None:
    lines = "[act] a = Tanh (x) [conv] b = Conv <group = 4> (a, w, v) [out] y = Relu (b)"
    ours = {"w": drawn(12, 1, 3, 3, seed=1), "v": drawn(12, seed=2)}
    theirs = {
        name: np.ascontiguousarray(array.reshape(4, 3, -1).swapaxes(0, 1)).reshape(array.shape)
        for name, array in ours.items()
    }
    said = words(faults(lines, ("2, 4, 6, 6", "2, 12, 4, 4"), ours, theirs, tmp_path))
    assert said == {
        "conv": "the weights (w) of `conv` are permuted along axis 0 (10 of 12 places): the axis is 3 x 4 in the "
        "converted model, 4 x 3 in the original"
    }


MERGED = """[act] a = Tanh (x) [one] b = MatMul (a, w) [split] c = Reshape (b, heads) {}
    [flat] g = Reshape ({}, flat) [out] y = MatMul (g, v)"""
SOFT = "[turn] d = Transpose <perm = [0, 2, 1, 3]> (c) [soft] e = Softmax <axis = -1> (d)"
RIGHT = MERGED.format(f"{SOFT} [back] f = Transpose <perm = [0, 2, 1, 3]> (e)", "f")


@pytest.mark.parametrize(("target", "named"), [(RIGHT, []), (MERGED.format(SOFT, "e"), ["flat"])])
def test_heads_that_are_merged_without_their_transposition(target: str, named: list[str], tmp_path: Path) -> None:
    sides, feeds = [], {"x": drawn(2, 6, 12, seed=7, scale=1)}
    numbers = {"w": drawn(12, 12, seed=1), "v": drawn(12, 12, seed=2)}
    numbers |= {"heads": np.int64([2, 6, 3, 4]), "flat": np.int64([2, 6, 12])}
    for name, lines in (("source", MERGED.format("[soft] e = Softmax <axis = -1> (c)", "e")), ("target", target)):
        text = f"small (float[2, 6, 12] x) => (float[2, 6, 12] y) {{ {lines} }}"
        model = model_of("onnx", written(tmp_path / f"{name}.onnx", text, numbers))
        sides.append(open_network(model, specs(model, feeds)))
    found = list(localize_networks(*sides, [(feeds, feeds)], tmp_path, Options()).result.faults)
    assert [fault.target_layers[0] for fault in found] == named
    for fault in found:
        assert fault.evidence[0].startswith("`flat` reshapes values in another order")


def test_a_transposition_too_many_is_named_and_not_the_reshape_behind_it(tmp_path: Path) -> None:
    target = """[act] a = Tanh (x) [one] b = MatMul (a, w) [split] c = Reshape (b, heads)
        [turn] d = Transpose <perm = [0, 2, 1]> (c) [flat] g = Reshape (d, flat) [end] y = Relu (g)"""
    numbers = {"w": drawn(12, 12, seed=1), "heads": np.int64([6, 3, 4]), "flat": np.int64([6, 12])}
    sides, feeds = [], {"x": drawn(6, 12, seed=7, scale=1)}
    for name, lines in (
        ("source", "[act] a = Tanh (x) [one] b = MatMul (a, w) [end] y = Relu (b)"),
        ("target", target),
    ):
        held = numbers if name == "target" else {"w": numbers["w"]}
        text = f"small (float[6, 12] x) => (float[6, 12] y) {{ {lines} }}"
        model = model_of("onnx", written(tmp_path / f"{name}.onnx", text, held))
        sides.append(open_network(model, specs(model, feeds)))
    [fault] = localize_networks(*sides, [(feeds, feeds)], tmp_path, Options()).result.faults
    assert fault.target_layers[0] == "turn"
