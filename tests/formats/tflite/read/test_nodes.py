"""What the nodes of TFLite networks say, against PyTorch and numpy."""

from __future__ import annotations

import functools
from typing import Any

import node_functions
import numpy as np
import pytest
import tflite_networks as networks
import tflite_opened as shelf
from tflite_opened import BATCH, FILES, SYMBOLIC

from conrepair.formats.tflite.read.file import TfliteFile


@pytest.fixture(scope="module")
def opened() -> Any:
    """A model by its name."""
    return functools.cache(shelf.opened)


@pytest.mark.parametrize("name", FILES + SYMBOLIC)
def test_nodes_keep_to_the_vocabulary(opened: Any, name: str) -> None:
    graph = opened(name).network.graph
    assert [error for node in graph.nodes for error in node_functions.vocabulary_errors(node)] == []
    assert len({node.name for node in graph.nodes}) == len(graph.nodes)
    produced = [tensor for node in graph.nodes for tensor in node.outputs]
    assert len(produced) == len(set(produced))
    assert {*produced, *graph.inputs} == set(graph.tensors)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(("float", "float16"))])
def test_nodes_compute_what_was_captured(opened: Any, name: str) -> None:
    assert shelf.computed_nodes(opened(name), 2e-5) >= 3


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(("range", "int8", "int16"))])
def test_nodes_compute_nearly_what_a_quantized_model_does(opened: Any, name: str) -> None:
    assert shelf.computed_nodes(opened(name), 0.05) >= 3


def test_a_fused_activation_is_a_node_of_its_own(opened: Any) -> None:
    graph = opened("convnet-float").network.graph
    clip = next(node for node in graph.nodes if node.op == "Clip")
    convolution = graph.producers[clip.inputs[0]]
    assert (convolution.op, convolution.native, clip.native) == ("Conv", "CONV_2D", "CONV_2D")
    assert convolution.layer == clip.layer == clip.outputs[0]
    assert not graph.tensors[clip.inputs[0]].observable
    assert graph.tensors[clip.outputs[0]].observable


@pytest.mark.parametrize(
    ("kind", "dtype", "bits"),
    [
        ("float", "float32", None),
        ("float16", "float16", None),
        ("dynamic-range", "int8", 8),
        ("full-int8", "int8", 8),
    ],
)
def test_parameters_are_the_keras_weights(opened: Any, kind: str, dtype: str, bits: int | None) -> None:
    kernels = [weights.numpy() for weights in networks.perceptron().trainable_weights[::2]]
    nodes = [node for node in opened(f"perceptron-{kind}").network.graph.nodes if node.op == "MatMul"]
    for node, kernel in zip(nodes, kernels, strict=True):
        weight = node.parameters["weight"]
        assert (weight.dtype, weight.bits, bool(weight.scales)) == (dtype, bits, bits is not None)
        coarse = {"float32": 1e-7, "float16": 1e-3, "int8": 1 / 127}[dtype] * np.abs(kernel).max()
        np.testing.assert_allclose(weight.numpy(), kernel, rtol=0, atol=coarse)
        assert weight.numpy().dtype == np.float32


def test_sizes_are_constants(opened: Any) -> None:
    """What a converter computes from a symbolic batch isn't part of a network of known sizes."""
    one = opened("convnet-symbolic")
    assert "SHAPE" in TfliteFile(one.model.path).kinds
    graph = one.network.graph
    assert not {"Shape", "Slice", "Stack"} & {node.op for node in graph.nodes}
    (reshape,) = (node for node in graph.nodes if node.op == "Reshape")
    assert reshape.attributes["shape"] == (BATCH, 42)
    assert len(reshape.inputs) == 1
