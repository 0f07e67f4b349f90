"""What a fault introduces shows where it is, and only there; what follows from it shows in the full run."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx_networks
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper
from random_graphs import Computed, drawn_feeds, graph_of, graphs

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.run.activations import Activations, as_stored
from conrepair.diagnosis.localization.run.measurement import Cut, measure
from conrepair.diagnosis.localization.run.reference import Reference
from conrepair.formats.networks.network import Network
from conrepair.ground.data.tensor_spec import Quantization
from conrepair.ground.graph.layer_graph import LayerGraph, Tensor


def same(network: Network) -> list[Pair]:
    """Every real tensor paired with itself."""
    graph = network.graph
    names = [name for name in graph.order if graph.tensors[name].observable and graph.tensors[name].is_real]
    shapes = {name: graph.tensors[name].shape or () for name in names}
    return [Pair(name, name, layouts(shapes[name], shapes[name])[0], 1.0, "") for name in names]


def measured(
    source: Network, target: Network, batches: list[dict[str, np.ndarray]], **options: object
) -> dict[str, Cut]:
    with tempfile.TemporaryDirectory() as folder:
        first, *rest = batches
        opinion = options.pop("second_opinion", lambda: None)
        reference = Reference(source, Path(folder) / "source", second_opinion=opinion)  # type: ignore[arg-type]
        theirs = Activations(target, first, Path(folder) / "target")
        feeds = [(batch, batch) for batch in rest]
        reference.batch(0, first)
        cuts = measure(reference, same(source), theirs, feeds, **options)  # type: ignore[arg-type]
    return {cut.pair.target: cut for cut in cuts}


@settings(deadline=None, max_examples=60)
@given(graphs(), st.data())
def test_errors_are_introduced_at_the_fault_only(graph: LayerGraph, data: st.DataObject) -> None:
    faulty = data.draw(st.sampled_from(graph.nodes))
    source, target = Computed(graph), Computed(graph, {faulty.name: lambda x: 1.5 * x + np.float32(0.7)})
    cuts = measured(source, target, [drawn_feeds(graph, seed) for seed in (0, 1)])
    assert set(cuts) == {name for node in graph.nodes for name in node.outputs}
    for name, cut in cuts.items():
        if name in faulty.outputs:
            assert cut.introduced.relative_l2 > 0.1
            assert cut.introduced.relative_l2 == cut.full.relative_l2
        else:
            assert cut.introduced.relative_l2 == 0
            reached = faulty.name in {node.name for node in graph.between([], [name])}
            assert reached or cut.full.relative_l2 == 0  # what's reached may be saturated, and the same nevertheless


@settings(deadline=None, max_examples=30)
@given(graphs(), st.data())
def test_floors_are_the_sources(graph: LayerGraph, data: st.DataObject) -> None:
    faulty = data.draw(st.sampled_from(graph.nodes))
    source = Computed(graph)
    other = Computed(graph, dict.fromkeys((node.name for node in graph.nodes), lambda x: x * np.float32(1 + 1e-6)))
    feeds = [drawn_feeds(graph)]
    clean = measured(source, Computed(graph), feeds, second_opinion=lambda: other)
    broken = measured(source, Computed(graph, {faulty.name: lambda x: -x}), feeds, second_opinion=lambda: other)
    first = graph.nodes[0].outputs[0]  # what lies behind may be saturated
    assert clean[first].floor.disturbed > 0
    for name, cut in clean.items():
        floor = broken[name].floor
        assert (cut.floor.disturbed, cut.floor.other) == (floor.disturbed, floor.other)
        assert cut.floor.other == pytest.approx(1e-6, rel=0.2)


def edited(path: Path, change: dict[str, float]) -> Path:
    """The file with some initializers multiplied."""
    proto = onnx.load(path)
    for tensor in proto.graph.initializer:
        if tensor.name in change:
            array = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array((array * change[tensor.name]).astype(array.dtype), tensor.name))
    target = path.with_name("edited.onnx")
    onnx.save(proto, target)
    return target


def opened_pair(name: str, folder: Path, change: dict[str, float]) -> tuple[Network, Network, dict[str, np.ndarray]]:
    source, feeds, model = onnx_networks.opened(name, folder)
    faulty = onnx_networks.model_of("onnx", edited(Path(model.path), change))
    return source, onnx_networks.open_network(faulty, onnx_networks.specs(faulty, feeds)), feeds


@pytest.mark.parametrize(
    ("name", "weight", "guilty"),
    [
        ("convnet", "first", {"c1"}),
        ("convnet", "dense", {"g"}),
        ("residual", "inner", {"c"}),
        ("encoder", "wk", {"k"}),
        ("lstm", "R", {"all", "state"}),
    ],
)
def test_two_faults_in_one_pass_over_real_networks(name: str, weight: str, guilty: set[str], tmp_path: Path) -> None:
    source, target, feeds = opened_pair(name, tmp_path, {weight: 1.25})
    cuts = measured(source, target, [feeds])
    assert {tensor for tensor, cut in cuts.items() if cut.introduced.relative_l2 > 1e-4} == guilty
    order = source.graph.order
    first = min(order[tensor] for tensor in guilty)
    assert all(cut.full.relative_l2 < 1e-5 for tensor, cut in cuts.items() if order[tensor] < first)
    output = cuts[source.graph.outputs[0]]
    assert output.full.relative_l2 > 1e-4


def test_several_faults_are_found_in_one_pass(tmp_path: Path) -> None:
    source, target, feeds = opened_pair("convnet", tmp_path, {"first": 1.25, "depth": 0.5, "bias": 3.0})
    cuts = measured(source, target, [feeds])
    found = {tensor: cut.introduced.relative_l2 for tensor, cut in cuts.items() if cut.introduced.relative_l2 > 1e-5}
    assert set(found) == {"c1", "c2", "g"}
    assert found["c1"] == pytest.approx(0.25, rel=1e-4)
    assert found["c2"] == pytest.approx(0.5, rel=1e-4)


def test_floors_of_a_real_network_explain_another_arithmetic(tmp_path: Path) -> None:
    """What ONNX Runtime's optimizations change lies within what disturbed inputs change, give or take."""
    source, feeds, _ = onnx_networks.opened("encoder", tmp_path)
    optimized = source.second_opinion()
    cuts = measured(source, optimized, [feeds], second_opinion=lambda: optimized)
    for name, cut in cuts.items():
        assert cut.floor.other == pytest.approx(cut.introduced.relative_l2, rel=1e-3, abs=1e-9), name
        assert cut.introduced.relative_l2 < 10 * max(cut.floor.disturbed, 1e-6)


def test_an_output_of_another_size_is_a_mismatch_everywhere() -> None:
    graph = graph_of(["x"], [("a", "Sin", ["x"], ["p"]), ("b", "Tanh", ["p"], ["q"])], ["q"])
    source = Computed(graph)
    cut_short = Computed(graph, {"b": lambda x: x[:, :2]})
    cuts = measured(source, cut_short, [drawn_feeds(graph)])
    assert cuts["q"].introduced.mismatched == 24
    assert cuts["q"].introduced.relative_l2 == np.inf
    assert cuts["p"].introduced.relative_l2 == 0


def test_arrays_are_fed_in_the_networks_own_types() -> None:
    array = np.linspace(-1, 1, 6).reshape(2, 3)
    assert as_stored(array, Tensor("t", (2, 3), "float16")).dtype == np.float16
    assert as_stored(array.T, Tensor("t", (3, 2), "float32")).flags.c_contiguous
    quantized = Tensor("t", (2, 3), "int8", Quantization(0.1, 3))
    assert as_stored(array.astype(np.float32), quantized).dtype == np.float32
    assert as_stored(np.arange(3), Tensor("t", (3,), "int64")).dtype == np.int64
