"""TFLite networks with state, loops, open shapes, few bits; the second opinion; files that are no models."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import node_functions
import numpy as np
import pytest
import small_models as small
import tensorflow as tf
import tflite_files as files
import tflite_networks as networks
import tflite_opened as shelf
from tflite_opened import Opened

from conrepair.formats.tflite.load.framework import FRAMEWORK
from conrepair.formats.tflite.read.network import open_network
from conrepair.ground.runtime.errors import DataError, ModelLoadError


@pytest.fixture(scope="module")
def opened() -> Any:
    """A model by its name."""
    return functools.cache(shelf.opened)


@pytest.mark.parametrize("options", [{}, {"time_major": True}, {"peepholes": True}])
def test_the_fused_lstm(tmp_path: Path, options: dict[str, bool]) -> None:
    one = Opened(files.fused_lstm(tmp_path / "lstm.tflite", **options))
    (node,) = one.network.graph.nodes
    assert node.op == "LSTM"
    assert node_functions.vocabulary_errors(node) == []
    assert shelf.computed_nodes(one, 2e-5) == 1


def test_state_does_not_go_from_one_run_to_the_next(tmp_path: Path) -> None:
    one = Opened(files.fused_lstm(tmp_path / "lstm.tflite"))
    segment, runnable = one.network.segment(["rows"], ["result"]), FRAMEWORK.load(one.model)
    first = segment.run(one.given)["result"]
    np.testing.assert_array_equal(segment.run(one.given)["result"], first)
    for _ in range(2):
        np.testing.assert_allclose(runnable.run(one.feeds)["result"], first, rtol=1e-6)


def test_variables_that_are_assigned(tmp_path: Path) -> None:
    one = Opened(networks.counting(tmp_path / "counting.tflite"))
    graph = one.network.graph
    expected = (networks.START + one.given[graph.inputs[0]]) * one.given[graph.inputs[0]]
    segment = one.network.segment(graph.inputs, graph.outputs)
    for _ in range(2):
        np.testing.assert_allclose(segment.run(one.given)[graph.outputs[0]], expected, rtol=1e-6)
    np.testing.assert_allclose(FRAMEWORK.load(one.model).run(one.feeds)["output_0"], expected, rtol=1e-6)
    total = next(node for node in graph.nodes if node.op == "Add").outputs[0]
    fed = {graph.inputs[0]: one.given[graph.inputs[0]], total: np.full((2, 3), 7, np.float32)}
    result = one.network.segment([*fed], graph.outputs).run(fed)
    np.testing.assert_allclose(result[graph.outputs[0]], 7 * one.given[graph.inputs[0]], rtol=1e-6)


_PROBE_OFTEN = """
import sys
import numpy as np
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.formats.tflite.read.file import TfliteFile
from conrepair.formats.tflite.read.shapes import probe
file = TfliteFile(sys.argv[1])
for _ in range(1000):
    # What's left in memory decides whether a handle that's read as an object's address is one.
    rest = [np.full(2**power, 0x41, np.uint8) for power in range(3, 11)] * 3
    del rest
    probe(file, [TensorSpec(sys.argv[2], (2, 3), "float32")])
"""


def test_handles_of_variables_are_never_viewed(tmp_path: Path) -> None:
    one = Opened(networks.counting(tmp_path / "counting.tflite"))
    command = [sys.executable, "-c", _PROBE_OFTEN, one.model.path, one.inputs[0].name]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def test_a_loop_is_one_node_that_can_be_cut_before_and_behind(opened: Any) -> None:
    one = opened("gru-float")
    (loop,) = (node for node in one.network.graph.nodes if node.op == "WHILE")
    fed = [name for name in loop.inputs if name]
    tensors = one.network.graph.tensors
    wanted = [name for name in loop.outputs if name in one.network.graph.order and tensors[name].observable]
    assert wanted
    result = one.network.segment(fed, wanted).run(one.captured)
    for name in wanted:
        np.testing.assert_allclose(result[name], one.captured[name], rtol=1e-6)


def test_shapes_that_only_running_tells(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return tf.exp(tf.boolean_mask(x, x > 0)) * 2.0

    one = Opened(networks.TensorFlowCase(function, [(4, 3)], "").convert(tmp_path / "mask.tflite"))
    graph = one.network.graph
    assert graph.tensors[graph.outputs[0]].shape is None
    picked = one.given[graph.inputs[0]]
    np.testing.assert_allclose(one.captured[graph.outputs[0]], 2 * np.exp(picked[picked > 0]), rtol=1e-6)
    cut = next(node for node in graph.nodes if node.op == "Exp").inputs[0]
    segment = one.network.segment([cut], graph.outputs)
    for values in (small.vectors(1, 5)[0], small.vectors(1, 2)[0]):
        np.testing.assert_allclose(segment.run({cut: values})[graph.outputs[0]], 2 * np.exp(values), rtol=1e-6)


def test_a_result_that_is_constant(tmp_path: Path) -> None:
    numbers = np.arange(6, dtype=np.float32)
    case = networks.TensorFlowCase(
        lambda x: {"a": x * 2, "b": tf.constant(numbers) + 0 * tf.size(x, tf.float32)}, [(2, 3)], ""
    )
    one = Opened(case.convert(tmp_path / "constant.tflite"))
    for key, array in FRAMEWORK.load(one.model).run(one.feeds).items():
        np.testing.assert_array_equal(one.captured[one.network.output_names[key]], array)


def test_a_quantized_cut_takes_real_numbers(opened: Any) -> None:
    one = opened("convnet-full-int8")
    graph = one.network.graph
    cut = one.cuts[2]
    quantization = graph.tensors[cut].quantization
    assert quantization is not None
    segment = one.network.segment([cut], graph.outputs)
    fine = one.captured[cut] + np.float32(0.3 * quantization.scale)
    assert one.captured[cut].dtype == np.float32
    np.testing.assert_array_equal(
        segment.run({cut: fine})[graph.outputs[0]], segment.run({cut: one.captured[cut]})[graph.outputs[0]]
    )


def test_weights_of_four_bits(tmp_path: Path) -> None:
    model, weights = files.weights_of_four_bits(tmp_path / "four.tflite")
    one = Opened(model)
    (node,) = one.network.graph.nodes
    weight = node.parameters["weight"]
    assert (weight.dtype, weight.bits, weight.scales, weight.shape) == ("int4", 4, (0.25,), (5, 3))
    np.testing.assert_array_equal(weight.numpy(), weights.T)
    # The kernel rounds what comes in to eight bits.
    assert small.relative_l2(one.given["rows"] @ weights.T, one.captured["result"]) < 0.02


def test_tensors_that_share_a_name(tmp_path: Path) -> None:
    one = Opened(files.names_that_repeat(tmp_path / "names.tflite"))
    graph = one.network.graph
    assert graph.inputs == ("t",)
    assert len({*graph.inputs, *graph.outputs}) == 3
    third, result = graph.outputs
    np.testing.assert_allclose(one.captured[third], 2 * np.maximum(2 * one.given["t"], 0), rtol=1e-6)
    np.testing.assert_allclose(one.captured[result], 2 * one.captured[third], rtol=1e-6)


# --- The second opinion, and files that aren't models ---


@pytest.mark.parametrize("name", ["residual-float", "attention-float", "residual-full-int8", "gru-float"])
def test_the_second_opinion_is_the_same_graph_in_other_arithmetic(opened: Any, name: str) -> None:
    one = opened(name)
    other = one.network.second_opinion()
    assert other.graph.nodes == one.network.graph.nodes
    result = other.segment(other.graph.inputs, one.cuts).run(one.given)
    differing = 0
    for cut in one.cuts:
        size = float(np.abs(one.captured[cut]).max())
        quantization = one.network.graph.tensors[cut].quantization
        step = 4 * quantization.scale if quantization else 0.0
        np.testing.assert_allclose(result[cut], one.captured[cut], rtol=1e-4, atol=max(1e-5 * size, step))
        differing += not np.array_equal(result[cut], one.captured[cut])
    assert differing or "int8" in name or "gru" in name


def test_operators_without_a_reference_kernel(tmp_path: Path) -> None:
    one = Opened(files.without_reference_kernel(tmp_path / "elu.tflite"))
    other = one.network.second_opinion()
    (result,) = one.network.graph.outputs
    expected = tf.nn.elu(one.given["rows"] + [0.5, -1, -2]).numpy()
    for network in (one.network, other):
        computed = network.segment(network.graph.inputs, [result]).run(one.given)[result]
        np.testing.assert_allclose(computed, expected, rtol=1e-6, atol=1e-6)


def test_damaged_files(opened: Any, tmp_path: Path) -> None:
    source = opened("perceptron-float")
    for path in small.damaged_copies(Path(source.model.path), tmp_path):
        if path.stem == "without_end":
            continue
        with pytest.raises(ModelLoadError):
            open_network(small.model_of("tflite", path), source.inputs)


def test_sizes_must_be_known(opened: Any) -> None:
    one = opened("convnet-symbolic")
    with pytest.raises(DataError, match="Declare"):
        open_network(one.model, FRAMEWORK.load(one.model).inputs)
