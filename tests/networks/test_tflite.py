"""TFLite networks against the framework's own run, and against PyTorch and numpy for what their nodes mean."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import canonical_operators as canonical
import numpy as np
import pytest
import small_models as small
import tensorflow as tf
import tflite_files as files
import tflite_networks as networks

from conrepair.frameworks.model import Model
from conrepair.frameworks.tflite import FRAMEWORK
from conrepair.graph.operators import OPERATORS
from conrepair.networks.tflite import TfliteNetwork, open_network
from conrepair.networks.tflite_file import TfliteFile
from conrepair.runtime.errors import DataError, ModelLoadError

BATCH = 3
# TensorFlow's converter itself ends the process when it quantizes a loop.
KINDS = {name: ("float",) if name in {"lstm", "gru"} else ("float", "float16", "dynamic-range", "full-int8")
         for name in networks.NETWORKS}  # fmt: skip
FILES = [f"{name}-{kind}" for name, kinds in KINDS.items() for kind in kinds] + ["residual-int16"]
# Loops are converted with a fixed batch only.
SYMBOLIC = ["convnet", "residual", "attention", "pair", "text"]


@dataclass(frozen=True)
class Opened:
    """A model with its network and one batch."""

    model: Model

    @cached_property
    def inputs(self) -> list[Any]:
        return networks.concrete(self.model, BATCH)

    @cached_property
    def network(self) -> TfliteNetwork:
        return open_network(self.model, self.inputs)

    @cached_property
    def feeds(self) -> dict[str, Any]:
        return networks.feeds(self.inputs)

    @cached_property
    def given(self) -> dict[str, Any]:
        """The feeds by the names of tensors."""
        return {self.network.input_names[name]: array for name, array in self.feeds.items()}

    @property
    def observable(self) -> list[str]:
        graph = self.network.graph
        return [name for name in graph.order if graph.tensors[name].observable and name not in graph.inputs]

    @property
    def cuts(self) -> list[str]:
        return [name for name in self.observable if self.network.graph.tensors[name].is_real]

    @cached_property
    def captured(self) -> dict[str, Any]:
        """Every observable tensor, inputs included."""
        return {**self.given, **self.network.segment(self.network.graph.inputs, self.observable).run(self.given)}

    def near(self, name: str) -> dict[str, float]:
        """Differences that the same kernels may show: none but for a quantized tensor's step."""
        quantization = self.network.graph.tensors[name].quantization
        step = quantization.scale if quantization else 0.0
        return {"rtol": 1e-5, "atol": max(step * 1.001, 1e-6 * float(np.abs(self.captured[name]).max(initial=0)))}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Each network, converted when it's first asked for."""
    folder, made = tmp_path_factory.mktemp("tflite"), {}

    def get(name: str) -> Opened:
        if name not in made:
            what, kind = name.split("-", 1)
            network = networks.NETWORKS[what]()
            if kind != "symbolic":
                network = networks.fixed(network, BATCH)
            path = folder / f"{name}.tflite"
            made[name] = Opened(networks.written(network, path, "float" if kind == "symbolic" else kind))
        return made[name]

    return get


def case_of(name: str, folder: Path) -> Opened:
    return Opened(networks.CASES[name].convert(folder / "case.tflite"))


# --- Observing ---


@pytest.mark.parametrize("name", FILES + [f"{name}-symbolic" for name in SYMBOLIC])
def test_outputs_are_the_runnables(opened: Any, name: str) -> None:
    one = opened(name)
    expected = FRAMEWORK.load(one.model).run(one.feeds)
    names = one.network.output_names
    assert list(names) == list(expected)
    assert [names[key] for key in expected] == list(one.network.graph.outputs)
    for key, array in expected.items():
        np.testing.assert_allclose(one.captured[names[key]], array, **one.near(names[key]))


@pytest.mark.parametrize("name", FILES + [f"{name}-symbolic" for name in SYMBOLIC])
def test_shapes_and_types_are_those_of_the_values(opened: Any, name: str) -> None:
    one = opened(name)
    for tensor, array in one.captured.items():
        said = one.network.graph.tensors[tensor]
        assert said.shape == array.shape
        assert array.dtype == (np.float32 if said.quantization else said.dtype)


# --- Cutting ---


@pytest.mark.parametrize("name", FILES)
def test_every_piece_alone_gives_the_same_again(opened: Any, name: str) -> None:
    one = opened(name)
    again = one.network.segment([*one.network.graph.inputs, *one.cuts], one.cuts).run(one.captured)
    assert set(again) == set(one.cuts)
    for tensor, array in again.items():
        np.testing.assert_allclose(array, one.captured[tensor], **one.near(tensor))


@pytest.mark.parametrize("name", FILES)
def test_a_changed_value_changes_its_readers_and_nobody_behind_a_cut(opened: Any, name: str) -> None:
    one = opened(name)
    graph = one.network.graph
    segment = one.network.segment([*graph.inputs, *one.cuts], one.cuts)
    chosen = [tensor for tensor in one.cuts if tensor in segment.needs and graph.tensors[tensor].dtype == "float32"]
    chosen = chosen or [tensor for tensor in one.cuts if tensor in segment.needs]
    for tensor in random.Random(0).sample(chosen, min(4, len(chosen))):
        value = one.captured[tensor]
        changed = value + np.linspace(1, 2, value.size).reshape(value.shape).astype(value.dtype) * (
            np.abs(value).max() + 1
        )
        result = segment.run({**one.captured, tensor: changed})
        unchanged = segment.run(one.captured)
        differing = {cut for cut in one.cuts if not np.array_equal(result[cut], unchanged[cut])}
        # Cuts that are computed from this one without another cut between.
        direct = {cut for cut in one.cuts if any(tensor in node.inputs for node in graph.between(one.cuts, [cut]))}
        assert differing <= direct
        assert differing or not direct or graph.tensors[tensor].quantization


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("seed", range(4))
def test_some_cuts(opened: Any, name: str, seed: int) -> None:
    one, generator = opened(name), random.Random(seed)
    cuts = generator.sample(one.cuts, generator.randint(1, len(one.cuts)))
    wanted = generator.sample(one.observable, generator.randint(1, len(one.observable)))
    segment = one.network.segment([*one.network.graph.inputs, *cuts], wanted)
    assert set(segment.needs) <= {*one.network.graph.inputs, *cuts}
    result = segment.run({name: one.captured[name] for name in segment.needs})
    assert set(result) == set(wanted)
    for tensor in wanted:
        np.testing.assert_allclose(result[tensor], one.captured[tensor], **one.near(tensor))


def test_a_piece_holds_only_its_own_weights(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from conrepair.networks import tflite_segment

    sizes: list[int] = []
    make = tflite_segment.interpreter_of
    monkeypatch.setattr(
        tflite_segment,
        "interpreter_of",
        lambda content, **options: sizes.append(len(content)) or make(content, **options),
    )
    one = opened("perceptron-float")
    first, *_, last = one.cuts
    one.network.segment([*one.network.graph.inputs, first], [last])
    one.network.segment(one.network.graph.inputs, one.cuts)
    whole = Path(one.model.path).stat().st_size
    # The first layer has 40 x 48 weights of four bytes.
    assert sizes[1] - sizes[0] >= 40 * 48 * 4
    assert sizes[1] <= whole + 4096


def test_what_cannot_be_cut(opened: Any) -> None:
    network = opened("convnet-float").network
    graph = network.graph
    hidden = next(name for name, tensor in graph.tensors.items() if not tensor.observable)
    with pytest.raises(ValueError, match="observed"):
        network.segment(graph.inputs, [hidden])
    with pytest.raises(ValueError, match="observed"):
        network.segment([hidden], graph.outputs)
    with pytest.raises(ValueError, match="observed"):
        network.segment(["nothing"], graph.outputs)
    with pytest.raises(ValueError, match="without the inputs"):
        network.segment([], graph.outputs)
    with pytest.raises(ValueError, match="can't be wanted"):
        network.segment(graph.inputs, graph.inputs)


def test_a_feed_that_is_missing_or_does_not_fit(opened: Any) -> None:
    one = opened("convnet-float")
    segment = one.network.segment(one.network.graph.inputs, one.network.graph.outputs)
    with pytest.raises(DataError, match="aren't fed"):
        segment.run({})
    with pytest.raises(DataError, match="can't take"):
        segment.run({name: array[:1] for name, array in one.given.items()})


# --- What nodes say ---


@pytest.mark.parametrize("name", FILES + [f"{name}-symbolic" for name in SYMBOLIC])
def test_nodes_keep_to_the_vocabulary(opened: Any, name: str) -> None:
    graph = opened(name).network.graph
    assert [error for node in graph.nodes for error in canonical.vocabulary_errors(node)] == []
    assert len({node.name for node in graph.nodes}) == len(graph.nodes)
    produced = [tensor for node in graph.nodes for tensor in node.outputs]
    assert len(produced) == len(set(produced))
    assert {*produced, *graph.inputs} == set(graph.tensors)


def computed_nodes(one: Opened, near: float) -> int:
    """Compare each vocabulary node's function with what was captured; the number of tensors compared."""
    values, count = dict(one.captured), 0
    for node in one.network.graph.nodes:
        results = canonical.compute(node, values)
        assert (results is None) == (node.op not in OPERATORS), node.op
        for tensor, array in zip(node.outputs, results or (), strict=results is not None):
            if tensor in one.captured:
                expected = one.captured[tensor]
                quantization = one.network.graph.tensors[tensor].quantization
                size = float(np.abs(expected.astype(np.float64)).max(initial=0))
                coarse = near * max(size, 1e-3)
                if quantization is not None:
                    # A quantized result is rounded, and ends where its type does.
                    coarse = max(coarse, 1.001 * quantization.scale)
                    limits = np.iinfo(one.network.graph.tensors[tensor].dtype)
                    ends = (np.array([limits.min, limits.max]) - quantization.zero_point) * quantization.scale
                    array = np.clip(array, *ends)
                np.testing.assert_allclose(array, expected, rtol=near, atol=coarse, err_msg=str(node))
                count += 1
            else:
                values[tensor] = np.asarray(array)
            assert one.network.graph.tensors[tensor].shape == np.shape(array), node
    return count


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(("float", "float16"))])
def test_nodes_compute_what_was_captured(opened: Any, name: str) -> None:
    assert computed_nodes(opened(name), 2e-5) >= 3


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(("range", "int8", "int16"))])
def test_nodes_compute_nearly_what_a_quantized_model_does(opened: Any, name: str) -> None:
    assert computed_nodes(opened(name), 0.05) >= 3


@pytest.mark.parametrize("name", networks.CASES)
def test_operator(tmp_path: Path, name: str) -> None:
    one = case_of(name, tmp_path)
    assert networks.CASES[name].op in {node.op for node in one.network.graph.nodes}
    assert [error for node in one.network.graph.nodes for error in canonical.vocabulary_errors(node)] == []
    assert computed_nodes(one, 2e-5)
    expected = FRAMEWORK.load(one.model).run(one.feeds)
    for key, array in expected.items():
        np.testing.assert_allclose(one.captured[one.network.output_names[key]], array, rtol=1e-5, atol=1e-6)


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


# --- State, loops, shapes and results of other kinds ---


@pytest.mark.parametrize("options", [{}, {"time_major": True}, {"peepholes": True}])
def test_the_fused_lstm(tmp_path: Path, options: dict[str, bool]) -> None:
    one = Opened(files.fused_lstm(tmp_path / "lstm.tflite", **options))
    (node,) = one.network.graph.nodes
    assert node.op == "LSTM"
    assert canonical.vocabulary_errors(node) == []
    assert computed_nodes(one, 2e-5) == 1


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


def test_a_loop_is_one_node_that_can_be_cut_before_and_behind(opened: Any) -> None:
    one = opened("gru-float")
    (loop,) = (node for node in one.network.graph.nodes if node.op == "WHILE")
    fed = [name for name in loop.inputs if name]
    wanted = [name for name in loop.outputs if name in one.network.graph.order]
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
    other = open_network(one.model, one.inputs, second_opinion=True)
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
