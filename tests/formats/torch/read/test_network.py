"""PyTorch networks: whole against the framework's own run, in pieces, and with changed values."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import small_models as small
import torch
import torch_networks as nets
from masked_attention import MaskedAttention, steps
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from conrepair.formats.models.model import Factory, Model
from conrepair.formats.networks.network import Network
from conrepair.formats.torch.load.framework import TorchRunnable
from conrepair.formats.torch.read.network import open_network
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import InferenceError, ModelLoadError

Array = small.Array
# Attention in a module takes one fused kernel when nothing is captured.
TOLERANCE = 1e-6
PROGRAMS = ("convnet", "pair", "residual", "functions", "writing", "branches", "selecting")
"""Networks whose exported program is quickly made; of all others the factory is read."""
ALL = [
    pytest.param(
        name,
        pt2,
        id=f"{name}-{'pt2' if pt2 else 'factory'}",
        marks=() if not pt2 or name in PROGRAMS else pytest.mark.slow,
    )
    for name in nets.CASES
    for pt2 in (0, 1)
]


class Opened:
    """A network, what it's fed, and everything it computes."""

    def __init__(self, model: Model, feeds: dict[str, Array], module: nn.Module) -> None:
        self.model, self.module, self.run_feeds = model, module, feeds
        self.network = open_network(model, nets.specs_of(feeds))
        self.graph = self.network.graph
        self.feeds = {self.network.input_names[name]: array for name, array in feeds.items()}
        names = [name for name, tensor in self.graph.tensors.items() if tensor.observable]
        self.observable = [name for name in names if name not in self.graph.inputs]
        self.real = [name for name in self.observable if self.graph.tensors[name].is_real]
        self.values = self.compute(self.feeds, self.observable)

    def compute(self, feeds: dict[str, Array], wanted: list[str]) -> dict[str, Array]:
        return self.network.segment(list(feeds), wanted).run(feeds)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Each network is opened once."""
    known: dict[tuple[str, bool], Opened] = {}

    def get(name: str, pt2: bool = False) -> Opened:
        if (name, pt2) not in known:
            known[name, pt2] = Opened(*nets.prepared(name, tmp_path_factory.mktemp(name), pt2=pt2))
        return known[name, pt2]

    return get


def assert_close(one: Array, two: Array, tolerance: float = TOLERANCE) -> None:
    assert (one.shape, one.dtype) == (two.shape, two.dtype)
    scale = float(np.abs(one).max(initial=0)) or 1.0
    np.testing.assert_allclose(np.asarray(two, float), np.asarray(one, float), rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize(("name", "pt2"), ALL)
def test_outputs_are_those_of_the_model(opened: Any, name: str, pt2: bool) -> None:
    net = opened(name, pt2)
    reference = TorchRunnable(net.model).run(net.run_feeds)
    assert list(net.network.output_names) == list(reference)
    assert tuple(net.network.output_names.values()) == net.graph.outputs
    for key, array in reference.items():
        assert_close(array, net.values[net.network.output_names[key]])


@pytest.mark.parametrize(("name", "pt2"), ALL)
def test_tensors_are_as_described(opened: Any, name: str, pt2: bool) -> None:
    net = opened(name, pt2)
    assert set(net.values) == set(net.observable)
    for key, array in net.values.items():
        tensor = net.graph.tensors[key]
        assert tensor.shape in {None, array.shape}
        assert tensor.dtype == array.dtype.name
    for name_of_input, array in net.feeds.items():
        assert net.graph.tensors[name_of_input].shape == array.shape


@pytest.mark.parametrize(("name", "pt2"), ALL)
def test_every_piece_alone_gives_the_same(opened: Any, name: str, pt2: bool) -> None:
    net = opened(name, pt2)
    cuts = net.feeds | {key: net.values[key] for key in net.real}
    for key, array in net.compute(cuts, net.observable).items():
        assert_close(net.values[key], array)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["convnet", "residual", "encoder", "recurrent", "functions", "pair"])
def test_some_cuts(opened: Any, name: str, seed: int) -> None:
    net, generator = opened(name), np.random.default_rng(seed)
    chosen = [key for key in net.real if generator.random() < 0.3]
    wanted = [key for key in net.observable if generator.random() < 0.5]
    segment = net.network.segment([*net.feeds, *chosen], wanted)
    assert segment.wanted == tuple(wanted)
    cuts = net.feeds | net.values
    result = segment.run({key: cuts[key] for key in segment.needs})
    assert list(result) == wanted
    for key, array in result.items():
        assert_close(net.values[key], array)


@pytest.mark.parametrize("name", ["convnet", "residual", "encoder", "recurrent", "pair"])
def test_captured_values_are_what_modules_return(opened: Any, name: str) -> None:
    """Hooks see each module's result before a later operator overwrites it."""
    net = opened(name)
    seen: dict[str, list[Array]] = {}
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # it would pass the modules by
    handles = [
        module.register_forward_hook(
            lambda _, __, result, path=path: seen.setdefault(path, []).append(
                (result if isinstance(result, torch.Tensor) else result[0]).detach().clone().numpy()
            )
        )
        for path, module in net.module.named_modules()
        if path
    ]
    try:
        with torch.no_grad():
            net.module(*map(torch.from_numpy, net.run_feeds.values()))
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for handle in handles:
            handle.remove()
    layers: dict[str, list[str]] = {}
    for node in net.graph.nodes:
        if net.graph.tensors[node.outputs[0]].observable and node.op != "Concat":
            layers.setdefault(node.layer, []).append(node.outputs[0])
    leaves = [path for path, module in net.module.named_modules() if path and not any(module.children())]
    found = [path for path in leaves if path in layers]
    assert len(found) >= len(leaves) - 2  # the insides of attention
    for path in found:
        for name_of_tensor, array in zip(layers[path], seen[path], strict=True):
            assert_close(array, net.values[name_of_tensor])


@pytest.mark.parametrize("name", ["convnet", "residual", "mlp", "encoder"])
def test_a_changed_value_reaches_its_readers_only(opened: Any, name: str) -> None:
    net = opened(name)
    middle = net.real[len(net.real) // 2]
    changed = {middle: net.values[middle] + 1}
    behind = [key for key in net.observable if key != middle and depends(net.network, key, middle)]
    result = net.compute(net.feeds | changed, net.observable)
    for key in net.observable:
        if key in behind:
            assert np.abs(result[key] - net.values[key]).max() > 1e-3, key
        else:  # the changed tensor itself is computed from what's fed in front of it
            assert_close(net.values[key], result[key])
    next_cuts = {key: net.values[key] for node in net.graph.consumers[middle] for key in node.outputs}
    guarded = net.compute(net.feeds | changed | next_cuts, net.observable)
    for key in net.observable:
        if key not in next_cuts:
            assert_close(net.values[key], guarded[key])
    assert behind


def depends(network: Network, name: str, origin: str) -> bool:
    node = network.graph.producers.get(name)
    return node is not None and (origin in node.inputs or any(depends(network, i, origin) for i in node.inputs if i))


def test_only_what_is_read_is_needed(opened: Any) -> None:
    net = opened("convnet")
    segment = net.network.segment(["input", "conv2d", "hardtanh", "flatten"], ["conv2d_1", "hardtanh"])
    assert segment.needs == ("conv2d", "hardtanh")
    with pytest.raises(ValueError, match="input is needed"):
        net.network.segment(["hardtanh"], ["conv2d"])
    with pytest.raises(ValueError, match="nothing is no tensor"):
        net.network.segment(["input"], ["nothing"])
    with pytest.raises(ValueError, match="input is an input"):
        net.network.segment(["input"], ["input"])


def test_tensors_between_layers_of_one_operator_cannot_be_observed(opened: Any) -> None:
    net = opened("recurrent")
    inner = [name for name, tensor in net.graph.tensors.items() if not tensor.observable]
    assert "lstm/0" in inner
    with pytest.raises(ValueError, match="lstm/0 is no tensor"):
        net.network.segment(net.graph.inputs, ["lstm/0"])


def test_results_share_no_memory(opened: Any) -> None:
    net = opened("encoder")
    feeds = {key: array.copy() for key, array in (net.feeds | net.values).items()}
    before = {key: array.copy() for key, array in feeds.items()}
    segment = net.network.segment(list(feeds), net.observable)
    results = segment.run(feeds)
    for array in results.values():
        assert array.flags.owndata or array.base is not None
        array.fill(7)
    for key, array in feeds.items():
        np.testing.assert_array_equal(array, before[key])
    for key, array in segment.run(feeds).items():
        assert_close(net.values[key], array)


class LiveBytes(TorchDispatchMode):
    """Notes how much memory operators' results hold at most."""

    def __init__(self) -> None:
        super().__init__()
        self.storages: dict[int, tuple[Any, int]] = {}
        self.peak = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            storage = result.untyped_storage()
            self.storages[storage._cdata] = weakref.ref(result), storage.nbytes()
        self.peak = max(self.peak, sum(size for reference, size in self.storages.values() if reference() is not None))
        return result


def test_values_are_released_after_their_last_reader(tmp_path: Path) -> None:
    network = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(20))).eval()
    example = torch.zeros(512, 64)
    path = small.export_pt2(network, (example,), tmp_path / "deep.pt2", dynamic=False)
    opened = open_network(small.model_of("torch", path), [TensorSpec("input", (512, 64), "float32")])
    segment = opened.segment(opened.graph.inputs, opened.graph.outputs)
    with LiveBytes() as live:
        segment.run({"input": example.numpy()})
    assert example.nbytes <= live.peak <= 3 * example.nbytes


def test_names(opened: Any, tmp_path: Path) -> None:
    residual = opened("residual").graph
    layers = [node.layer for node in residual.nodes]
    assert layers[:4] == ["stem", "relu", "first", "norm"]
    assert layers.count("relu") == 3
    assert residual.producers["conv2d"].parameters["weight"].name == "stem.weight"
    model, feeds, _ = nets.prepared("pair", tmp_path, pt2=False)
    network = open_network(nets.renamed(model, "scene", "conv2d"), [
        TensorSpec("scene", feeds["image"].shape, "float32"), TensorSpec("conv2d", feeds["vector"].shape, "float32"),
    ])  # fmt: skip
    # "conv2d" is what the program calls another tensor.
    assert network.input_names == {"scene": "scene", "conv2d": "vector"}
    assert network.graph.inputs == ("scene", "vector")
    assert network.output_names == {"logits": "linear_1", "picture": "relu"}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bits(tmp_path: Path, dtype: torch.dtype) -> None:
    network = small.torch_convnet().to(dtype)
    path = small.export_pt2(network, [torch.zeros(2, 3, 12, 10, dtype=dtype)], tmp_path / "net.pt2")
    model, name = small.model_of("torch", path), str(dtype).removeprefix("torch.")
    images = small.images().astype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    opened = open_network(model, [TensorSpec("input", images.shape, name)])
    names = [key for key in opened.graph.tensors if key != "input"]
    values = opened.segment(["input"], names).run({"input": images})
    reference = TorchRunnable(model).run({"input": images})["output"]
    np.testing.assert_array_equal(values["linear"].astype(np.float32), reference.astype(np.float32))
    again = opened.segment(["input", *names], names).run({"input": images, **values})
    assert {key: array.dtype.name for key, array in again.items()} == dict.fromkeys(names, name)
    for key in names:
        np.testing.assert_array_equal(values[key].astype(np.float32), again[key].astype(np.float32))
    assert opened.graph.nodes[0].parameters["weight"].dtype == name


@pytest.mark.parametrize(("name", "pt2"), ALL)
def test_the_second_opinion_is_the_same_graph(opened: Any, name: str, pt2: bool) -> None:
    net = opened(name, pt2)
    second = net.network.second_opinion()
    assert [(n.name, n.op, n.inputs) for n in second.graph.nodes] == [
        (n.name, n.op, n.inputs) for n in net.graph.nodes
    ]
    outputs = list(dict.fromkeys(net.graph.outputs))
    values = second.segment(second.graph.inputs, outputs).run(net.feeds)
    for key in outputs:
        assert values[key].dtype == np.float64
        assert small.relative_l2(values[key], net.values[key]) < 1e-5
    assert any(small.relative_l2(values[key], net.values[key]) > 0 for key in outputs)


def test_the_second_opinion_of_a_network_that_names_its_types(tmp_path: Path) -> None:
    module = MaskedAttention().eval()
    path = small.export_pt2(module, [torch.from_numpy(steps())], tmp_path / "net.pt2")
    second = open_network(small.model_of("torch", path), [TensorSpec("x", (2, 5, 8), "float32")]).second_opinion()
    (output,) = second.segment(["x"], second.graph.outputs).run({"x": steps()}).values()
    assert small.relative_l2(output, module.exactly(steps())) < 1e-12


def test_torchscript_has_no_graph(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    torch.jit.trace(small.torch_convnet(), torch.zeros(2, 3, 12, 10)).save(str(path))
    model = small.model_of("torch", path, inputs=(small.IMAGE,))
    with pytest.raises(ModelLoadError, match=r"net\.pt is TorchScript.*by way of ONNX"):
        open_network(model, [TensorSpec("image", (2, 3, 12, 10), "float32")])


@pytest.mark.parametrize("pt2", [False, True])
def test_sizes_that_do_not_fit(tmp_path: Path, pt2: bool) -> None:
    model, _, _ = nets.prepared("convnet", tmp_path, pt2=pt2)
    with pytest.raises(ModelLoadError, match=r"convnet\.pt2?"):
        open_network(model, [TensorSpec("input", (2, 4, 12, 10), "float32")])


def test_a_failing_run_is_reported(opened: Any) -> None:
    net = opened("mlp")
    segment = net.network.segment(net.graph.inputs, net.graph.outputs)
    with pytest.raises(InferenceError, match="mat1"):
        segment.run({net.graph.inputs[0]: np.zeros((2, 99), np.float32)})


def test_another_batch_of_a_dynamic_program(tmp_path: Path) -> None:
    model, _, module = nets.prepared("arrangement", tmp_path, pt2=True)
    array = nets.numbers(3, 8, 4, seed=5)
    network = open_network(model, [TensorSpec("x", array.shape, "float32")])
    value = network.segment(["x"], network.graph.outputs).run({"x": array})[network.graph.outputs[0]]
    with torch.inference_mode():
        assert_close(module(torch.from_numpy(array))[0].numpy(), value)


def test_mobilenet(tmp_path: Path) -> None:
    from conrepair.ground.runtime.torchvision import import_torchvision

    torch.manual_seed(3)
    network = import_torchvision().models.mobilenet_v2().eval()
    path = tmp_path / "weights.pt"
    torch.save(network.state_dict(), path)
    model = small.model_of(
        "torch",
        path,
        factory=Factory("torchvision.models:mobilenet_v2"),
        inputs=(TensorSpec("", ("batch", 3, 64, 64), "float32"),),
    )
    net = Opened(model, {"x": nets.numbers(2, 3, 64, 64)}, network)
    assert len(net.graph.nodes) == 153
    assert net.graph.nodes[0].layer == "features.0.0"
    reference = TorchRunnable(model).run(net.feeds)["output"]
    assert_close(reference, net.values[net.graph.outputs[0]])
    cuts = net.feeds | {key: net.values[key] for key in net.real}
    for key, array in net.compute(cuts, net.observable).items():
        assert_close(net.values[key], array)


SPELLED = {
    "interleaved": (lambda x: x.repeat_interleave(2, dim=1), ["Reshape", "Expand", "Identity", "Reshape"]),
    "rolled": (lambda x: x.roll((1, -1), (2, 3)), ["Gather", "Gather"]),
    "shuffled": (lambda x: nn.functional.channel_shuffle(x, 2), ["Reshape", "Transpose", "Identity", "Reshape"]),
    "backwards": (lambda x: x.flip(1, 3), ["Slice"]),
    "masked": (lambda x: x.tril(), ["Where"]),
    "sorted": (lambda x: x.logcumsumexp(1), ["aten.logcumsumexp.default"]),
}


@pytest.mark.parametrize("name", list(SPELLED))
def test_operators_without_a_word_are_those_that_pytorch_computes_them_by(name: str, tmp_path: Path) -> None:
    function, operators = SPELLED[name]

    class Network(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(function(x))

    given = torch.randn(1, 4, 6, 6)
    path = small.export_pt2(Network(), [given], tmp_path / "net.pt2", dynamic=False)
    network = open_network(small.model_of("torch", path), [TensorSpec("x", (1, 4, 6, 6), "float32")])
    assert [node.op for node in network.graph.nodes] == [*operators, "Relu"]
    assert len({node.layer for node in network.graph.nodes}) == 2  # one layer, whatever it's spelled by
    (output,) = network.graph.outputs
    computed = network.segment(network.graph.inputs, [output]).run({network.graph.inputs[0]: given.numpy()})
    np.testing.assert_array_equal(computed[output], Network()(given).numpy())
