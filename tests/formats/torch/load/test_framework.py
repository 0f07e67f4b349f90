"""PyTorch: exported programs, TorchScript, factories with state dicts, pickles."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import small_models as small
import torch
from masked_attention import MaskedAttention, steps
from torch import nn

from conrepair.formats.models.model import Factory, Model
from conrepair.formats.torch.load.framework import FRAMEWORK, TorchRunnable, example_inputs, flatten
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import DataError, ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of

UNNAMED = replace(small.IMAGE, name="")


def tensors(*arrays: small.Array) -> tuple[torch.Tensor, ...]:
    return tuple(map(torch.from_numpy, arrays))


def directly(network: nn.Module, *arrays: small.Array) -> Any:
    """PyTorch called without conrepair."""
    with torch.inference_mode():
        return network(*tensors(*arrays))


def traced(network: nn.Module, path: Path, *arrays: small.Array) -> Path:
    torch.jit.trace(network, tensors(*arrays), strict=False).save(str(path))
    return path


def saved_state(network: nn.Module, path: Path) -> Path:
    torch.save(network.state_dict(), path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same networks in every format."""
    folder = tmp_path_factory.mktemp("torch")
    network, pair, text = small.torch_convnet(), small.torch_pair(), small.torch_text()
    small.export_pt2(network, tensors(small.images()), folder / "net.pt2")
    small.export_pt2(pair, tensors(small.images(), small.vectors()), folder / "pair.pt2")
    small.export_pt2(text, tensors(small.tokens()), folder / "text.pt2")
    traced(network, folder / "net_traced.pt", small.images())
    traced(pair, folder / "pair_traced.pt", small.images(), small.vectors())
    traced(text, folder / "text_traced.pt", small.tokens())
    torch.jit.script(network).save(str(folder / "net_scripted.ts"))
    saved_state(network, folder / "net_weights.pth")
    saved_state(pair, folder / "pair_weights.pth")
    saved_state(text, folder / "text_weights.pth")
    torch.save(network, folder / "net_pickled.pt")
    return folder


def net(folder: Path, kind: str) -> Model:
    """The convnet in one of the formats."""
    declared: dict[str, Any] = {"inputs": (UNNAMED,)}
    names = {"pt2": "net.pt2", "traced": "net_traced.pt", "scripted": "net_scripted.ts", "pickled": "net_pickled.pt"}
    if kind == "factory":
        # Another seed: the weights must come from the file.
        factory = Factory("small_models:torch_convnet", {"seed": 99})
        return small.model_of("torch", folder / "net_weights.pth", factory=factory, **declared)
    if kind == "pt2":
        declared = {}
    if kind == "pickled":
        declared["trust"] = True
    return small.model_of("torch", folder / names[kind], **declared)


def pair(folder: Path, kind: str) -> Model:
    if kind == "pt2":
        return small.model_of("torch", folder / "pair.pt2")
    if kind == "traced":
        return small.model_of("torch", folder / "pair_traced.pt", inputs=small.PAIR)
    factory = Factory("small_models:torch_pair")
    return small.model_of("torch", folder / "pair_weights.pth", factory=factory, inputs=small.PAIR)


def text(folder: Path, kind: str) -> Model:
    if kind == "pt2":
        return small.model_of("torch", folder / "text.pt2")
    if kind == "traced":
        return small.model_of("torch", folder / "text_traced.pt", inputs=(small.TEXT,))
    factory = Factory("small_models:torch_text")
    return small.model_of("torch", folder / "text_weights.pth", factory=factory, inputs=(small.TEXT,))


KINDS = ["pt2", "traced", "scripted", "factory", "pickled"]
RECORDED = ["pt2", "traced", "factory"]


# --- Description ---


@pytest.mark.parametrize("kind", KINDS)
def test_description(folder: Path, kind: str) -> None:
    about = FRAMEWORK.describe(net(folder, kind))
    assert (
        about.format
        == {
            "pt2": "exported PyTorch program",
            "traced": "TorchScript",
            "scripted": "TorchScript",
            "factory": "PyTorch module of small_models:torch_convnet",
            "pickled": "pickled PyTorch module",
        }[kind]
    )
    (given,), (result,) = about.inputs, about.outputs
    assert (given.name, given.shape[1:], given.dtype) == ("input", (3, 12, 10), "float32")
    assert (result.name, result.shape[1:], result.dtype) == ("output", (6,), "float32")
    assert isinstance(given.shape[0], str)
    assert given.shape[0] == result.shape[0]
    assert about.parameters == sum(parameter.numel() for parameter in small.torch_convnet().parameters()) == 500
    assert about.weights == {"float32": 520, "int64": 2}
    assert about.precision == "float32"
    assert about.opset is None
    assert about.producer.startswith("torch ")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("pt2", {"conv2d": 3, "batch_norm": 2, "hardtanh": 2, "max_pool2d": 1, "linear": 1}),
        ("traced", {"_convolution": 3, "batch_norm": 2, "hardtanh": 2, "max_pool2d": 1, "linear": 1}),
        ("scripted", {"conv2d": 3, "batch_norm": 2, "hardtanh": 2, "max_pool2d": 1, "linear": 1}),
        ("factory", {"Conv2d": 3, "BatchNorm2d": 2, "ReLU6": 2, "MaxPool2d": 1, "Linear": 1}),
    ],
)
def test_operators(folder: Path, kind: str, expected: dict[str, int]) -> None:
    assert expected.items() <= FRAMEWORK.describe(net(folder, kind)).operators.items()


@pytest.mark.parametrize("kind", RECORDED)
def test_several_inputs_and_outputs(folder: Path, kind: str) -> None:
    about = FRAMEWORK.describe(pair(folder, kind))
    assert [(spec.name, spec.shape[1:]) for spec in about.inputs] == [("image", (3, 12, 10)), ("vector", (4,))]
    assert [(spec.name, spec.shape[1:]) for spec in about.outputs] == [("logits", (6,)), ("picture", (5, 6, 5))]
    assert {type(spec.shape[0]) for spec in about.inputs + about.outputs} == {str}


def test_fixed_batch(tmp_path: Path) -> None:
    path = small.export_pt2(small.torch_convnet(), tensors(small.images(3)), tmp_path / "net.pt2", dynamic=False)
    model = small.model_of("torch", path)
    about = FRAMEWORK.describe(model)
    assert (about.inputs[0].shape[0], about.outputs[0].shape[0]) == (3, 3)
    with pytest.raises(DataError, match="input input"):
        FRAMEWORK.load(model).run({"input": small.images(2)})


def test_declared_names_and_fixed_batch_of_torchscript(folder: Path) -> None:
    declared = replace(small.IMAGE, name="photo", shape=(2, 3, 12, 10))
    model = small.model_of("torch", folder / "net_traced.pt", inputs=(declared,))
    about = FRAMEWORK.describe(model)
    assert about.inputs == (declared,)
    assert about.outputs[0].shape == (2, 6)


# --- Running ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 3])
def test_run_is_what_torch_gives(folder: Path, kind: str, count: int) -> None:
    images = small.images(count)
    result = FRAMEWORK.load(net(folder, kind)).run({"input": images})
    assert small.relative_l2(directly(small.torch_convnet(), images), result["output"]) < 1e-6


@pytest.mark.parametrize("kind", RECORDED)
def test_run_with_several_inputs(folder: Path, kind: str) -> None:
    images, vectors = small.images(3), small.vectors(3)
    result = FRAMEWORK.load(pair(folder, kind)).run({"vector": vectors, "image": images})
    assert list(result) == ["logits", "picture"]
    for name, expected in directly(small.torch_pair(), images, vectors).items():
        assert small.relative_l2(expected, result[name]) < 1e-6


@pytest.mark.parametrize("kind", RECORDED)
def test_run_with_whole_numbers(folder: Path, kind: str) -> None:
    runnable = FRAMEWORK.load(text(folder, kind))
    expected = directly(small.torch_text(), small.tokens(3))
    for dtype in ("int64", "int32", "uint8"):
        result = runnable.run({"input": small.tokens(3, dtype=dtype)})["output"]
        assert small.relative_l2(expected, result) < 1e-6


@pytest.mark.parametrize(
    ("feeds", "named"),
    [
        ({"image": small.images()}, "vector: float32"),
        ({"image": small.images(), "vektor": small.vectors()}, "vector: float32"),
        ({"image": small.images(channels_last=True), "vector": small.vectors()}, "input image"),
        ({"image": small.images(), "vector": small.vectors(size=5)}, "input vector"),
        ({"image": small.images(), "vector": small.vectors().astype("U")}, "input vector"),
    ],
)
@pytest.mark.parametrize("kind", RECORDED)
def test_wrong_feeds(folder: Path, kind: str, feeds: dict[str, small.Array], named: str) -> None:
    with pytest.raises(DataError, match=named):
        FRAMEWORK.load(pair(folder, kind)).run(feeds)


@pytest.mark.parametrize("kind", RECORDED)
def test_real_numbers_for_an_embedding(folder: Path, kind: str) -> None:
    with pytest.raises(DataError, match=r"input input: int64.*whole numbers"):
        FRAMEWORK.load(text(folder, kind)).run({"input": np.zeros((2, small.TOKENS), np.float32)})


def test_dropout_and_batch_statistics_are_off(tmp_path: Path) -> None:
    network = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5)).train()
    torch.save(network, tmp_path / "net.pt")
    declared = TensorSpec("x", ("batch", 4), "float32")
    runnable = FRAMEWORK.load(small.model_of("torch", tmp_path / "net.pt", trust=True, inputs=(declared,)))
    vectors = small.vectors(3)
    np.testing.assert_array_equal(runnable.run({"x": vectors})["output"], directly(network.eval(), vectors))


class Nested(NamedTuple):
    scores: torch.Tensor
    rest: list[Any]


def test_names_of_nested_outputs() -> None:
    one, two, three, four = torch.zeros(4, 1)
    value = Nested(one, [two, {"boxes": three, "nothing": None, "more": (four,)}])
    assert [name for name, _ in flatten(value)] == ["scores", "rest_0", "boxes", "more_0"]
    assert flatten(one) == [("output", one)]
    assert [name for name, _ in flatten((one, two))] == ["output_0", "output_1"]


def test_example_inputs() -> None:
    image, ids = example_inputs((small.IMAGE, small.TEXT))
    assert (image.shape, image.dtype) == ((2, 3, 12, 10), torch.float32)
    assert (ids.shape, ids.dtype) == ((2, small.TOKENS), torch.int64)
    free = TensorSpec("x", ("n", 3, "height", "n"), "float32")
    (usual,) = example_inputs((free,))
    assert tuple(usual.shape) == (2, 3, 64, 2)


# --- Precision ---


def test_float16(tmp_path: Path) -> None:
    network = small.torch_convnet().half()
    path = small.export_pt2(network, [torch.from_numpy(small.images()).half()], tmp_path / "net.pt2")
    model = small.model_of("torch", path)
    about = FRAMEWORK.describe(model)
    assert (about.precision, about.inputs[0].dtype, about.outputs[0].dtype) == ("float16", "float16", "float16")
    halves = small.images().astype(np.float16)
    np.testing.assert_array_equal(FRAMEWORK.load(model).run({"input": halves})["output"], directly(network, halves))


def test_bfloat16(tmp_path: Path) -> None:
    network = small.torch_convnet().bfloat16()
    images = torch.from_numpy(small.images()).bfloat16()
    path = small.export_pt2(network, [images], tmp_path / "net.pt2")
    model = small.model_of("torch", path)
    assert FRAMEWORK.describe(model).precision == "bfloat16"
    result = FRAMEWORK.load(model).run({"input": small.images()})["output"]
    assert result.dtype == ml_dtypes.bfloat16
    with torch.inference_mode():
        np.testing.assert_array_equal(result.astype(np.float32), network(images).float())


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_opinion_is_close_but_another(folder: Path, kind: str) -> None:
    model, feeds = net(folder, kind), {"input": small.images(3)}
    first, second = FRAMEWORK.load(model), FRAMEWORK.load(model, second_opinion=True)
    assert second.inputs[0].dtype == "float64"
    one, two = first.run(feeds)["output"], second.run(feeds)["output"]
    assert two.dtype == np.float64
    assert 0 < small.relative_l2(two, one) < 1e-5


def test_the_second_opinion_of_an_embedding(folder: Path) -> None:
    second = FRAMEWORK.load(text(folder, "pt2"), second_opinion=True)
    assert second.inputs[0].dtype == "int64"
    result = second.run({"input": small.tokens()})["output"]
    assert 0 < small.relative_l2(result, directly(small.torch_text(), small.tokens()).numpy()) < 1e-5


def as_pt2(network: nn.Module, path: Path) -> Path:
    return small.export_pt2(network, tensors(steps()), path.with_suffix(".pt2"))


def as_trace(network: nn.Module, path: Path) -> Path:
    return traced(network, path, steps())


def as_frozen(network: nn.Module, path: Path) -> Path:
    torch.jit.freeze(torch.jit.trace(network, tensors(steps()))).save(str(path))
    return path


@pytest.mark.parametrize("write", [as_pt2, as_trace, as_frozen])
def test_the_second_opinion_of_a_network_that_names_its_types(
    tmp_path: Path, write: Callable[[nn.Module, Path], Path]
) -> None:
    # Queries in float64 and a mask in float32 give garbage: the source's own rounding was taken for 0.15.
    network, spec = MaskedAttention().eval(), TensorSpec("x", ("batch", 5, 8), "float32")
    model = small.model_of("torch", write(network, tmp_path / "net.pt"), inputs=(spec,))
    second = FRAMEWORK.load(model, second_opinion=True)
    given = second.run({"x": steps()})
    (output,) = given.values()
    assert output.dtype == np.float64
    assert small.relative_l2(output, network.exactly(steps())) < 1e-12


# --- Models that aren't complete, or not to be trusted ---


def test_a_bare_state_dict_is_refused_with_advice(folder: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"net_weights\.pth holds only weights, and no network.*`factory`"):
        FRAMEWORK.describe(small.model_of("torch", folder / "net_weights.pth", inputs=(UNNAMED,)))


def checkpoint(path: Path, **parts: Any) -> Model:
    torch.save(parts, path)
    declared = TensorSpec("", ("batch", small.CHANNELS, small.HEIGHT, small.WIDTH), "float32")
    return small.model_of("torch", path, trust=True, inputs=(declared,))


@pytest.mark.parametrize("beside", [{}, {"ema": None, "epoch": 3, "optimizer": None}])
def test_the_network_of_a_checkpoint(beside: dict[str, Any], tmp_path: Path) -> None:
    network = small.torch_convnet()
    runnable = FRAMEWORK.load(checkpoint(tmp_path / "best.pt", model=network, **beside))
    [given] = runnable.run({"input": small.images()}).values()
    np.testing.assert_array_equal(given, network(torch.from_numpy(small.images())).detach().numpy())


def test_a_network_takes_the_weights_beside_it(tmp_path: Path) -> None:
    """Scripts keep the class as it was made, and what it learnt in another place."""
    learnt = small.torch_convnet(seed=6)
    weights = {f"module.{name}": value for name, value in learnt.state_dict().items()}
    model = checkpoint(tmp_path / "net.pth", model=small.torch_convnet(), state_dict=weights, epoch=1)
    [given] = FRAMEWORK.load(model).run({"input": small.images()}).values()
    np.testing.assert_array_equal(given, learnt(torch.from_numpy(small.images())).detach().numpy())


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"ema": small.torch_convnet()}, r"several networks \(model, ema\): save the one"),
        ({"state_dict": {"other": torch.zeros(2)}}, r"aren't those of its network 'model'"),
    ],
)
def test_checkpoints_that_leave_a_choice(parts: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=words):
        FRAMEWORK.load(checkpoint(tmp_path / "net.pt", model=small.torch_convnet(), **parts))


def test_a_pickled_module_is_refused_without_trust(folder: Path) -> None:
    model = replace(net(folder, "pickled"), trust=False)
    with pytest.raises(ModelLoadError, match=r"net_pickled\.pt .*run code.*trust"):
        FRAMEWORK.load(model)


def test_a_pickled_module_is_refused_as_weights(folder: Path) -> None:
    model = replace(net(folder, "pickled"), trust=False, factory=Factory("small_models:torch_convnet"))
    with pytest.raises(ModelLoadError, match=r"net_pickled\.pt .*run code"):
        FRAMEWORK.load(model)


@pytest.mark.parametrize("kind", ["factory", "pickled"])
def test_undeclared_inputs(folder: Path, kind: str) -> None:
    with pytest.raises(ModelLoadError, match=r'record its inputs \(input\)\..*"inputs":.*--input input=batch,'):
        FRAMEWORK.describe(replace(net(folder, kind), inputs=()))


@pytest.mark.parametrize("kind", ["traced", "scripted"])
def test_undeclared_inputs_of_sizes_that_nothing_tells(folder: Path, kind: str) -> None:
    """The network takes 12 by 10 pixels alone."""
    with pytest.raises(ModelLoadError, match=r"run on inputs input: float32\[batch, 3, height, width\].*--input"):
        FRAMEWORK.describe(replace(net(folder, kind), inputs=()))


class Windows(nn.Module):
    """Takes 32 by 32 pixels and no others, after a change of their range."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(4, 6, 3, groups=2), nn.Linear(6 * 30 * 30, 5)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.last(torch.flatten(self.first((pixels / 255 - 0.5).float()), 1))


@pytest.mark.parametrize(
    ("network", "shape", "dtype"),
    [
        (Windows(), ("batch", 4, 32, 32), "float32"),
        (nn.Sequential(nn.Linear(7, 5), nn.ReLU()), ("batch", 7), "float32"),
        (nn.Sequential(nn.Embedding(50, 4), nn.Conv1d(32, 2, 1)), ("batch", 32), "int64"),
        (nn.Sequential(nn.LSTM(7, 5, batch_first=True)), ("batch", "length", 7), "float32"),
        (nn.Sequential(nn.Conv1d(2, 3, 90)).half(), ("batch", 2, "length"), "float16"),
    ],
    ids=["pixels", "features", "tokens", "steps", "signal"],
)
def test_inputs_of_a_script_by_its_layers(
    network: nn.Module, shape: tuple[Any, ...], dtype: str, tmp_path: Path
) -> None:
    torch.jit.script(network.eval()).save(str(tmp_path / "net.pt"))
    (found,) = FRAMEWORK.describe(small.model_of("torch", tmp_path / "net.pt")).inputs
    assert (found.shape, found.dtype) == (shape, dtype)


def test_a_script_whose_layers_dont_tell(tmp_path: Path) -> None:
    torch.jit.script(nn.Softmax(1)).save(str(tmp_path / "net.pt"))
    with pytest.raises(ModelLoadError, match=r"record its inputs \(input\)"):
        FRAMEWORK.describe(small.model_of("torch", tmp_path / "net.pt"))


class Positions(nn.Module):
    """An embedding with one of positions, of which there are 64."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, 6), nn.Embedding(64, 6)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (self.words(ids) + self.places(torch.arange(ids.shape[1]))) * mask[:, :, None]


@pytest.mark.parametrize(
    ("low", "high", "factor", "example"), [(None, 64, 1, 64), (10, 20, 1, 20), (2, 16, 2, 32), (40, 64, 1, 64)]
)
def test_the_range_of_a_size_is_in_the_program(
    low: int | None, high: int, factor: int, example: int, tmp_path: Path
) -> None:
    size = torch.export.Dim("size", min=low, max=high) * factor
    shapes = ({0: (batch := torch.export.Dim("batch")), 1: size}, {0: batch, 1: size})
    arguments = torch.zeros(3, 16 if low != 40 else 48, dtype=torch.int64), torch.zeros(3, 16 if low != 40 else 48)
    torch.export.save(torch.export.export(Positions(), arguments, dynamic_shapes=shapes), tmp_path / "net.pt2")
    runnable = FRAMEWORK.load(small.model_of("torch", tmp_path / "net.pt2"))
    assert isinstance(runnable, TorchRunnable)
    assert [tuple(item.shape) for item in runnable.examples] == [(2, example)] * 2
    batch_name, size_name = runnable.inputs[0].shape
    assert runnable.outputs[0].shape == (batch_name, "?", 6)
    assert str(size_name).startswith("2*") == (factor == 2)
    assert {(item.low, item.high) for item in runnable.inputs[1].ranges if item.high} == {(low or 1, high)}


@pytest.mark.parametrize("kind", ["traced", "scripted", "factory"])
def test_too_many_declared_inputs(folder: Path, kind: str) -> None:
    with pytest.raises(ModelLoadError, match=r"2 inputs are declared, but the network takes \['input'\]"):
        FRAMEWORK.describe(replace(net(folder, kind), inputs=small.PAIR))


@pytest.mark.parametrize("kind", ["traced", "scripted", "factory"])
@pytest.mark.parametrize("shape", [("batch", 4, 12, 10), ("batch", 3, 99, 10), ("batch", 3)])
def test_declared_shapes_that_the_network_does_not_take(folder: Path, kind: str, shape: tuple[Any, ...]) -> None:
    model = replace(net(folder, kind), inputs=(replace(UNNAMED, shape=shape),))
    with pytest.raises(ModelLoadError, match=r"inputs input: float32\[batch.*Declare those"):
        FRAMEWORK.describe(model)


def test_weights_of_another_network(folder: Path) -> None:
    model = replace(net(folder, "factory"), factory=Factory("small_models:torch_text"))
    with pytest.raises(ModelLoadError, match=r"net_weights\.pth.*Missing key"):
        FRAMEWORK.load(model)


def test_a_factory_that_gives_no_module(folder: Path) -> None:
    model = replace(net(folder, "factory"), factory=Factory("collections:OrderedDict"))
    with pytest.raises(
        ModelLoadError, match=r"collections:OrderedDict returned OrderedDict, not a torch\.nn\.Module"
    ):
        FRAMEWORK.load(model)


# --- Files ---


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_stays_as_it_is(folder: Path, kind: str) -> None:
    model, before = net(folder, kind), sorted(path.name for path in folder.iterdir())
    FRAMEWORK.describe(model)
    FRAMEWORK.load(model).run({"input": small.images()})
    FRAMEWORK.load(model, second_opinion=True)
    assert sha256_of(Path(model.path)) == model.sha256
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("kind", ["pt2", "traced", "factory"])
def test_damaged_files_are_named(folder: Path, tmp_path: Path, kind: str) -> None:
    model = net(folder, kind)
    for path in small.damaged_copies(Path(model.path), tmp_path):
        damaged = replace(model, path=str(path))
        for action in (FRAMEWORK.describe, FRAMEWORK.load):
            with pytest.raises(ModelLoadError) as error:
                action(damaged)
            assert str(path) in str(error.value)
            assert "damaged" in str(error.value)
            assert "weights_only" not in str(error.value)  # torch advises to load them unsafely


def test_a_missing_file_is_named(tmp_path: Path, folder: Path) -> None:
    for suffix in (".pt2", ".pt"):
        path = tmp_path / f"missing{suffix}"
        with pytest.raises(ModelLoadError, match=f"missing{suffix}"):
            FRAMEWORK.load(Model("torch", str(path), "", inputs=(small.IMAGE,)))


def test_a_file_under_another_suffix(folder: Path, tmp_path: Path) -> None:
    for source, target in (("net_traced.pt", "net.pt2"), ("net_weights.pth", "weights.pt2")):
        shutil.copy(folder / source, tmp_path / target)
        with pytest.raises(ModelLoadError, match=target):
            FRAMEWORK.load(small.model_of("torch", tmp_path / target))


# --- The size of the table that an integer input indexes ---


@pytest.mark.parametrize("kind", RECORDED)
def test_table_sizes(folder: Path, kind: str) -> None:
    assert FRAMEWORK.describe(text(folder, kind)).inputs[0].high == small.WORDS


def test_a_declared_size_wins(folder: Path) -> None:
    model = replace(text(folder, "factory"), inputs=(replace(small.TEXT, high=5),))
    assert FRAMEWORK.describe(model).inputs[0].high == 5


def test_float_inputs_have_no_size(folder: Path) -> None:
    assert {spec.high for spec in FRAMEWORK.describe(pair(folder, "pt2")).inputs} == {None}


def tables() -> nn.Module:
    class Tables(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.word, self.kind, self.bag = nn.Embedding(11, 3), nn.Embedding(5, 3), nn.EmbeddingBag(9, 3)

        def forward(self, words: torch.Tensor, kinds: torch.Tensor, bags: torch.Tensor, free: torch.Tensor) -> Any:
            same = self.word(words) + self.kind(kinds.long()) + self.word(kinds)
            same = same + self.word.weight[kinds] + torch.index_select(self.kind.weight, 0, bags.flatten())[0]
            return same.sum(1) + self.bag(bags) + free.sum(1, keepdim=True)

    return Tables().eval()


@pytest.mark.parametrize("write", ["traced", "pt2"])
def test_table_sizes_of_several_inputs(tmp_path: Path, write: str) -> None:
    """A cast between input and table, an input of two tables, bags, and a number that indexes nothing."""
    arrays = [np.zeros((2, 4), dtype) for dtype in ("int64", "int32", "int64", "int64")]
    declared = tuple(TensorSpec("", ("batch", 4), array.dtype.name) for array in arrays)
    if write == "traced":
        path = traced(tables(), tmp_path / "net.pt", *arrays)
    else:
        path, declared = small.export_pt2(tables(), tensors(*arrays), tmp_path / "net.pt2"), ()
    about = FRAMEWORK.describe(small.model_of("torch", path, inputs=declared))
    assert {spec.name: spec.high for spec in about.inputs} == {"words": 11, "kinds": 5, "bags": 5, "free": None}


class _Nested(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, batch: Any, state: Any, times: int, *, bias: Any, scale: Any = None) -> Any:
        return {"y": self.layer(batch["b"]) + batch["a"] * state[0] * times - state[1][0] + bias}


def test_a_program_takes_dictionaries_by_key(tmp_path: Path) -> None:
    """Tuples, lists, constants and arguments by name as well; one tensor after the other, under its path."""
    torch.manual_seed(0)
    given = [torch.randn(3, 4) for _ in range(5)]
    arguments = ({"b": given[0], "a": given[1]}, (given[2], [given[3]]), 2)
    network = _Nested().eval()
    torch.export.save(
        torch.export.export(network, arguments, {"bias": given[4], "scale": None}), tmp_path / "net.pt2"
    )
    runnable = FRAMEWORK.load(Model("torch", str(tmp_path / "net.pt2"), sha256_of(tmp_path / "net.pt2")))
    names = ["batch_b", "batch_a", "state_0", "state_1_0", "bias"]
    assert [spec.name for spec in runnable.inputs] == names
    found = runnable.run({name: tensor.numpy() for name, tensor in zip(names, given, strict=True)})
    with torch.no_grad():
        expected = network(*arguments, bias=given[4])["y"]
    assert torch.equal(torch.from_numpy(found["y"]), expected)
