"""Behind faults, what's fed shows which tensors belong together: one bridge for each fault, and nothing guessed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import rewritten_networks as networks
from rewritten_networks import damaged, feeds_of, opened

import conrepair
from conrepair.diagnosis.localization.align.alignment import Alignment, align
from conrepair.diagnosis.localization.run.activations import Activations

GELU = """
    dv{0} = Div (up{0}, root2)
    er{0} = Erf (dv{0})
    su{0} = Add (er{0}, one)
    mu{0} = Mul (up{0}, su{0})
    ac{0} = Mul (mu{0}, half)
"""


def decomposed(path: Path, target: Path) -> Path:
    """The encoder with each Gelu in five nodes, as exporters write it."""
    model = onnx.load(path)
    nodes = []
    for node in model.graph.node:
        if node.op_type != "Gelu":
            nodes.append(node)
            continue
        place = node.output[0].removeprefix("ac")
        piece = onnx.parser.parse_graph(f"g (float[2] up{place}) => (float[2] ac{place}) {{ {GELU.format(place)} }}")
        nodes.extend(piece.node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    for name, number in (("root2", 2**0.5), ("one", 1.0), ("half", 0.5)):
        model.graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, [], [number]))
    onnx.save(model, target)
    return target


def aligned(source: Path, target: Path, folder: Path) -> Alignment:
    feeds = feeds_of("encoder blocks")
    work = folder / "work"
    work.mkdir()
    sides = [Activations(opened(path, feeds), feeds, work / path.stem) for path in (source, target)]
    return align(*sides, work)


@pytest.mark.parametrize("weights", [["wu0"], ["wd1"], ["wo0"], ["wu0", "wd1", "wq2"], ["wk0", "wv0", "wu2"]])
def test_one_bridge_for_each_fault(weights: list[str], tmp_path: Path) -> None:
    source = networks.WRITERS["encoder blocks"](tmp_path / "source.onnx")
    wrong = damaged(source, tmp_path / "damaged.onnx", weights)
    alignment = aligned(source, decomposed(wrong, tmp_path / "target.onnx"), tmp_path)
    assert all(pair.source == pair.target for pair in alignment.pairs)
    assert all(pair.confidence == 1.0 for pair in alignment.pairs)
    bridges = [pair for pair in alignment.pairs if "comes out right" in pair.evidence]
    assert len(bridges) == len(weights)
    assert alignment.unpaired_sources == ()


def test_values_that_happen_to_be_repeated_are_no_pair(tmp_path: Path) -> None:
    """A layer that adds nothing gives what it's given: the tensors before it aren't those behind."""
    source = networks.WRITERS["encoder blocks"](tmp_path / "source.onnx")
    model = onnx.load(source)
    [weight] = [item for item in model.graph.initializer if item.name == "wo1"]
    weight.raw_data = bytes(len(weight.raw_data))
    onnx.save(model, tmp_path / "target.onnx")
    alignment = aligned(source, tmp_path / "target.onnx", tmp_path)
    assert all(pair.source == pair.target for pair in alignment.pairs)
    assert {"a1", "m1", "j1", "o1", "u1"} <= {pair.source for pair in alignment.pairs}


DEEP = '<ir_version: 8, opset_import: ["": 17]> g (float[4, 8] x) => (float[4, 8] y) {{ {} }}'


def stored(path: Path, body: str, weights: dict[str, np.ndarray]) -> Path:
    model = onnx.parser.parse_model(DEEP.format(body))
    used = {name: array for name, array in weights.items() if f"{name})" in body or f"{name}," in body}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in used.items())
    onnx.save(model, path)
    return path


def test_a_layer_that_is_missing_is_told_by_the_weights_of_the_others(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    weights = {f"w{n}": generator.normal(size=(8, 8)).astype(np.float32) for n in range(4)}
    weights |= {f"b{n}": generator.normal(size=8).astype(np.float32) for n in range(4)}
    paths = []
    for name, blocks in (("source", range(4)), ("target", (0, 2, 3))):
        lines, read = [], "x"
        for n in blocks:
            lines.append(f"m{n} = MatMul ({read}, w{n}) a{n} = Add (m{n}, b{n}) t{n} = Tanh (a{n})")
            read = f"t{n}"
        paths.append(stored(tmp_path / f"{name}.onnx", " ".join([*lines, f"y = Identity ({read})"]), weights))
    (fault,) = conrepair.localize(*paths, in_process=True).faults
    assert "MatMul" in fault.words
    assert "of the original is missing in the converted model" in fault.words


@pytest.mark.parametrize("last", ["mu = Mul ({}, two)", "mu = Add ({}, two)"])
def test_what_stands_behind_a_normalization_in_pieces_is_no_other_layer(last: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    weights = {name: generator.normal(size=(8, 8)).astype(np.float32) for name in ("w", "v")}
    weights |= {"g": np.linspace(0.5, 2, 8, dtype=np.float32), "b": np.linspace(-1, 1, 8, dtype=np.float32)}
    weights |= {name: np.float32(number) for name, number in (("two", 2.5), ("square", 2), ("epsilon", 1e-5))}
    end = "mm = MatMul (mu, v) y = Identity (mm)"
    whole = f"s = Sigmoid (x) h = MatMul (s, w) l = LayerNormalization <axis = -1> (h, g, b) {last.format('l')} {end}"
    pieces = f"""s = Tanh (x) h = MatMul (s, w) m = ReduceMean <axes = [-1]> (h) d = Sub (h, m) p = Pow (d, square)
        q = ReduceMean <axes = [-1]> (p) r = Add (q, epsilon) o = Sqrt (r) n = Div (d, o) f = Mul (n, g)
        l = Add (f, b) {last.format("l")} {end}"""
    paths = stored(tmp_path / "s.onnx", whole, weights), stored(tmp_path / "t.onnx", pieces, weights)
    (fault,) = conrepair.localize(*paths, in_process=True).faults
    assert fault.target_layers[0] == "s"
