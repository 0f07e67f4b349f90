"""Behind faults, what's fed shows which tensors belong together: one bridge for each fault, and nothing guessed."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import rewritten_networks as networks
from rewritten_networks import damaged, feeds_of, opened

from conrepair.localization.activations import Activations
from conrepair.localization.alignment import Alignment, align

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
