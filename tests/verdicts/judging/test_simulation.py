"""Networks computed in other arithmetics, beside PyTorch computing in them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
import small_models as small
import torch
from random_graphs import Computed, graph_of

from conrepair.diagnosis.localization.run.pieces import Pieces
from conrepair.formats.models.model import Model
from conrepair.formats.networks.network import Network, open_network
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.metrics.running_error import relative_l2
from conrepair.verdicts.judging.arithmetic import ARITHMETICS, DISTURBED
from conrepair.verdicts.judging.simulation import Simulated, _summed

FEEDS = torch.randn(4, 3, 12, 12, generator=torch.Generator().manual_seed(0))


class _Residual(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.second = torch.nn.Conv2d(8, 8, 3, padding=1)
        self.last = torch.nn.Linear(8, 5)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        one = torch.relu(self.first(given))
        return self.last((one + torch.relu(self.second(one))).mean((2, 3)))


@pytest.fixture(scope="module")
def module() -> torch.nn.Module:
    torch.manual_seed(3)
    return _Residual().eval()


@pytest.fixture(scope="module", params=["onnx", "torch"])
def network(
    request: pytest.FixtureRequest, module: torch.nn.Module, tmp_path_factory: pytest.TempPathFactory
) -> Network:
    folder = tmp_path_factory.mktemp("networks")
    if request.param == "onnx":
        path = folder / "net.onnx"
        torch.onnx.export(module, (FEEDS,), str(path), dynamo=False, input_names=["x"], opset_version=17)
    else:
        path = folder / "net.pt2"
        torch.export.save(torch.export.export(module, (FEEDS,)), path)
    return open_network(_model(path, request.param), [TensorSpec(_name(path), tuple(FEEDS.shape), "float32")])


def _model(path: Path, kind: str) -> Model:
    return Model(kind, str(path), "0" * 64)


def _name(path: Path) -> str:
    return "x" if path.suffix == ".onnx" else "given"


def _outputs(network: Network) -> np.ndarray:
    [given], [output] = network.graph.inputs, network.graph.outputs
    return network.segment([given], [output]).run({given: FEEDS.numpy()})[output]


@pytest.mark.parametrize(("name", "most"), [("bfloat16", 0.4), ("float16", 0.6)])
def test_it_gives_what_pytorch_gives(network: Network, module: torch.nn.Module, name: str, most: float) -> None:
    kind = getattr(torch, name)
    with torch.no_grad():
        device = copy.deepcopy(module).to(kind)(FEEDS.to(kind)).float().numpy()
    right, simulated = _outputs(network), _outputs(Simulated(network, ARITHMETICS[name]))
    expected = relative_l2(right, simulated)
    assert expected > 1e-4
    assert relative_l2(simulated, device) <= most * expected
    assert 0.7 * expected <= relative_l2(right, device) <= 1.4 * expected


def test_the_finer_an_arithmetic_the_less_it_changes(network: Network) -> None:
    right = _outputs(network)
    names = ["flushed", "tf32", "float16-accumulated", "bfloat16", "bfloat16-accumulated"]
    errors = [relative_l2(right, _outputs(Simulated(network, ARITHMETICS[name]))) for name in names]
    assert errors == sorted(errors)
    assert errors[0] < 1e-6 < 1e-4 < errors[1]


def test_pieces_are_fed_and_rounded(network: Network) -> None:
    """A tensor that's fed and wanted is computed, and what reads it reads what's fed."""
    graph = network.graph
    [given], [output] = graph.inputs, graph.outputs
    inner = next(name for name in graph.order if name in graph.producers and graph.tensors[name].observable)
    simulated = Simulated(network, ARITHMETICS["bfloat16"])
    zeros = np.zeros(graph.tensors[inner].shape or (), np.float32)
    values = {given: FEEDS.numpy(), inner: zeros}
    pieces = Pieces.between(simulated, [given, inner], [inner, output])
    found = dict(pieces.run(values.__getitem__))
    assert found[inner].any()
    assert np.array_equal(found[inner], ARITHMETICS["bfloat16"].results(found[inner]))
    fed = dict(Pieces.between(network, [given, inner], [output]).run(values.__getitem__))
    assert relative_l2(fed[output], found[output]) < 1e-2


@pytest.mark.parametrize("count", [1, 5, 64, 65, 200])
def test_steps_are_all_tensors_in_order_in_as_many_groups_as_there_may_be(count: int) -> None:
    nodes = [(f"n{place}", "Sin", [f"t{place - 1}" if place else "x"], [f"t{place}"]) for place in range(count)]
    chain = Computed(graph_of(["x"], nodes, [f"t{count - 1}"]))
    segment = Simulated(chain, DISTURBED, most=64).segment(["x"], [f"t{count - 1}"])
    found = [step.segment.wanted for step in cast("Any", segment)._steps]
    assert [name for step in found for name in step] == [f"t{place}" for place in range(count)]
    assert len(found) <= 64
    assert len({len(step) for step in found[:-1]}) <= 1
    if count <= 64:
        assert all(len(step) == 1 for step in found)


@pytest.mark.parametrize("terms", [16, 256])
@pytest.mark.parametrize("values", ["of both signs", "positive", "cancelling"])
def test_sums_in_a_narrow_type_are_off_as_they_are_step_by_step(values: str, terms: int) -> None:
    generator = np.random.default_rng(0)
    x = np.asarray(generator.uniform(-1 if values == "of both signs" else 0, 1, (200, terms)), np.float32)
    w = np.asarray(generator.normal(size=(terms, 16)), np.float32)
    if values == "cancelling":
        w -= w.mean(axis=0)
        x = x + 1
    x, w = (array.astype(np.float16).astype(np.float32) for array in (x, w))
    step_by_step = np.zeros((200, 16), np.float16)
    for place in range(terms):
        step_by_step = (step_by_step.astype(np.float32) + x[:, place, None] * w[place]).astype(np.float16)
    exact = x @ w
    simulated = _summed(exact, terms, 2.0**-11, np.square(x) @ np.square(w))
    ratio = relative_l2(exact, simulated) / relative_l2(exact, step_by_step.astype(np.float32))
    assert 0.8 < ratio < 1.25


def test_squares_that_the_type_does_not_hold_leave_the_size_of_sums() -> None:
    sums = np.ones((4, 4), np.float32)
    plain = _summed(sums, 64, 2.0**-8, None)
    for squares in (np.full((4, 4), np.inf), np.full((4, 4), np.nan)):
        assert np.array_equal(_summed(sums, 64, 2.0**-8, squares), plain)
    narrow = np.ones((4, 4), np.float16)
    assert np.array_equal(_summed(narrow, 64, 2.0**-8, np.zeros((4, 4))), _summed(narrow, 64, 2.0**-8, None))


def test_sums_of_a_table_are_simulated_with_its_indices(tmp_path: Path) -> None:
    """What is squared are numbers that are multiplied, and no index."""
    generator = np.random.default_rng(0)
    held = {"t": generator.normal(size=(9, 64)), "w": generator.normal(size=(64, 5))}
    weights = [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in held.items()]
    nodes = [onnx.helper.make_node("Gather", ["t", "i"], ["r"]), onnx.helper.make_node("MatMul", ["r", "w"], ["y"])]
    ends = [onnx.helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [4])]
    ends += [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4, 5])]
    path = small.save_onnx(tmp_path / "table.onnx", onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], weights))
    network = open_network(_model(Path(path), "onnx"), [TensorSpec("i", (4,), "int64")])
    (tensor,) = network.output_names.values()
    feeds = {network.input_names["i"]: np.array([8, 3, 7, 0])}
    wide, narrow = (
        Simulated(network, ARITHMETICS[name]).segment(tuple(feeds), [tensor]).run(feeds)[tensor]
        for name in ("float16", "float16-accumulated")
    )
    assert 2 * relative_l2(held["t"][[8, 3, 7, 0]] @ held["w"], wide) < relative_l2(wide, narrow) < 1e-2
