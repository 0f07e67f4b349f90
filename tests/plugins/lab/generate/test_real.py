"""Networks grown from real ones: valid after each change, with the model's own weights, wherever they begin."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import onnx_networks
import pytest
import small_models
from onnx import numpy_helper

from conrepair.ground.runtime.errors import UsageError
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.learned.placing import Learned
from conrepair_lab.generate.learned.trying import harvest
from conrepair_lab.generate.networks import GeneratedNetwork, Material, made
from conrepair_lab.generate.onnx_form import accepted, run
from conrepair_lab.generate.real.changes import CHANGES
from conrepair_lab.generate.real.drafting import drafted
from conrepair_lab.generate.real.growth import GrowingModel
from conrepair_lab.generate.real.opened import cut, opened, units_of
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.values.search import Settling, flaw_of
from conrepair_lab.generate.wishes import Wishes

SUPPORT = Probed(20, accepted)
OPERATORS = ("Add", "Mul", "Relu", "Sigmoid", "Tanh", "Clip", "Conv", "MaxPool", "MatMul", "Softmax", "ReduceMean")
OPERATORS += ("Cast", "Concat", "Gather", "Pad", "Reshape", "Slice", "Transpose", "Where")
"""That are put in: ONNX Runtime is asked which types it takes for each, which takes longer than all else."""

NETWORKS = {
    "attention": onnx_networks.encoder,
    "branches": onnx_networks.branching,
    "convolutions": onnx_networks.residual,
    "functions": onnx_networks.with_function,
    "quantized": onnx_networks.quantized,
    "recurrent": onnx_networks.recurrent,
}


@pytest.fixture(scope="module")
def reals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, GrowingModel]:
    folder = tmp_path_factory.mktemp("real")
    return {name: GrowingModel(opened(write(folder / f"{name}.onnx"), 20)) for name, write in NETWORKS.items()}


def _valid(network: GeneratedNetwork) -> GeneratedNetwork:
    draft, sources = network.draft, network.values.sources
    onnx.checker.check_model(network.model, full_check=True)
    found = run(network.model, network.inputs, draft.outputs())
    for name, array in found.items():
        assert draft.tensors[name].type.describes(array.dtype.name, array.shape)
        near = 2**-8 if array.dtype.kind == "f" else 0
        assert np.allclose(array, {**sources, **network.values.computed}[name], near, near)
    assert not any(map(flaw_of, network.values.computed.values()))
    return network


@pytest.mark.parametrize("name", NETWORKS)
def test_changed_networks_are_valid(name: str, reals: dict[str, GrowingModel]) -> None:
    for seed in range(6):
        network = _valid(
            made(
                Wishes(nodes=12, changes=6, operators=OPERATORS),
                Random(seed),
                SUPPORT,
                None,
                Material(reals=(reals[name],)),
            )
        )
        assert network.real == f"{name}.onnx"
        assert len(network.changes) == 6


def test_without_changes_a_network_is_as_it_was(reals: dict[str, GrowingModel]) -> None:
    for name, real in reals.items():
        network = _valid(made(Wishes(nodes=99, changes=0), Random(0), SUPPORT, None, Material(reals=(real,))))
        made_of = Counter(node.op_type for node in real.model.nodes)
        assert Counter(node.op.rpartition("::")[2] for node in network.draft.nodes) == made_of, name
        own = [numpy_helper.to_array(item) for item in real.model.constants.values()]
        kept = [network.values.sources[weight] for weight in network.weights]
        assert sum(any(np.array_equal(array, other) for other in own) for array in kept) >= len(kept) - 2  # inputs


def test_weights_stay_through_changes(reals: dict[str, GrowingModel]) -> None:
    real = reals["convolutions"]
    network = _valid(
        made(Wishes(nodes=99, changes=4, operators=OPERATORS), Random(3), SUPPORT, None, Material(reals=(real,)))
    )
    own = [numpy_helper.to_array(item) for item in real.model.constants.values()]
    kept = [network.values.sources[weight] for weight in network.weights]
    assert any(np.array_equal(array, other) for array in kept for other in own if other.size > 8)


def test_each_change_is_made(reals: dict[str, GrowingModel]) -> None:
    found: Counter[str] = Counter()
    for seed in range(12):
        real = reals["attention" if seed % 2 else "convolutions"]
        network = made(
            Wishes(nodes=12, changes=8, operators=OPERATORS), Random(seed), SUPPORT, None, Material(reals=(real,))
        )
        found.update(network.changes)
    assert found.keys() == CHANGES.keys()


def test_a_piece_hangs_together(reals: dict[str, GrowingModel]) -> None:
    units = units_of(reals["attention"].model)
    for seed in range(20):
        chosen = cut(units, 7, Random(seed))
        assert len(chosen) == 7
        names = [{*unit.reads, *unit.makes} for unit in chosen]
        reached, left = names[0], names[1:]
        while near := [own for own in left if own & reached]:
            reached = reached.union(*near)
            left = [own for own in left if own not in near]
        assert not left


def _opened(path: Path, text: str, **weights: Any) -> Any:
    return opened(onnx_networks.written(path, text, weights), 20)


def _draft(model: Any) -> Draft:
    base = drafted(model, units_of(model), Random(0), SUPPORT)
    settling = Settling(base.draft, np.random.default_rng(0))
    assert settling.settled(base.values) is not None, settling.message
    return base.draft


def test_what_is_tied_by_a_sequence_is_one_node(tmp_path: Path) -> None:
    text = """small (float[2, 3] x) => (float[2, 3] y) {
        a = Relu (x)
        s = SequenceConstruct (a, x)
        b = Neg (a)
        t = SequenceInsert (s, b)
        c = SequenceAt (t, place)
        y = Exp (c)
    }"""
    draft = _draft(_opened(tmp_path / "m.onnx", text, place=np.array(1)))
    assert [node.op for node in draft.nodes] == ["Relu", "Neg", "SequenceAt", "Exp"]
    piece = draft.nodes[2].piece
    assert piece is not None
    assert piece.operators == {"SequenceConstruct", "SequenceInsert", "SequenceAt"}


def test_what_no_specification_allows_is_placed_as_it_is(tmp_path: Path) -> None:
    text = """small (float[2, 8] x) => (float[2, 8] y) {
        shape = Shape (x)
        doubled = Mul (shape, ones)
        flat = Reshape (x, doubled)
        y = com.microsoft.FastGelu (flat)
    }"""
    draft = _draft(_opened(tmp_path / "m.onnx", text, ones=np.array([1, 1])))
    assert [(node.op, node.piece is not None) for node in draft.nodes][3:] == [("com.microsoft::FastGelu", True)]


def test_a_size_that_is_said_as_a_real_number_is_whole(tmp_path: Path) -> None:
    text = "small (int64[3] x) => (float[3, depth] y) { y = OneHot (x, depth, ends) }"
    draft = _draft(_opened(tmp_path / "m.onnx", text, depth=np.float32(7), ends=np.array([0, 1], np.float32)))
    assert draft.nodes[0].piece is None
    assert [type(size) for size in draft.tensors[draft.nodes[0].outputs[0]].type.shape] == [int, int]


def test_a_branch_reads_what_is_outside_of_it(reals: dict[str, GrowingModel]) -> None:
    draft = _draft(reals["branches"].model)
    node = next(node for node in draft.nodes if node.op == "If")
    assert len(node.inputs) > 1


def test_another_opset_and_open_sizes_are_no_hindrance(tmp_path: Path) -> None:
    path = small_models.onnx_convnet(tmp_path / "m.onnx") or tmp_path / "m.onnx"
    for opset in (17, 20, 22):
        assert opened(Path(path), opset, batch=2).opset == opset


def test_what_cannot_be_opened_is_said(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(UsageError, match="can't be read"):
        opened(tmp_path / "text.onnx", 20)
    with pytest.raises(UsageError, match="doesn't compute it"):
        _opened(tmp_path / "m.onnx", "small (float[2] x) => (float[2] y) { y = com.example.Nothing (x) }")


def test_operators_of_models_are_learned(tmp_path: Path) -> None:
    text = """small (float[2, 8] x) => (float[2, 4] y) {
        a = com.microsoft.FastGelu (x)
        y = MatMul (a, w)
    }"""
    path = onnx_networks.written(tmp_path / "m.onnx", text, {"w": np.ones((8, 4), np.float32)})
    found = {item.op: item for item in harvest([path])}
    assert found.keys() == {"com.microsoft::FastGelu", "MatMul"}
    assert [made.shape for made in found["MatMul"].piece.inputs] == [(2, 8), (8, 4)]
    learned, wishes = Learned(tuple(found.values())), Wishes(nodes=3, operators=("com.microsoft::FastGelu",))
    network = _valid(made(wishes, Random(0), SUPPORT, None, Material(learned)))
    assert {node.op for node in network.draft.nodes} == {"com.microsoft::FastGelu"}
