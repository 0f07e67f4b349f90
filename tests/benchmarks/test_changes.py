"""What one file has otherwise than another, counted without anybody's claims."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks.common.changes import changes
from benchmarks.common.plain_graph import PlainGraph
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.files.whole import sha256_of

Edit = Callable[[PlainGraph], None]


def saved(graph: PlainGraph, path: Path) -> Model:
    onnx.save(graph.model(), path)
    return Model("onnx", str(path), sha256_of(path))


@pytest.fixture
def graph() -> PlainGraph:
    """Two equal blocks (a product, a rectifier), a sum with what came in, a product."""
    generator = np.random.default_rng(0)
    net = PlainGraph(17)
    net.inputs["x"] = TensorProto.FLOAT, ["n", 4]
    value = "x"
    for place in range(2):
        weight = net.constant(f"w{place}", generator.standard_normal((4, 4)).astype(np.float32))
        value = net.add(f"relu{place}", "Relu", net.add(f"product{place}", "MatMul", value, weight))
    both = net.add("sum", "Add", value, "x")
    last = net.constant("w2", generator.standard_normal((4, 3)).astype(np.float32))
    net.outputs[net.add("last", "MatMul", both, last)] = TensorProto.FLOAT, ["n", 3]
    return net


def scaled(by: float) -> Edit:
    return lambda net: net.own("product1", 1, (net.constants["w1"] * np.float32(by)).astype(np.float32))


def one_number(net: PlainGraph) -> None:
    weight = net.constants["w2"].copy()
    weight[1, 2] += 1
    net.own("last", 1, weight)


def inserted(net: PlainGraph) -> None:
    other = net.add("twice", "Tanh", "relu0_output_0")
    net.redirect("relu0_output_0", other, but=["twice"])


def from_elsewhere(net: PlainGraph) -> None:
    net.nodes["sum"].input[1] = "relu0_output_0"


def other_sort(net: PlainGraph) -> None:
    net.nodes["relu1"].op_type = "Sigmoid"


@pytest.mark.parametrize(
    ("edit", "layers", "counts"),
    [
        (scaled(2), {"product1"}, (0, 1, 16)),
        (scaled(1 + 1e-6), set(), (0, 0, 0)),
        (one_number, {"last"}, (0, 1, 1)),
        (inserted, {"twice"}, (1, 0, 0)),
        (lambda net: net.bypass("relu0"), {"product0", "product1"}, (1, 0, 0)),
        (from_elsewhere, {"sum"}, (1, 0, 0)),
        (other_sort, {"relu1"}, (1, 0, 0)),
    ],
)
@pytest.mark.parametrize("renamed", [False, True])
def test_what_was_done_is_counted(
    graph: PlainGraph, tmp_path: Path, edit: Edit, layers: set[str], counts: tuple[int, int, int], renamed: bool
) -> None:
    before = saved(graph, tmp_path / "before.onnx")
    edit(graph)
    names = {name: f"n{place}" if renamed else name for place, name in enumerate(graph.nodes)}
    model = graph.model()
    for node in model.graph.node:
        node.name = names[node.name]
    onnx.save(model, tmp_path / "after.onnx")
    after = Model("onnx", str(tmp_path / "after.onnx"), sha256_of(tmp_path / "after.onnx"))
    found = changes(before, after)
    assert found.layers == {names[layer] for layer in layers}
    assert (found.operators, found.parameters, found.elements) == counts


def test_what_is_gone_counts_with_its_numbers(graph: PlainGraph, tmp_path: Path) -> None:
    before = saved(graph, tmp_path / "before.onnx")
    graph.bypass("product1")
    found = changes(before, saved(graph, tmp_path / "after.onnx"))
    assert (found.operators, found.parameters, found.elements) == (1, 0, 16)
    assert found.layers == {"relu0", "relu1"}


def test_exchanged_outputs_are_a_change(graph: PlainGraph, tmp_path: Path) -> None:
    graph.outputs["sum_output_0"] = TensorProto.FLOAT, ["n", 4]
    before = saved(graph, tmp_path / "before.onnx")
    model = graph.model()
    outputs = [helper.make_tensor_value_info(item.name, TensorProto.FLOAT, None) for item in model.graph.output]
    del model.graph.output[:]
    model.graph.output.extend(reversed(outputs))
    onnx.save(model, tmp_path / "after.onnx")
    after = Model("onnx", str(tmp_path / "after.onnx"), sha256_of(tmp_path / "after.onnx"))
    found = changes(before, after)
    assert (found.operators, found.parameters, found.layers) == (1, 0, {"last", "sum"})
