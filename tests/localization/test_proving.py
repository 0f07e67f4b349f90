"""Behind faults, what's fed shows which tensors belong together: one bridge for each fault, and nothing guessed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import onnx
import pytest
import rewritten_networks as networks
from rewritten_networks import damaged, feeds_of, opened

from conrepair.data.tensor_spec import Quantization
from conrepair.graph.layer_graph import LayerGraph, Tensor
from conrepair.localization import proving
from conrepair.localization.activations import Activations
from conrepair.localization.alignment import Alignment, align
from conrepair.localization.evidence import Evidence
from conrepair.localization.guessing import Wanted
from conrepair.localization.layout import layouts
from conrepair.localization.matching import EQUAL, Likeness, Pair
from conrepair.localization.neighbourhood import Neighbourhood
from conrepair.localization.proving import _Trials
from conrepair.localization.samples import Samples
from conrepair.localization.similarity import Similarity
from conrepair.localization.structure import Structure

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


@pytest.mark.parametrize(("high", "holds"), [(4.0, True), (1.5, False)])
def test_what_an_activation_cannot_hold_proves_nothing(high: float, holds: bool) -> None:
    """Fed to it, the values in front of a saturating operator become those behind it."""
    stored = Tensor("q", (64,), "uint8", Quantization(high / 255, 0))
    shapes = {"x": (64,)}, {"q": (64,)}
    graphs = [
        LayerGraph((name,), (), {name: item}, ())
        for name, item in (("x", Tensor("x", (64,), "float32")), ("q", stored))
    ]
    sides = [Neighbourhood(graph, graph.inputs, shape) for graph, shape in zip(graphs, shapes, strict=True)]
    values = {"x": np.linspace(0, 3.9, 64, dtype=np.float32)}
    similarity = Similarity(Samples(["x"], values.__getitem__), Samples(["q"], lambda _: values["x"]), EQUAL)
    evidence = Evidence(*sides, similarity, Structure(*sides), Likeness(0.05, 2.0), expected=values.__getitem__)
    assert evidence.holds(Pair("x", "q", layouts((64,), (64,))[0], 0.5, "")) == holds


def test_what_was_tried_is_less_likely() -> None:
    trials = _Trials(cast(Any, None), cast(Any, None))
    trials._tried.update({(3, 8), (5, 9), (4, 7)})
    found = trials._shake(0.0, np.array([3, 5]), np.array([7, 8, 9]))
    assert found.tolist() == [[0, -1, 0], [0, 0, -1]]
    shaken = trials._shake(0.02, np.arange(90), np.arange(90))
    assert 0.018 < np.std(shaken[10:, 10:]) < 0.022


@pytest.mark.parametrize(
    ("shown", "rounds"),
    [
        ([True, False, False, False], 2),
        ([False, True, False, False], 2),  # what's known shows something that was hidden by a guess
        ([False, False], 1),
        ([True] * 9, 4),  # and no more often
    ],
)
def test_all_guesses_are_fed_at_once_as_long_as_that_shows_something(
    shown: list[bool], rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = layouts((2, 3), (2, 3))[0]
    known = Pair("x", "x", plain, 1.0, "")
    guesses = [Pair(name, name, plain, 0.5, "") for name in "hg"]
    side = SimpleNamespace(names=list("xhgy"), place={name: n for n, name in enumerate("xhgy")})
    side.graph = SimpleNamespace(outputs=["y"])
    evidence = SimpleNamespace(source=side, target=side, known=lambda: [known], holds=lambda pair: pair.target == "h")
    asked: list[Wanted] = []

    def match(wanted: Wanted) -> list[Pair]:
        asked.append(wanted)
        return [known, *guesses]

    evidence.match = match
    calls: list[tuple[list[str], list[str]]] = []

    def compute(pairs: Sequence[Pair], names: Sequence[str]) -> Any:
        calls.append(([pair.target for pair in pairs], list(names)))

    told = iter(shown)
    monkeypatch.setattr(proving, "learn", lambda *_: next(told))
    _Trials(cast(Any, evidence), compute).sweep()
    assert calls == [(["x", "h"], ["h", "g", "y"]), (["x"], ["h", "g", "y"])] * rounds
    assert not any(wanted.first for wanted in asked), "not only those behind what's known"
