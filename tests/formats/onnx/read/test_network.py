"""ONNX networks: captured, cut and fed, against ONNX Runtime's own run of the whole file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_networks import NETWORKS, all_values, captured, observable, opened, specs
from small_models import model_of, relative_l2

from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.formats.onnx.read.network import OnnxNetwork, open_network
from conrepair.ground.graph.operators import OPERATORS

pytestmark = pytest.mark.parametrize("name", NETWORKS)


def test_capturing_everything_gives_what_the_file_gives(name: str, tmp_path: Path) -> None:
    network, feeds, model = opened(name, tmp_path)
    values = captured(network, feeds)
    reference = OnnxRunnable(model).run(feeds)
    assert network.graph.outputs == tuple(reference)
    for output, array in reference.items():
        np.testing.assert_array_equal(values[network.output_names[output]], array)
    tensors = network.graph.tensors
    if name != "function":  # whose inner values the file's graph doesn't have
        stored = [item for item in values if tensors[item].quantization is None]
        for item, array in all_values(model.path, stored, feeds).items():
            np.testing.assert_array_equal(values[item], array)
    for item, array in values.items():
        assert tensors[item].shape == array.shape
        assert tensors[item].dtype == array.dtype.name or tensors[item].quantization is not None


def test_every_piece_alone_gives_the_same(name: str, tmp_path: Path) -> None:
    network, feeds, _ = opened(name, tmp_path)
    known = {**feeds, **captured(network, feeds)}
    cuts = [*network.graph.inputs, *observable(network, real=True)]
    for wanted in observable(network, real=True):
        segment = network.segment(cuts, [wanted])
        assert set(segment.needs) == _read(network, wanted, cuts)
        result = segment.run({item: known[item] for item in segment.needs})[wanted]
        assert relative_l2(known[wanted], result) < 1e-5


def test_all_pieces_in_one_segment_give_the_same(name: str, tmp_path: Path) -> None:
    network, feeds, _ = opened(name, tmp_path)
    values = captured(network, feeds)
    cuts = [*network.graph.inputs, *observable(network, real=True)]
    result = network.segment(cuts, list(values)).run({**feeds, **values})
    for item, array in values.items():
        np.testing.assert_allclose(result[item], array, rtol=1e-5, atol=1e-6)


def test_changed_value_reaches_its_readers_only(name: str, tmp_path: Path) -> None:
    network, feeds, _ = opened(name, tmp_path)
    values = captured(network, feeds)
    cuts = [*network.graph.inputs, *observable(network, real=True)]
    segment = network.segment(cuts, list(values))
    for cut in (item for item in segment.needs if item in values):
        result = segment.run({**feeds, **values, cut: values[cut] * np.float32(0.5) - np.float32(0.75)})
        differing = {item for item, array in values.items() if not np.array_equal(result[item], array)}
        # The cut itself is computed from what's in front of it.
        reached = {item for item in values if cut in _read(network, item, cuts)}
        assert differing <= reached
        assert differing or not any(network.graph.tensors[item].is_real for item in reached)


def test_random_cuts_give_the_same(name: str, tmp_path: Path) -> None:
    network, feeds, _ = opened(name, tmp_path)
    values = captured(network, feeds)
    names = np.array(observable(network))
    for seed in range(6):
        generator = np.random.default_rng(seed)
        cuts = names[generator.random(len(names)) < 0.4].tolist()
        wanted = names[generator.random(len(names)) < 0.5].tolist() or names[-1:].tolist()
        segment = network.segment([*network.graph.inputs, *cuts], wanted)
        assert set(segment.needs) <= {*network.graph.inputs, *cuts}
        assert segment.wanted == tuple(wanted)
        result = segment.run({item: {**feeds, **values}[item] for item in segment.needs})
        for item in wanted:
            np.testing.assert_allclose(result[item], values[item], rtol=1e-5, atol=1e-6)


def test_second_opinion_differs_by_rounding(name: str, tmp_path: Path) -> None:
    network, feeds, _ = opened(name, tmp_path)
    other = network.second_opinion()
    assert other.graph == network.graph
    outputs = list(network.graph.outputs)
    one = network.segment(network.graph.inputs, outputs).run(feeds)
    two = other.segment(other.graph.inputs, outputs).run(feeds)
    for item in outputs:
        # A quantized value may be rounded to its neighbour.
        np.testing.assert_allclose(two[item], one[item], rtol=1e-4, atol=0.021 if name == "quantized" else 1e-5)


def test_nodes_keep_to_the_vocabulary(name: str, tmp_path: Path) -> None:
    network, _, _ = opened(name, tmp_path)
    graph = network.graph
    assert len({node.name for node in graph.nodes}) == len(graph.nodes)
    known = set(graph.inputs)
    for node in graph.nodes:
        assert set(filter(None, node.inputs)) <= known
        known.update(node.outputs)
        if node.op in OPERATORS:
            assert set(node.attributes) == set(OPERATORS[node.op].attributes), node
            assert set(node.parameters) <= set(OPERATORS[node.op].parameters), node
        for value in node.attributes.values():
            assert isinstance(value, int | float | str | bool | tuple | None)
        for parameter in node.parameters.values():
            array = parameter.numpy()
            assert array.shape == parameter.shape
            assert parameter.bits is not None or array.dtype.name == parameter.dtype
    assert known == set(graph.tensors)


def test_external_weights_give_the_same(name: str, tmp_path: Path) -> None:
    network, feeds, model = opened(name, tmp_path)
    (tmp_path / "external").mkdir()
    path = tmp_path / "external" / "model.onnx"
    onnx.save(onnx.load(model.path), path, save_as_external_data=True, location="weights", size_threshold=65)
    moved = model_of("onnx", path)
    one, two = captured(network, feeds), captured(open_network(moved, specs(moved, feeds)), feeds)
    assert list(one) == list(two)
    for item, array in one.items():
        np.testing.assert_array_equal(two[item], array)


def _read(network: OnnxNetwork, wanted: str, cuts: Sequence[str]) -> set[str]:
    """The cuts that the graph says a tensor is computed from."""
    nodes = network.graph.between(cuts, [wanted])
    return {item for node in nodes for item in node.inputs} & set(cuts)
