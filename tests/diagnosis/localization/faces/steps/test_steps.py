"""Fused steps against what ONNX Runtime computes of the graph as it's written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import node_functions
import numpy as np
import onnx_networks
import pytest
import small_models as small
from network_checks import captured

from conrepair.diagnosis.localization.faces.region import side
from conrepair.diagnosis.localization.faces.steps.readings import as_written, fused
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.formats.networks.network import Network, open_network
from conrepair.ground.graph.layer_graph import LayerGraph, Node

Array = np.ndarray
PICTURE = np.random.default_rng(0).normal(size=(2, 4, 4, 4)).astype(np.float32)  # every axis may be taken for another
VECTOR = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)


def drawn(*shape: int, seed: int = 0) -> Array:
    return onnx_networks.drawn(*shape, seed=seed)


CONSTANTS: dict[str, Array] = {
    "w": drawn(4, 4, 3, 3, seed=1),
    "w_one": drawn(4, 4, 1, 1, seed=2),
    "w_depth": drawn(4, 1, 3, 3, seed=3),
    "w_half": drawn(4, 2, 3, 3, seed=4),  # two groups; of a ConvTranspose [in, out / group, ...]
    "w_wide": drawn(4, 3, 3, 3, seed=5),  # of a ConvTranspose with two groups: six outputs
    "m": drawn(4, 4, seed=6),
    "b": drawn(4, seed=7),
    "b6": drawn(6, seed=8),
    "column": drawn(4, 1, 1, seed=9),
    "column6": 1 + np.abs(drawn(6, 1, 1, seed=9)),
    "batch_column": drawn(1, 4, 1, 1, seed=10),
    "two": np.float32(2.0),
    "one_number": np.array([3.0], np.float32),
    "scale": drawn(4, seed=11) + 1, "shift": drawn(4, seed=12), "mean": drawn(4, seed=13),
    "variance": np.abs(drawn(4, seed=14)) + 0.2,
    "around": np.array([0, 0, 1, 0, 0, 0, 1, 2]),
    "crop": np.array([0, 0, -1, -1, 0, 0, 0, 0]),
    "channels": np.array([0, 1, 0, 0, 0, 0, 0, 0]),
    "lowest": np.float32(-np.inf), "five": np.float32(5.0), "zero": np.float32(0.0),
}  # fmt: skip
NORM = "BatchNormalization <epsilon = 0.01> ({}, scale, shift, mean, variance)"

FOLDED: dict[str, tuple[str, list[str]]] = {
    "norm": (f"h = Conv (x, w)\n y = {NORM.format('h')}", ["Conv"]),
    "norm of a bias": (f"h = Conv (x, w, b)\n y = {NORM.format('h')}", ["Conv"]),
    "depthwise norm": (f"h = Conv <group = 4> (x, w_depth)\n y = {NORM.format('h')}", ["Conv"]),
    "grouped norm": (f"h = Conv <group = 2> (x, w_half, b)\n y = {NORM.format('h')}", ["Conv"]),
    "two norms": (f"h = Conv (x, w)\n n = {NORM.format('h')}\n y = {NORM.format('n')}", ["Conv"]),
    "bias": ("h = Conv (x, w)\n y = Add (h, column)", ["Conv"]),
    "bias and bias": ("h = Conv (x, w, b)\n y = Add (batch_column, h)", ["Conv"]),
    "minus": ("h = Conv (x, w, b)\n y = Sub (h, column)", ["Conv"]),
    "factor": ("h = Conv (x, w, b)\n y = Mul (h, batch_column)", ["Conv"]),
    "divisor": ("h = Conv (x, w, b)\n y = Div (h, two)", ["Conv"]),
    "factor and bias": ("h = Conv (x, w, b)\n f = Mul (h, one_number)\n y = Add (f, column)", ["Conv"]),
    "pad": ("p = Pad (x, around)\n y = Conv (p, w)", ["Conv"]),
    "pad and pads": ("p = Pad (x, around)\n y = Conv <pads = [1, 1, 0, 0]> (p, w)", ["Conv"]),
    "pad and norm": (f"p = Pad (x, around)\n h = Conv (p, w)\n y = {NORM.format('h')}", ["Conv"]),
    "pad of a maximum": (
        "p = Pad (x, around, lowest)\n y = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (p)", ["MaxPool"],
    ),
    "pad of a mean": ("p = Pad (x, around)\n y = AveragePool <kernel_shape = [3, 3]> (p)", ["AveragePool"]),
    "transposed": (f"h = ConvTranspose (x, w)\n y = {NORM.format('h')}", ["ConvTranspose"]),
    "transposed, wide": (
        "h = ConvTranspose <group = 2> (x, w_wide, b6)\n y = Mul (h, column6)", ["ConvTranspose"],
    ),
    "transposed, wide, plus": (
        "h = ConvTranspose <group = 2> (x, w_wide)\n f = Div (h, column6)\n y = Add (f, column6)", ["ConvTranspose"],
    ),
    "matrix": ("h = MatMul (v, m)\n y = Add (h, b)", ["MatMul"]),
    "matrix and factor": ("h = Gemm (v, m, b)\n f = Mul (b, h)\n y = Sub (f, b)", ["MatMul"]),
    "matrix and norm": (f"h = Gemm <transB = 1> (v, m, b)\n y = {NORM.format('h')}", ["MatMul"]),
    # What looks like these, and isn't.
    "along the width": ("h = Conv <pads = [1, 1, 1, 1]> (x, w)\n y = Add (h, b)", ["Conv", "Add"]),
    "along the rows": ("h = MatMul (v4, m)\n y = Add (h, down)", ["MatMul", "Add"]),
    "constant first": ("h = Conv (x, w)\n y = Sub (column, h)", ["Conv", "Sub"]),
    "reciprocal": ("h = Conv (x, w)\n y = Div (column, h)", ["Conv", "Div"]),
    "padded with fives": ("p = Pad (x, around, five)\n y = Conv (p, w)", ["Pad", "Conv"]),
    "reflected": ('p = Pad <mode = "reflect"> (x, around)\n y = Conv (p, w)', ["Pad", "Conv"]),
    "maximum with zeros": (
        "p = Pad (x, around)\n y = MaxPool <kernel_shape = [3, 3]> (p)", ["Pad", "MaxPool"],
    ),
    "mean with pads": (
        "p = Pad (x, around)\n y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (p)",
        ["Pad", "AveragePool"],
    ),
    "padded channels": ("p = Pad (x, channels)\n y = Conv (p, w_five)", ["Pad", "Conv"]),
    "cropped": ("p = Pad (x, crop)\n y = Conv <pads = [1, 1, 1, 1]> (p, w)", ["Pad", "Conv"]),
    "read twice": (
        "h = Conv <pads = [1, 1, 1, 1]> (x, w)\n f = Mul (h, column)\n y = Add (f, h)", ["Conv", "Mul", "Add"],
    ),
}  # fmt: skip


def opened(lines: str, folder: Path) -> tuple[Network, dict[str, Array]]:
    feeds = {"x": PICTURE} if "(x" in lines else {"v4": VECTOR[:4]} if "v4" in lines else {"v": VECTOR}
    [(name, array)] = feeds.items()
    given = {**CONSTANTS, "w_five": drawn(4, 5, 3, 3), "down": drawn(4, 1, seed=3)}
    used = {
        key: value for key, value in given.items() if f"{key})" in lines or f"{key}," in lines or f"({key}" in lines
    }
    shape = ", ".join(map(str, array.shape))
    text = f"small (float[{shape}] {name}) => (float[{', '.join('abcd'[: array.ndim])}] y) {{ {lines} }}"
    model = onnx_networks.model_of("onnx", onnx_networks.written(folder / "net.onnx", text, used))
    return onnx_networks.open_network(model, onnx_networks.specs(model, feeds)), feeds


def computed(steps: Sequence[Step], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """What the steps say, by the vocabulary."""
    values = dict(feeds)
    for step in steps:
        node = Node(
            "step", "", step.op, "", step.inputs, step.outputs, step.attributes, step.parameters, step.channels_last
        )
        result = node_functions.compute(_single(node), [values[name] for name in step.inputs])
        assert result is not None, step.op
        values[step.outputs[0]] = result[0]
    return values


def _single(node: Node) -> Node:
    """Parameters in the type that ONNX Runtime takes beside the inputs."""
    cast = {
        role: replace(item, load=lambda item=item: item.numpy().astype(np.float32))
        for role, item in node.parameters.items()
    }
    return replace(node, parameters=cast)


def whole(graph: LayerGraph) -> list[Step]:
    return fused(side(graph, set(graph.inputs), graph.outputs[0]))


@pytest.mark.parametrize("name", FOLDED)
def test_fused_steps_compute_what_the_graph_does(name: str, tmp_path: Path) -> None:
    lines, operators = FOLDED[name]
    network, feeds = opened(lines, tmp_path)
    steps = whole(network.graph)
    assert [step.op for step in steps] == operators
    found = computed(steps, feeds)[network.graph.outputs[0]]
    expected = captured(network, feeds)[network.graph.outputs[0]]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FOLDED)
def test_steps_as_written_are_the_nodes(name: str, tmp_path: Path) -> None:
    network, feeds = opened(FOLDED[name][0], tmp_path)
    steps = as_written(side(network.graph, set(network.graph.inputs), network.graph.outputs[0]))
    assert [step.layer for step in steps] == [node.layer for node in network.graph.nodes]
    assert "y" in computed(steps, feeds)


def test_a_fold_keeps_the_names_of_all_its_layers(tmp_path: Path) -> None:
    network, _ = opened(
        f"[pad] p = Pad (x, around)\n [conv] h = Conv (p, w)\n [norm] y = {NORM.format('h')}", tmp_path
    )
    [step] = whole(network.graph)
    assert step.layer == "conv"
    assert set(step.layers) == {"pad", "conv", "norm"}


def test_a_result_of_the_network_is_not_folded_away(tmp_path: Path) -> None:
    text = """small (float[2, 4, 4, 4] x) => (float[2, 4, a, b] y, float[2, 4, a, b] h) {
        h = Conv (x, w)
        y = Add (h, column)
    }"""
    used = {name: CONSTANTS[name] for name in ("w", "column")}
    model = onnx_networks.model_of("onnx", onnx_networks.written(tmp_path / "net.onnx", text, used))
    network = onnx_networks.open_network(model, onnx_networks.specs(model, {"x": PICTURE}))
    assert [step.op for step in whole(network.graph)] == ["Conv", "Add"]


def test_normalization_in_training_mode_is_not_folded(tmp_path: Path) -> None:
    norm = NORM.format("h").replace("<", "<training_mode = 1, ")
    network, _ = opened(f"h = Conv (x, w)\n y, m1, v1 = {norm}", tmp_path)
    assert [step.op for step in whole(network.graph)] == ["Conv", "BatchNormalization"]


def test_channels_last(tmp_path: Path) -> None:
    """A Keras network: pads, normalizations and activations of pictures whose channels are the last axis."""
    path = tmp_path / "net.keras"
    small.keras_convnet().save(path)
    model = small.model_of("keras", path)
    feeds = {"image": small.images(channels_last=True)}
    spec = small.TensorSpec("image", feeds["image"].shape, "float32")
    network = open_network(model, [spec])
    given = {network.input_names["image"]: feeds["image"]}
    steps = whole(network.graph)
    assert not {"BatchNormalization", "Pad"} & {step.op for step in steps}
    values = computed(steps, given)
    expected = captured(network, feeds)
    np.testing.assert_allclose(
        values[network.graph.outputs[0]], expected[network.graph.outputs[0]], rtol=1e-4, atol=1e-4
    )
