"""Every converter on small networks: the result computes what the source does, and is what was asked for."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small
from crossed import crossed
from onnx import helper, numpy_helper
from registries import put

from conrepair.application.jobs import conversion as jobs
from conrepair.application.jobs.values import ConversionStep
from conrepair.formats.converters.all_converters import CONVERTERS, converter
from conrepair.formats.models.model import Description, Factory, Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.binding import bind_inputs
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConfigError, ConversionError, ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.verdicts.evaluate.pairing import fit, pair_outputs

NAMES = [
    "torch-onnx-dynamo", "torch-onnx-script", "onnx2torch", "onnx-normalise", "keras-onnx-tf2onnx",
    "keras-savedmodel", "keras-tflite", "keras-torch", "savedmodel-onnx-tf2onnx", "savedmodel-tflite",
    "tflite-onnx-tf2onnx", "keras-onnx-export", "onnx-onnxslim", "onnx-onnxsim", "onnx-onnxoptimizer",
    "onnx-version-converter",
]  # fmt: skip
NARROWING = ["onnx-float16", "onnx-quantize-dynamic", "onnx-quantize-static"]  # see test_quantization.py
APART = ["onnx-keras"]  # see tests/formats/importer
MOST = [name if name != "keras-torch" else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
"""Quick ones: Keras converts to PyTorch in a process of its own, which others of these tests start, too."""
BY_TF2ONNX = [name for name in NAMES if name.endswith("tf2onnx") or name == "keras-onnx-export"]
WITH_OPSET = [*BY_TF2ONNX, *(name for name in NAMES if name.startswith("torch-onnx"))]


@dataclasses.dataclass(frozen=True)
class Converted:
    """A conversion through the job that workers run.

    Attributes:
        source: What was converted.
        about_source: Its description.
        model: What came of it.
        about: Its description.
        folder: Where that is.
        strays: What was written, or changed, elsewhere; only of those that are made once.
    """

    source: Model
    about_source: Description
    model: Model
    about: Description
    folder: Path
    strays: frozenset[str] = frozenset()


def convert(source: Model, name: str, folder: Path, **options: Any) -> Converted:
    step = converter(name)
    about_source = framework(source.framework).describe(source)
    folder.mkdir(parents=True, exist_ok=True)
    result = jobs.convert(folder, source, ConversionStep.of(step, step.complete(options)), about_source.inputs)
    model = result.model
    assert not Path(model.path).is_absolute()
    model = dataclasses.replace(model, path=str(folder / model.path))
    return Converted(source, about_source, model, result.description, folder)


def source_of(kind: str, origin: str, folder: Path) -> Model:
    """A network ("convnet", "pair", "twins", "text") as a file of a framework."""
    folder.mkdir(parents=True)
    if origin == "onnx":
        return small.model_of("onnx", getattr(small, f"onnx_{kind}")(folder / "net.onnx"))
    if origin == "torch":
        return torch_source(kind, folder)
    if origin == "tensorflow" and kind in {"pair", "twins"}:
        module = getattr(small, f"tensorflow_{kind}")()
        return small.model_of("tensorflow", small.save_tensorflow(module, folder / "net"))
    network = getattr(small, f"keras_{kind}")()
    if origin == "tensorflow":
        return small.model_of("tensorflow", small.tensorflow_of(network, folder / "net"))
    if origin == "tflite":
        return small.model_of("tflite", small.tflite_of(network, folder / "net.tflite"))
    network.save(folder / "net.keras")
    return small.model_of("keras", folder / "net.keras")


def torch_source(kind: str, folder: Path) -> Model:
    import torch

    arrays = {
        "convnet": [small.images()],
        "pair": [small.images(), small.vectors()],
        "twins": [small.vectors(), small.vectors()],
        "text": [small.tokens()],
    }[kind]
    network = getattr(small, f"torch_{kind}")()
    return small.model_of("torch", small.export_pt2(network, [*map(torch.from_numpy, arrays)], folder / "net.pt2"))


def compare(done: Converted, count: int) -> dict[str, float]:
    """The relative difference of each output of the source, paired as an audit pairs them."""
    arrays = {spec.name: sample(spec, count) for spec in done.about_source.inputs}
    expected = run(done.source, done.about_source.inputs, arrays)
    given = run(done.model, done.about_source.inputs, arrays)
    pairs, unpaired = pair_outputs(expected, given)
    assert not unpaired
    return {
        pair.reference: small.relative_l2(*fit(pair, expected[pair.reference], given[pair.candidate]))
        for pair in pairs
    }


def sample(spec: TensorSpec, count: int) -> small.Array:
    generator = np.random.default_rng([len(spec.name), count])
    named = {"height": small.HEIGHT, "width": small.WIDTH}
    shape = [count, *(named.get(str(size), size) for size in spec.shape[1:])]
    if not spec.stands_for_reals:
        return generator.integers(0, small.WORDS, shape).astype(spec.dtype)
    return generator.normal(size=shape).astype(np.float32)


def run(model: Model, samples: tuple[TensorSpec, ...], arrays: Mapping[str, small.Array]) -> dict[str, small.Array]:
    runnable = framework(model.framework).load(model)
    feeds = {}
    for binding in bind_inputs(samples, runnable.inputs):
        array = arrays[binding.sample]
        feeds[binding.input] = array if binding.permutation is None else array.transpose(binding.permutation)
    return runnable.run(feeds)


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Converted]:
    """Makes a conversion once for all tests, and a network once for all converters that read it."""
    folder = tmp_path_factory.mktemp("converters")
    room = folder / "room"

    @functools.cache
    def source(origin: str, kind: str) -> Model:
        return source_of(kind, origin, folder / f"{origin}_{kind}")

    @functools.cache
    def get(name: str, kind: str) -> Converted:
        """Make it in an empty working directory, with a temporary folder of its own."""
        model = source(CONVERTERS[name].source, kind)
        here, temporary = room / f"{name}_{kind}" / "here", room / f"{name}_{kind}" / "temporary"
        here.mkdir(parents=True)
        temporary.mkdir()
        watched = (here, temporary, Path(model.path).parent)
        before = contents(*watched)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(here)
            patch.setattr(tempfile, "tempdir", str(temporary))
            patch.setenv("TMPDIR", str(temporary))
            done = convert(model, name, folder / f"{name}_{kind}" / "target")
        strays = frozenset(path for path, _ in before.items() ^ contents(*watched).items())
        return dataclasses.replace(done, strays=strays)

    return get


Convert = Callable[[str, str], Converted]


# --- What the result computes ---


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [1, 3])
def test_a_convolutional_network(converted: Convert, name: str, count: int) -> None:
    differences = compare(converted(name, "convnet"), count)
    assert len(differences) == 1
    assert max(differences.values()) < 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_the_batch_stays_symbolic(converted: Convert, name: str) -> None:
    about = converted(name, "convnet").about
    assert all(isinstance(spec.shape[0], str) for spec in about.inputs + about.outputs)
    assert all(isinstance(size, int) for spec in about.inputs + about.outputs for size in spec.shape[1:])


@pytest.mark.parametrize("name", MOST)
def test_inputs_and_outputs_of_different_shapes(converted: Convert, name: str) -> None:
    done = converted(name, "pair")
    assert len(done.about.inputs) == len(done.about.outputs) == 2
    differences = compare(done, 3)
    assert len(differences) == 2
    assert max(differences.values()) < 1e-5


@pytest.mark.parametrize("name", MOST)
def test_inputs_and_outputs_of_equal_shapes_are_not_swapped(converted: Convert, name: str) -> None:
    differences = compare(converted(name, "twins"), 3)
    assert len(differences) == 2
    assert max(differences.values()) < 1e-5


@pytest.mark.parametrize("name", MOST)
def test_whole_numbers(converted: Convert, name: str) -> None:
    done = converted(name, "text")
    assert max(compare(done, 3).values()) < 1e-5
    calculates = name in {*BY_TF2ONNX, "keras-torch"}  # with the indices, so that they're no plain input
    if done.model.framework != "tensorflow" and not calculates:
        assert done.about.inputs[0].high == small.WORDS


def test_names_that_torch_export_cannot_read_back(tmp_path: Path) -> None:
    """TFLite joins the names of fused operators by semicolons."""
    network = onnx.load(small.onnx_convnet(tmp_path / "net.onnx"))
    for node in network.graph.node:
        node.name = f"a;{node.name}/b c"
    onnx.save(network, tmp_path / "net.onnx")
    done = convert(small.model_of("onnx", tmp_path / "net.onnx"), "onnx2torch", tmp_path / "out")
    assert done.model.path.endswith(".pt2")
    assert max(compare(done, 3).values()) < 1e-5


@pytest.mark.parametrize("name", ["keras-onnx-tf2onnx", "keras-onnx-export", "keras-savedmodel", "keras-tflite"])
def test_a_keras_model_of_a_dict(tmp_path: Path, name: str) -> None:
    small.keras_pair(as_dict=True).save(tmp_path / "net.keras")
    differences = compare(convert(small.model_of("keras", tmp_path / "net.keras"), name, tmp_path / "out"), 3)
    assert len(differences) == 2
    assert max(differences.values()) < 1e-5


@pytest.mark.parametrize("kind", ["factory", "traced"])
@pytest.mark.parametrize("name", ["torch-onnx-dynamo", "torch-onnx-script"])
def test_other_torch_sources(tmp_path: Path, name: str, kind: str) -> None:
    import torch

    network = small.torch_convnet()
    if kind == "factory":
        torch.save(network.state_dict(), tmp_path / "net.pt")
        source = small.model_of(
            "torch", tmp_path / "net.pt", factory=Factory("small_models:torch_convnet"), inputs=(small.IMAGE,)
        )
    else:
        torch.jit.trace(network, torch.from_numpy(small.images())).save(str(tmp_path / "net.pt"))
        source = small.model_of("torch", tmp_path / "net.pt", inputs=(small.IMAGE,))
    if (name, kind) == ("torch-onnx-dynamo", "traced"):
        assert CONVERTERS[name].accepts(source) is not None
        with pytest.raises(ConversionError, match=r"net\.pt: the exporter doesn't read TorchScript"):
            convert(source, name, tmp_path / "out")
        return
    assert CONVERTERS[name].accepts(source) is None
    done = convert(source, name, tmp_path / "out")
    assert [str(spec) for spec in done.about.inputs] == ["image: float32[batch, 3, 12, 10]"]
    assert max(compare(done, 3).values()) < 1e-5


@pytest.mark.parametrize("kind", ["pair", "twins", "session"])
@pytest.mark.parametrize("name", ["savedmodel-onnx-tf2onnx", "savedmodel-tflite"])
def test_frozen_graphs(tmp_path: Path, name: str, kind: str) -> None:
    if kind == "session":
        frozen = small.freeze_session(tmp_path / "net.pb")
    else:
        module = getattr(small, f"tensorflow_{kind}")()
        frozen = small.freeze(module.__call__.get_concrete_function(), tmp_path / "net.pb")
    source = small.model_of("tensorflow", frozen)
    assert CONVERTERS[name].accepts(source) is None
    done = convert(source, name, tmp_path / "out")
    assert {spec.name for spec in done.about.inputs} == {spec.name for spec in done.about_source.inputs}
    assert max(compare(done, 3).values()) < 1e-5


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pads_in_all_modes(tmp_path: Path, mode: str) -> None:
    pads = numpy_helper.from_array(np.array([0, 0, 1, 2, 0, 0, 3, 0]), "pads")
    source = onnx_source(tmp_path, helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode), pads)
    done = convert(source, "onnx2torch", tmp_path / "out")
    assert done.about.format == "exported PyTorch program"
    assert len(list(done.folder.iterdir())) == 1
    assert compare(done, 3) == {"y": 0.0}


@pytest.mark.parametrize("name", ["keras-savedmodel", "keras-tflite", "keras-onnx-tf2onnx", "keras-onnx-export"])
def test_h5_files_and_nested_models(tmp_path: Path, name: str) -> None:
    small.keras_convnet(nested=True).save(tmp_path / "net.h5")
    done = convert(small.model_of("keras", tmp_path / "net.h5"), name, tmp_path / "out")
    assert max(compare(done, 3).values()) < 1e-5


@pytest.mark.parametrize("kind", ["dynamic-range", "float16"])
def test_tflite_with_narrow_weights(tmp_path: Path, kind: str) -> None:
    source = small.model_of("tflite", small.tflite_of(small.keras_convnet(), tmp_path / "net.tflite", kind))
    assert max(compare(convert(source, "tflite-onnx-tf2onnx", tmp_path / "out"), 3).values()) < 1e-3


# --- Options ---


@pytest.mark.parametrize(
    ("name", "opset"),
    crossed(
        WITH_OPSET,
        [11, 13, 17, 18],
        quick=[
            *((name, opset) for name in ("torch-onnx-dynamo", "torch-onnx-script") for opset in (11, 13, 17, 18)),
            *zip(BY_TF2ONNX, (11, 13, 17, 18), strict=True),
        ],
    ),
)
def test_the_opset_is_what_was_asked_for(converted: Convert, tmp_path: Path, name: str, opset: int) -> None:
    """The current PyTorch exporter writes 18 at least; its own way down gives up silently."""
    done = convert(converted(name, "convnet").source, name, tmp_path, opset=opset)
    assert done.about.opset == opset
    onnx.checker.check_model(done.model.path, full_check=True)
    assert max(compare(done, 3).values()) < 1e-5


@pytest.mark.parametrize("name", WITH_OPSET)
def test_default_opsets(converted: Convert, name: str) -> None:
    done = converted(name, "convnet")
    assert done.model.provenance is not None
    default = done.model.provenance.options["opset"]
    assert done.about.opset == default or (default == 0 and (done.about.opset or 0) >= 18)


@pytest.mark.parametrize("name", BY_TF2ONNX)
def test_an_opset_that_tf2onnx_does_not_write(converted: Convert, tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="Opset 19 is not supported"):
        convert(converted(name, "convnet").source, name, tmp_path, opset=19)


def test_an_opset_that_cannot_express_the_network(tmp_path: Path) -> None:
    import torch

    class Sampled(torch.nn.Module):
        def forward(self, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.grid_sample(x, grid, align_corners=False)

    path = small.export_pt2(Sampled(), [torch.zeros(2, 1, 4, 4), torch.zeros(2, 4, 4, 2)], tmp_path / "net.pt2")
    with pytest.raises(ConversionError, match=r"GridSample.*opset 15.*came with opset"):
        convert(small.model_of("torch", path), "torch-onnx-dynamo", tmp_path / "out", opset=15)


def test_an_opset_without_an_operator_that_others_define(tmp_path: Path) -> None:
    """LayerNormalization came with opset 17."""
    import torch

    path = small.export_pt2(torch.nn.LayerNorm(4), [torch.zeros(2, 4)], tmp_path / "net.pt2")
    done = convert(small.model_of("torch", path), "torch-onnx-dynamo", tmp_path / "out", opset=15)
    assert "LayerNormalization" not in done.about.operators
    assert max(compare(done, 3).values()) < 1e-5


def test_the_gelu_of_keras(tmp_path: Path) -> None:
    """It's made of erfc, which neither tf2onnx nor ONNX has."""
    import keras

    x = keras.Input([5], name="x")
    network = keras.Model(x, keras.layers.Dense(3, activation="gelu", name="y")(keras.activations.gelu(3 * x)))
    network.save(tmp_path / "net.keras")
    done = convert(small.model_of("keras", tmp_path / "net.keras"), "keras-onnx-tf2onnx", tmp_path / "out")
    assert max(compare(done, 3).values()) < 1e-5


def test_convolutions_in_groups_of_keras(tmp_path: Path) -> None:
    """They lie in a function that XLA must compile, which tf2onnx leaves in the graph."""
    import keras
    import tensorflow as tf

    x = keras.Input([6, 6, 4], name="x")
    network = keras.Model(x, keras.layers.Conv2D(6, 3, groups=2, activation="gelu", name="y")(x))
    network.save(tmp_path / "net.keras")
    source = small.model_of("keras", tmp_path / "net.keras")
    done = convert(source, "keras-onnx-tf2onnx", tmp_path / "out")
    assert max(compare(done, 3).values()) < 1e-5
    assert not tf.config.functions_run_eagerly()
    with pytest.raises(ConversionError, match=r"could not convert StatefulPartitionedCall \('[^']*'\): ONNX"):
        convert(source, "keras-onnx-export", tmp_path / "other")


def test_constants_that_keras_exports_as_inputs(tmp_path: Path) -> None:
    import keras

    x = keras.Input([4, 3], name="x")
    network = keras.Model(x, keras.layers.Normalization(mean=[1.0, 2.0, 3.0], variance=[4.0, 5.0, 6.0])(x))
    network.save(tmp_path / "net.keras")
    source = small.model_of("keras", tmp_path / "net.keras")
    with pytest.raises(
        ConversionError, match=r"inputs of 2 constants of its layers \(.*normalization.*keras-onnx-tf2onnx"
    ):
        convert(source, "keras-onnx-export", tmp_path / "other")
    assert max(compare(convert(source, "keras-onnx-tf2onnx", tmp_path / "out"), 3).values()) < 1e-5


def test_folding_of_batch_normalization(converted: Convert, tmp_path: Path) -> None:
    source = converted("torch-onnx-script", "convnet").source
    assert "BatchNormalization" not in converted("torch-onnx-script", "convnet").about.operators
    plain = convert(source, "torch-onnx-script", tmp_path, fold_constants=False)
    assert max(compare(plain, 3).values()) < 1e-5


@pytest.mark.parametrize("opset", [18, 21])
def test_another_opset(tmp_path: Path, opset: int) -> None:
    source = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx", opset=17))
    done = convert(source, "onnx-version-converter", tmp_path / "out", opset=opset)
    assert done.about.opset == opset
    assert max(compare(done, 3).values()) < 1e-5


def test_an_opset_that_onnx_knows_no_way_to(tmp_path: Path) -> None:
    source = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx", opset=17))
    with pytest.raises(RuntimeError, match=r"No Adapter From Version .* for BatchNormalization"):
        convert(source, "onnx-version-converter", tmp_path / "out", opset=13)


def test_what_onnxsim_is_told(tmp_path: Path) -> None:
    source = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    usual = convert(source, "onnx-onnxsim", tmp_path / "usual")
    assert "BatchNormalization" not in usual.about.operators
    kept = convert(source, "onnx-onnxsim", tmp_path / "kept", fuse_batch_norm=False)
    assert "BatchNormalization" in kept.about.operators
    assert compare(kept, 3) == {"probabilities": 0.0}


def test_what_onnxoptimizer_leaves_out(tmp_path: Path) -> None:
    source = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    usual = convert(source, "onnx-onnxoptimizer", tmp_path / "usual")
    assert "BatchNormalization" not in usual.about.operators
    kept = convert(source, "onnx-onnxoptimizer", tmp_path / "kept", without="eliminate_identity, fuse_bn_into_conv")
    assert "BatchNormalization" in kept.about.operators
    assert compare(kept, 3) == {"probabilities": 0.0}
    with pytest.raises(ConfigError, match="there is no pass 'fuse_bn_into_con'; did you mean 'fuse_bn_into_conv'"):
        convert(source, "onnx-onnxoptimizer", tmp_path / "none", without="fuse_bn_into_con")


def onnx_with_a_constant_part(folder: Path) -> Model:
    """Adds the sum of two constants."""
    constants = [numpy_helper.from_array(np.full((3, 1, 1), value, np.float32), name) for name, value in CONSTANTS]
    graph = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Mul", ["x", "c"], ["y"])],
        "constant",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 3, 12, 10])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 3, 12, 10])],
        constants,
    )
    return small.model_of("onnx", small.save_onnx(folder / "net.onnx", graph))


CONSTANTS = [("a", 1.5), ("b", 2.0)]


def test_constants_are_folded_unless_told_otherwise(tmp_path: Path) -> None:
    source = onnx_with_a_constant_part(tmp_path)
    for name, options, operators in [
        ("onnx-onnxsim", {}, {"Mul": 1}),
        ("onnx-onnxsim", {"fold_constants": False}, {"Add": 1, "Mul": 1}),
        ("onnx-onnxslim", {}, {"Mul": 1}),
        ("onnx-version-converter", {}, {"Add": 1, "Mul": 1}),
    ]:
        done = convert(source, name, tmp_path / f"{name}{len(options)}", **options)
        assert done.about.operators == operators, (name, options)
        assert max(compare(done, 3).values()) < 1e-6


@pytest.mark.parametrize("infer", [True, False])
def test_shapes_that_onnxslim_infers(tmp_path: Path, infer: bool) -> None:
    source = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    done = convert(source, "onnx-onnxslim", tmp_path / "out", infer_shapes=infer)
    assert bool(onnx.load(done.model.path).graph.value_info) is infer


def test_without_optimization(converted: Convert, tmp_path: Path) -> None:
    done = convert(converted("torch-onnx-dynamo", "convnet").source, "torch-onnx-dynamo", tmp_path, optimize=False)
    assert max(compare(done, 3).values()) < 1e-5
    usual = converted("torch-onnx-dynamo", "convnet").about
    assert sum(done.about.operators.values()) >= sum(usual.operators.values())


def test_onnx2torch_lowers_the_opset_first(tmp_path: Path) -> None:
    axes = numpy_helper.from_array(np.array([2, 3]), "axes")
    source = onnx_source(tmp_path, helper.make_node("ReduceMean", ["x", "axes"], ["y"]), axes, opset=18)
    assert max(compare(convert(source, "onnx2torch", tmp_path / "out"), 3).values()) < 1e-5


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{"no_such_option": 1}, {"opset": "13"}, {"opset": True}])
def test_wrong_options(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=name):
        converter(name).complete(options)


# --- What can't be converted ---


def onnx_source(folder: Path, node: Any, *constants: Any, opset: int = 17) -> Model:
    shape = ["batch", 3, 12, 10]
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", "c", "h", "w"])],
        list(constants),
    )
    return small.model_of("onnx", small.save_onnx(folder / "net.onnx", graph, opset=opset, check=False))


def onnx_without_a_torch_operator(folder: Path) -> Model:
    return onnx_source(folder, helper.make_node("GlobalLpPool", ["x"], ["y"]))


def torch_without_an_onnx_operator(folder: Path) -> Model:
    import torch

    class Eigenvalues(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvalsh(x)

    return small.model_of("torch", small.export_pt2(Eigenvalues(), [torch.zeros(2, 3, 3)], folder / "net.pt2"))


def keras_with_erfinv(folder: Path) -> Model:
    import keras

    vector = keras.Input((4,), name="vector")
    keras.Model(vector, keras.ops.erfinv(vector)).save(folder / "net.keras")
    return small.model_of("keras", folder / "net.keras")


def savedmodel_with_erfinv(folder: Path) -> Model:
    from conrepair.formats.keras.load.framework import load_keras

    network = load_keras(keras_with_erfinv(folder))
    return small.model_of("tensorflow", small.tensorflow_of(network, folder / "net"))


def tflite_with_bucketize(folder: Path) -> Model:
    import tensorflow as tf

    def call(x: Any) -> Any:
        return tf.cast(tf.raw_ops.Bucketize(input=x, boundaries=[0.0, 1.0]), tf.float32)

    function = tf.function(call, autograph=False).get_concrete_function(tf.TensorSpec([3, 4], tf.float32, name="x"))
    (folder / "net.tflite").write_bytes(tf.lite.TFLiteConverter.from_concrete_functions([function]).convert())
    return small.model_of("tflite", folder / "net.tflite")


@pytest.mark.parametrize(
    ("name", "make", "named"),
    [
        ("torch-onnx-dynamo", torch_without_an_onnx_operator, "linalg_eig"),
        ("torch-onnx-script", torch_without_an_onnx_operator, "linalg_eigvalsh"),
        ("onnx2torch", onnx_without_a_torch_operator, "GlobalLpPool"),
        ("keras-onnx-tf2onnx", keras_with_erfinv, "Erfinv"),
        ("keras-onnx-export", keras_with_erfinv, "Erfinv"),
        ("keras-tflite", keras_with_erfinv, "Erfinv"),
        ("savedmodel-onnx-tf2onnx", savedmodel_with_erfinv, "Erfinv"),
        ("savedmodel-tflite", savedmodel_with_erfinv, "Erfinv"),
        ("tflite-onnx-tf2onnx", tflite_with_bucketize, "TFL_BUCKETIZE"),
    ],
)
def test_unsupported_operators_are_named(
    tmp_path: Path, name: str, make: Callable[[Path], Model], named: str
) -> None:
    source = make(tmp_path)
    with pytest.raises(Exception, match=named):
        convert(source, name, tmp_path / "out")
    assert sha256_of(Path(source.path)) == source.sha256


@pytest.mark.parametrize("name", MOST)
def test_a_damaged_source_fails(converted: Convert, tmp_path: Path, name: str) -> None:
    source = Path(converted(name, "convnet").source.path)
    damaged = tmp_path / source.name
    if source.is_dir():
        damaged.mkdir()
        (damaged / "saved_model.pb").write_bytes((source / "saved_model.pb").read_bytes()[:100])
    else:
        damaged.write_bytes(source.read_bytes()[:100])
    out = tmp_path / "out"
    out.mkdir()
    model = small.model_of(CONVERTERS[name].source, damaged)
    # The tools' own exceptions: an audit describes a source, and so refuses a damaged one, before it converts.
    with pytest.raises(Exception, match=r"\w"):
        CONVERTERS[name].convert(model, out, CONVERTERS[name].complete({}))


# --- Where it writes ---


def contents(*folders: Path) -> dict[str, str]:
    return {str(path): sha256_of(path) for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_else_is_written(converted: Convert, name: str) -> None:
    """Into the working directory, beside the source, or left in the temporary folder."""
    done = converted(name, "convnet")
    # Tracing Keras models with autograph writes files, which TensorFlow removes when the process ends.
    generated = "__autograph_generated_file" if name.startswith("keras-") else "nothing"
    assert not [path for path in done.strays if generated not in path]
    assert sha256_of(Path(done.source.path)) == done.source.sha256
    assert [path.name for path in done.folder.iterdir()] == [Path(done.model.path).name]


# --- The job around a converter ---


@pytest.mark.parametrize("name", NAMES)
def test_provenance(converted: Convert, name: str) -> None:
    done = converted(name, "convnet")
    made = done.model.provenance
    assert made is not None
    assert (made.parent, made.converter) == (done.source.sha256, name)
    assert made.tools.keys() == set(CONVERTERS[name].distributions)
    assert "missing" not in made.tools.values()
    assert made.options == CONVERTERS[name].complete({})
    assert made.seconds > 0
    assert done.model.framework == CONVERTERS[name].target
    assert done.model.sha256 == sha256_of(Path(done.model.path))
    assert done.model.inputs == done.about_source.inputs


def test_all_converters_are_here() -> None:
    isolated = [name for name, item in CONVERTERS.items() if item.environment]  # see test_isolated.py
    assert set(CONVERTERS) == {*NAMES, *NARROWING, *APART, *isolated}


def test_a_converter_that_changes_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))

    def spoil(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
        Path(model.path).write_bytes(b"spoiled")
        return "model.pt2"

    spoiling = dataclasses.replace(CONVERTERS["onnx2torch"], convert=spoil)
    put(monkeypatch, CONVERTERS, "onnx2torch", spoiling)
    with pytest.raises(ConversionError, match=r"onnx2torch changed its input .*net\.onnx"):
        convert(source, "onnx2torch", tmp_path / "out")


def test_a_converter_whose_result_does_not_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))

    def write(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
        (folder / "model.pt2").write_bytes(b"nonsense")
        return "model.pt2"

    put(monkeypatch, CONVERTERS, "onnx2torch", dataclasses.replace(CONVERTERS["onnx2torch"], convert=write))
    with pytest.raises(ModelLoadError, match=r"onnx2torch wrote a model that doesn't load\. .*model\.pt2"):
        convert(source, "onnx2torch", tmp_path / "out")
