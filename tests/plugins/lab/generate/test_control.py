"""Branches and loops in networks: bodies are written as graphs, and what they read from outside stays connected."""

from __future__ import annotations

from random import Random

import onnx
import pytest

from conrepair_lab.generate.bodies import Bodies, Body, BodyStep
from conrepair_lab.generate.networks import made
from conrepair_lab.generate.onnx_form import accepted, model_of, run
from conrepair_lab.generate.settings.solving import Solving
from conrepair_lab.generate.settings.tensors import TensorType
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes

SUPPORT = Probed(20, accepted)


def test_a_body_is_a_graph_whose_names_are_its_own() -> None:
    graph = Body(
        (("float32", 2),), 1, (BodyStep("Add", (0, 1)), BodyStep("Elu", (2,), (("alpha", 0.5),))), (3,)
    ).graph("n", ["x"])
    assert [item.name for item in graph.input] == ["n_0"]
    assert [list(node.input) for node in graph.node] == [["n_0", "x"], ["n_1"]]
    assert [item.name for item in graph.output] == ["n_2"]
    assert len(graph.input[0].type.tensor_type.shape.dim) == 2


@pytest.mark.parametrize("seed", [0, 1])
def test_branches_and_loops_are_in_networks(seed: int) -> None:
    wishes = Wishes(nodes=6, operators=("If", "Loop", "Scan", "Relu"), woven=0.0, quotas={})
    network = made(wishes, Random(seed), SUPPORT)
    assert {node.op for node in network.draft.nodes} & {"If", "Loop", "Scan"}
    model = model_of(network.draft, {})
    onnx.checker.check_model(model, full_check=True)
    found = run(model, network.values.sources, network.draft.outputs())
    assert all(network.draft.tensors[name].type.describes(it.dtype.name, it.shape) for name, it in found.items())


@pytest.mark.parametrize("seed", range(8))
def test_a_carried_scalar_stays_of_its_type_although_the_iteration_is_a_scalar_too(seed: int) -> None:
    setting = Solving("Loop", 20, Random(seed), target=TensorType("float32", ()))
    carried = TensorType("float32", ())
    bodies = Bodies(setting, [TensorType("int64", ()), TensorType("bool", ()), carried], [1, carried])
    assert bodies.types(bodies.drawn(Random(seed)))[1] == carried
