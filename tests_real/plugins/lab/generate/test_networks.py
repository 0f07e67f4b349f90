"""Whole networks: valid for ONNX, computed as predicted, finite everywhere, the same for the same seed."""

from __future__ import annotations

from random import Random

import numpy as np
import onnx
import pytest

from conrepair_lab.generate.forms.form import forms
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.judging import refereed
from conrepair_lab.generate.networks import NotMadeError, made
from conrepair_lab.generate.onnx_form import accepted, model_of, run
from conrepair_lab.generate.settings.setting import Support
from conrepair_lab.generate.settings.tensors import TensorType
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.symbolic import open_sizes
from conrepair_lab.generate.values.drawn import drawn_values
from conrepair_lab.generate.values.search import EXTREMES, flaw_of
from conrepair_lab.generate.weaving import Weaver
from conrepair_lab.generate.wishes import Wishes

SUPPORT = Probed(20, accepted)


@pytest.mark.parametrize("nodes", [1, 5, 20])
@pytest.mark.parametrize("seed", range(8))
def test_a_network_is_valid_and_finite(nodes: int, seed: int) -> None:
    network = made(Wishes(nodes=nodes), Random(seed), SUPPORT)
    assert len(network.draft.nodes) == nodes
    model, inputs = network.model, network.inputs
    onnx.checker.check_model(model, full_check=True)
    assert [item.name for item in model.graph.input] == list(inputs)
    assert inputs
    found = run(model, inputs, network.draft.outputs())
    assert found.keys() == network.answers.keys()
    for name, array in found.items():
        assert network.draft.tensors[name].type.describes(array.dtype.name, array.shape)
        assert np.array_equal(array, network.answers[name])
        assert not flaw_of(array)
    assert not [name for name, array in network.values.computed.items() if flaw_of(array)]


def test_a_seed_gives_the_same_bytes() -> None:
    def text() -> bytes:
        network = made(Wishes(nodes=6), Random(4), Probed(20, accepted))
        return model_of(network.draft, {}).SerializeToString(deterministic=True)

    assert text() == text()


def test_a_network_of_constants_alone_gets_an_input() -> None:
    wishes = Wishes(nodes=1, operators=("HannWindow", "Relu"), woven=0.0)
    networks = [made(wishes, Random(seed), SUPPORT) for seed in range(6)]
    assert all(network.draft.sources for network in networks)


@pytest.mark.parametrize("seed", range(6))
def test_one_input_and_one_output_cost_no_nodes(seed: int) -> None:
    network = made(Wishes(nodes=15, single=True), Random(seed), SUPPORT)
    assert len(network.draft.nodes) == 15
    assert len(network.draft.outputs()) == 1
    assert len(network.draft.sources) - len(network.weights) == 1


def test_open_sizes_may_be_others() -> None:
    several = 0
    for seed in range(30):
        network = made(Wishes(nodes=6, symbolic=1.0), Random(seed), SUPPORT)
        if network.open is None:
            continue
        several += 1
        draft, generator = network.draft, np.random.default_rng(0)
        model = network.model
        onnx.checker.check_model(model, full_check=True)
        feeds = {}
        for name in network.inputs:
            sizes = network.open.get(name, draft.tensors[name].type.shape)
            shape = tuple(70 if isinstance(size, str) else size for size in sizes)  # indices stay within it
            made_of = TensorType(draft.tensors[name].type.dtype, shape)
            feeds[name] = drawn_values(made_of, draft.tensors[name].values, generator)
        for name, array in run(model, feeds, draft.outputs()).items():
            sizes = network.open[name]
            wanted = tuple(70 if isinstance(size, str) else size for size in sizes)
            assert TensorType(draft.tensors[name].type.dtype, wanted).describes(array.dtype.name, array.shape)
    assert several > 10


def test_some_values_are_at_their_ends() -> None:
    networks = [made(Wishes(nodes=6, extremes=1.0), Random(seed), SUPPORT) for seed in range(40)]
    found = {end for network in networks if network for end in network.values.ends}
    assert found == set(EXTREMES)
    assert not any(flaw_of(array) for network in networks if network for array in network.values.computed.values())


def test_a_size_on_which_numbers_of_axes_depend_is_not_left_open() -> None:
    draft = Draft(20)
    weaver = Weaver(draft, Random(0), Support(), 64, "test")
    x = weaver.new("float32", (1, 3))
    weaver.node("Squeeze", x)
    assert open_sizes(draft, (x,), Support(), Random(0), batch=True) is None


@pytest.mark.parametrize("seed", range(6))
def test_what_nothing_can_follow_costs_no_nodes_either(seed: int) -> None:
    wishes = Wishes(nodes=6, operators=("IsNaN", "Neg", "Abs"), single=True, woven=0.0, backward=0.0)
    network = made(wishes, Random(seed), SUPPORT)
    assert len(network.draft.nodes) == 6
    assert len(network.draft.outputs()) == 1


def test_one_output_that_can_not_be_so_far_away_is_refused() -> None:
    with pytest.raises(NotMadeError, match="no operator fits behind IsNaN"):
        made(Wishes(nodes=3, operators=("IsNaN",), single=True, woven=0.0), Random(0), SUPPORT)


def test_nodes_depend_on_inputs_and_outputs_move_with_them() -> None:
    nodes = folded = outputs = moving = 0
    for seed in range(24, 48):
        network = made(Wishes(nodes=12, folded=0.0, quotas=dict.fromkeys(forms(), 0.0)), Random(seed), SUPPORT)
        draft, generator = network.draft, np.random.default_rng(seed)
        reached = draft.reached(network.inputs)
        nodes += len(draft.nodes)
        folded += sum(reached.isdisjoint(node.outputs) for node in draft.nodes)
        sources = {name: draft.sources[name] for name in network.inputs}
        feeds = {name: drawn_values(item.type, item.values, generator, item.wish) for name, item in sources.items()}
        others = run(network.model, feeds, draft.outputs())
        outputs += len(others)
        moving += sum(not np.array_equal(array, network.answers[name]) for name, array in others.items())
    assert folded <= 0.1 * nodes
    assert moving >= 0.85 * outputs


def test_a_normalization_that_trains_is_right_and_leaves_what_others_read() -> None:
    wishes = Wishes(nodes=5, operators=("BatchNormalization", "Neg", "Transpose"))
    training = 0
    for seed in range(16):
        network = made(wishes, Random(seed), SUPPORT)
        training += any(node.attributes.get("training_mode") for node in network.draft.nodes)
        assert refereed(network.model, network.inputs, network.answers, network.coarsest) == {"verdict": "same"}
        again = run(network.model, network.inputs, network.draft.outputs())
        assert all(again[name].tobytes() == array.tobytes() for name, array in network.answers.items())
    assert training >= 3


@pytest.mark.slow
def test_a_deep_network_is_a_chain_of_half_its_nodes() -> None:
    lengths = []
    for seed in range(14):
        draft = made(Wishes(nodes=20, deep=1.0), Random(seed), SUPPORT).draft
        chains: dict[str, int] = {}
        for node in draft.nodes:
            own = 1 + max((chains.get(name, 0) for name in node.inputs), default=0)
            chains.update(dict.fromkeys(node.outputs, own))
        lengths.append(max(chains.values()))
    assert np.median(lengths) >= 10


def test_some_tensors_are_large() -> None:
    operators = ("Add", "Relu", "Conv", "Transpose", "Softmax")
    networks = [made(Wishes(nodes=4, operators=operators, large=1.0), Random(seed), SUPPORT) for seed in range(4)]
    sizes = [array.size for network in networks for array in network.values.computed.values()]
    assert 10_000 <= max(sizes) <= 1_000_000
