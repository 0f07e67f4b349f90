"""Quantization when it's asked for: each option against the library's own run, and calibration against its data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small
from crossed import crossed

from conrepair.application.jobs.conversion import convert as run_converter
from conrepair.application.jobs.values import Calibration, ConversionStep
from conrepair.formats.converters.all_converters import CONVERTERS, converter
from conrepair.formats.models.model import Description, Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.errors import ConfigError, DataError
from conrepair.ground.runtime.files.whole import sha256_of

SAMPLES = 12
TO_TFLITE = ["keras-tflite", "savedmodel-tflite"]


@dataclasses.dataclass(frozen=True)
class Made:
    """A conversion through the job that workers run."""

    model: Model
    about: Description
    step: ConversionStep

    def run(self, feeds: dict[str, small.Array]) -> dict[str, small.Array]:
        return framework(self.model.framework).load(self.model).run(feeds)


def convert(source: Model, name: str, folder: Path, data: DataReference | None, **options: Any) -> Made:
    step = converter(name)
    inputs = framework(source.framework).describe(source).inputs
    told = ConversionStep.of(step, step.complete(options), None if data is None else (data, None))
    folder.mkdir()
    result = run_converter(folder, source, told, inputs)
    model = dataclasses.replace(result.model, path=str(folder / result.model.path))
    assert list(folder.iterdir()) == [Path(model.path)]
    assert sha256_of(Path(source.path)) == source.sha256 or Path(source.path).is_dir()
    return Made(model, result.description, told)


def data_of(folder: Path, **arrays: small.Array) -> DataReference:
    path = folder / f"{'_'.join(arrays)}.npz"
    np.savez(path, **arrays)
    return DataReference("tensors", len(next(iter(arrays.values()))), str(path), sha256_of(path))


def wide_keras() -> Any:
    """TensorFlow leaves weights of fewer than 1024 elements as they are when it quantizes only weights."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(3)
    image = keras.Input((small.HEIGHT, small.WIDTH, small.CHANNELS), name="image")
    picture = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(image)
    picture = layers.Conv2D(40, 3, activation="relu")(picture)
    logits = layers.Dense(small.CLASSES, name="logits")(layers.GlobalAveragePooling2D()(picture))
    return keras.Model(image, logits)


def pictures(count: int = SAMPLES) -> small.Array:
    return small.images(count, channels_last=True, seed=5)


# --- TFLite ---


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    folder = tmp_path_factory.mktemp("wide")
    network = wide_keras()
    network.save(folder / "net.keras")
    return {
        "keras-tflite": small.model_of("keras", folder / "net.keras"),
        "savedmodel-tflite": small.model_of("tensorflow", small.tensorflow_of(network, folder / "saved")),
    }


def library_tflite(source: Model, change: Callable[[Any], None]) -> bytes:
    """What TensorFlow makes when it's used as its documentation says."""
    import keras
    import tensorflow as tf

    if source.framework == "keras":
        tool = tf.lite.TFLiteConverter.from_keras_model(keras.saving.load_model(source.path, compile=False))
    else:
        tool = tf.lite.TFLiteConverter.from_saved_model(source.path)
    change(tool)
    content: bytes = tool.convert()
    return content


def as_documented(kind: str) -> Callable[[Any], None]:
    import tensorflow as tf

    def samples() -> Iterator[list[small.Array]]:
        for picture in pictures():
            yield [picture[None]]

    def change(tool: Any) -> None:
        if kind != "none":
            tool.optimizations = [tf.lite.Optimize.DEFAULT]
        if kind == "float16":
            tool.target_spec.supported_types = [tf.float16]
        if "int8" in kind:
            tool.representative_dataset = samples
            tool.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        if kind.endswith("_io"):
            tool.inference_input_type = tool.inference_output_type = getattr(tf, kind.removesuffix("_io"))

    return change


def options_of(kind: str) -> dict[str, Any]:
    return {"quantize": "int8", kind: True} if kind.endswith("_io") else {"quantize": kind}


KINDS = {
    "none": ("float32", "float32", 1e-6),
    "dynamic": ("int8", "quantized weights", 0.05),
    "float16": ("float16", "float16", 1e-3),
    "int8": ("int8", "quantized weights", 0.1),
    "int8_io": ("int8", "full-integer quantized", 0.1),
    "uint8_io": ("int8", "full-integer quantized", 0.1),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    crossed(TO_TFLITE, KINDS, quick=[(TO_TFLITE[place % len(TO_TFLITE)], kind) for place, kind in enumerate(KINDS)]),
)
def test_each_kind_of_tflite(tmp_path: Path, wide: dict[str, Model], name: str, kind: str) -> None:
    stored, precision, error = KINDS[kind]
    made = convert(wide[name], name, tmp_path / "out", data_of(tmp_path, image=pictures()), **options_of(kind))
    assert made.about.precision == precision
    assert made.about.weights[stored] > 0.9 * made.about.parameters
    integer = kind.removesuffix("_io") if kind.endswith("_io") else "float32"
    assert {spec.dtype for spec in made.about.inputs + made.about.outputs} == {integer}
    (tmp_path / "own.tflite").write_bytes(library_tflite(wide[name], as_documented(kind)))
    own = framework("tflite").load(small.model_of("tflite", tmp_path / "own.tflite"))
    feeds = {"image": small.images(7, channels_last=True, seed=6)}
    given = made.run(feeds)
    documented = own.run({own.inputs[0].name: feeds["image"]})
    np.testing.assert_array_equal(given["output_0"], next(iter(documented.values())))
    source = next(iter(framework(wide[name].framework).load(wide[name]).run(feeds).values()))
    assert small.relative_l2(source, given["output_0"]) < error


@pytest.mark.parametrize("name", TO_TFLITE)
def test_nothing_is_quantized_without_asking(tmp_path: Path, wide: dict[str, Model], name: str) -> None:
    step = converter(name)
    made = convert(wide[name], name, tmp_path / "out", data_of(tmp_path, image=pictures()))
    assert made.about.precision == "float32"
    assert set(made.about.weights) == {"float32", "int32"}  # of shapes and axes
    assert made.step.calibration is None
    assert step.intent(step.complete({})) is None


@pytest.mark.parametrize("kind", ["keras", "savedmodel", "frozen"])
def test_ranges_go_to_the_inputs_that_they_belong_to(tmp_path: Path, kind: str) -> None:
    """Two inputs of one shape, one with values a hundred times the other's."""
    if kind == "keras":
        small.keras_twins().save(tmp_path / "net.keras")
        source = small.model_of("keras", tmp_path / "net.keras")
    elif kind == "savedmodel":
        source = small.model_of("tensorflow", small.save_tensorflow(small.tensorflow_twins(), tmp_path / "net"))
    else:
        function = small.tensorflow_twins().__call__.get_concrete_function()
        source = small.model_of("tensorflow", small.freeze(function, tmp_path / "net.pb"))
    first, second = small.vectors(SAMPLES), 100 * small.vectors(SAMPLES, seed=4)
    name = "keras-tflite" if kind == "keras" else "savedmodel-tflite"
    data = data_of(tmp_path, second=second, first=first)
    made = convert(source, name, tmp_path / "out", data, quantize="int8", int8_io=True)
    scales = {spec.name: spec.quantization.scale for spec in made.about.inputs if spec.quantization}
    assert scales == pytest.approx({"first": range_of(first) / 255, "second": range_of(second) / 255}, rel=1e-3)


def range_of(array: small.Array) -> float:
    """From the smallest to the largest value, with 0."""
    return float(max(array.max(), 0) - min(array.min(), 0))


def test_samples_are_spread_over_the_data(tmp_path: Path, wide: dict[str, Model]) -> None:
    """With three of twelve: the first, the fifth, the ninth."""
    images = pictures()
    images[8] *= 50
    images[11] *= 500
    for count, used in [(3, [0, 4, 8]), (1, [0]), (1000, list(range(SAMPLES)))]:
        made = convert(
            wide["keras-tflite"],
            "keras-tflite",
            tmp_path / f"out{count}",
            data_of(tmp_path, image=images),
            quantize="int8",
            int8_io=True,
            calibration_samples=count,
        )
        quantization = made.about.inputs[0].quantization
        assert quantization is not None
        assert quantization.scale == pytest.approx(range_of(images[used]) / 255, rel=1e-3)


@pytest.mark.parametrize("name", [*TO_TFLITE, "onnx-quantize-static"])
def test_what_needs_data_says_so(tmp_path: Path, wide: dict[str, Model], name: str) -> None:
    options: dict[str, Any] = {"quantize": "int8"} if name in TO_TFLITE else {}
    source = wide[name] if name in wide else small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    with pytest.raises(DataError, match="needs data to calibrate with"):
        convert(source, name, tmp_path / "out", None, **options)


def test_integer_inputs_go_with_integer_kernels(tmp_path: Path, wide: dict[str, Model]) -> None:
    with pytest.raises(ConfigError, match="int8_io goes with quantize=int8, not with quantize=dynamic"):
        convert(wide["keras-tflite"], "keras-tflite", tmp_path / "out", None, quantize="dynamic", int8_io=True)
    with pytest.raises(ConfigError, match="two types of the same inputs and outputs"):
        convert(
            wide["keras-tflite"],
            "keras-tflite",
            tmp_path / "both",
            data_of(tmp_path, image=pictures()),
            quantize="int8",
            int8_io=True,
            uint8_io=True,
        )


# --- ONNX ---


def onnx_net(folder: Path) -> Model:
    return small.model_of("onnx", small.onnx_convnet(folder / "net.onnx"))


def samples_of(images: small.Array) -> Any:
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.feeds = iter([{"image": image[None]} for image in images])

        def get_next(self) -> Any:
            return next(self.feeds, None)

    return Reader()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prepare": False},
        {"per_channel": False},
        {"activations": "int8"},
        {"weights": "uint8"},
        {"reduce_range": True},
        {"method": "entropy"},
        {"method": "percentile"},
        {"method": "percentile", "percentile": 90.0},
        {"calibration_samples": 3},
    ],
    ids=lambda options: ",".join(f"{name}={value}" for name, value in options.items()) or "default",
)
def test_static_quantization_of_onnx(tmp_path: Path, options: dict[str, Any]) -> None:
    from onnxruntime.quantization import CalibrationMethod, QuantType, quant_pre_process, quantize_static

    source, images = onnx_net(tmp_path), small.images(SAMPLES, seed=5)
    made = convert(source, "onnx-quantize-static", tmp_path / "out", data_of(tmp_path, image=images), **options)
    chosen = CONVERTERS["onnx-quantize-static"].complete(options)
    prepared, own = tmp_path / "prepared.onnx", tmp_path / "own.onnx"
    if chosen["prepare"]:
        quant_pre_process(source.path, prepared)
    types = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}
    quantize_static(
        prepared if chosen["prepare"] else source.path,
        own,
        samples_of(images[:: SAMPLES // 3] if "calibration_samples" in options else images),
        per_channel=chosen["per_channel"],
        reduce_range=chosen["reduce_range"],
        activation_type=types[chosen["activations"]],
        weight_type=types[chosen["weights"]],
        calibrate_method={
            "minmax": CalibrationMethod.MinMax,
            "entropy": CalibrationMethod.Entropy,
            "percentile": CalibrationMethod.Percentile,
        }[chosen["method"]],
        extra_options={"CalibPercentile": chosen["percentile"]} if chosen["method"] == "percentile" else {},
    )
    feeds = {"image": small.images(7, seed=6)}
    given = made.run(feeds)
    np.testing.assert_array_equal(
        given["probabilities"],
        framework("onnx").load(small.model_of("onnx", own)).run(feeds)["probabilities"],
    )
    assert made.about.quantized
    assert made.about.weights[chosen["weights"]] > 300
    assert ("BatchNormalization" in made.about.operators) is not chosen["prepare"]
    assert zero_point_types(made.model) >= {chosen["activations"], chosen["weights"]}
    expected = framework("onnx").load(source).run(feeds)["probabilities"]
    assert 1e-5 < small.relative_l2(expected, given["probabilities"]) < 0.1


def zero_point_types(model: Model) -> set[str]:
    names = {onnx.TensorProto.INT8: "int8", onnx.TensorProto.UINT8: "uint8", onnx.TensorProto.INT32: "int32"}
    tensors = onnx.load(model.path).graph.initializer
    return {names[tensor.data_type] for tensor in tensors if "zero_point" in tensor.name}


def test_percentiles_change_the_ranges(tmp_path: Path) -> None:
    source, data = onnx_net(tmp_path), data_of(tmp_path, image=small.images(SAMPLES, seed=5))
    results = [
        convert(source, "onnx-quantize-static", tmp_path / f"{share}", data, method="percentile", percentile=share)
        for share in (90.0, 99.999)
    ]
    assert results[0].model.sha256 != results[1].model.sha256


@pytest.mark.parametrize("options", [{}, {"weights": "uint8"}, {"per_channel": True}])
def test_dynamic_quantization_of_onnx(tmp_path: Path, options: dict[str, Any]) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    source = onnx_net(tmp_path)
    made = convert(source, "onnx-quantize-dynamic", tmp_path / "out", None, **options)
    own = tmp_path / "own.onnx"
    stored = options.get("weights", "int8")
    quantize_dynamic(
        source.path,
        own,
        per_channel=options.get("per_channel", False),
        weight_type=QuantType.QInt8 if stored == "int8" else QuantType.QUInt8,
    )
    feeds = {"image": small.images(7, seed=6)}
    given = made.run(feeds)["probabilities"]
    np.testing.assert_array_equal(
        given, framework("onnx").load(small.model_of("onnx", own)).run(feeds)["probabilities"]
    )
    assert made.about.weights[stored] >= 360
    assert {"ConvInteger", "MatMulInteger"} <= set(made.about.operators)
    assert 1e-5 < small.relative_l2(framework("onnx").load(source).run(feeds)["probabilities"], given) < 0.05


def test_recorded_shapes_of_weights_do_not_stop_dynamic_quantization(tmp_path: Path) -> None:
    """PyTorch's exporter writes them; the quantizer transposes the weight of a Gemm and keeps the old shape."""
    from onnxruntime.quantization import quantize_dynamic

    proto = onnx.load(small.onnx_convnet(tmp_path / "net.onnx"))
    (weight,) = (tensor for tensor in proto.graph.initializer if tensor.name == "dense")
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("dense", weight.data_type, weight.dims))
    onnx.save(proto, tmp_path / "recorded.onnx")
    with pytest.raises(Exception, match="Inferred shape and existing shape differ"):
        quantize_dynamic(tmp_path / "recorded.onnx", tmp_path / "own.onnx")
    made = convert(
        small.model_of("onnx", tmp_path / "recorded.onnx"), "onnx-quantize-dynamic", tmp_path / "out", None
    )
    plain = convert(onnx_net(tmp_path), "onnx-quantize-dynamic", tmp_path / "plain", None)
    feeds = {"image": small.images(7, seed=6)}
    np.testing.assert_array_equal(made.run(feeds)["probabilities"], plain.run(feeds)["probabilities"])


@pytest.mark.parametrize("keep", [True, False])
def test_half_precision_of_onnx(tmp_path: Path, keep: bool) -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    source = onnx_net(tmp_path)
    made = convert(source, "onnx-float16", tmp_path / "out", None, keep_io=keep)
    onnx.save(convert_float_to_float16(onnx.load(source.path), keep_io_types=keep), tmp_path / "own.onnx")
    assert made.about.precision == "float16"
    assert {spec.dtype for spec in made.about.inputs + made.about.outputs} == {"float32" if keep else "float16"}
    onnx.checker.check_model(made.model.path, full_check=True)  # the library's own isn't sorted
    feeds = {"image": small.images(7, seed=6)}
    given = made.run(feeds)["probabilities"]
    own = framework("onnx").load(small.model_of("onnx", tmp_path / "own.onnx")).run(feeds)["probabilities"]
    np.testing.assert_array_equal(given, own)
    assert 1e-5 < small.relative_l2(framework("onnx").load(source).run(feeds)["probabilities"], given) < 2e-3


def test_a_fixed_batch_is_calibrated_with_full_batches(tmp_path: Path) -> None:
    source = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx", batch=5))
    images = small.images(SAMPLES, seed=5)
    made = convert(source, "onnx-quantize-static", tmp_path / "out", data_of(tmp_path, image=images))
    assert made.about.inputs[0].shape[0] == 5
    scale = next(
        float(onnx.numpy_helper.to_array(tensor))
        for tensor in onnx.load(made.model.path).graph.initializer
        if tensor.name == "image_scale"
    )
    assert scale == pytest.approx(range_of(images) / 255, rel=1e-4)


@pytest.mark.parametrize("kind", ["pair", "text"])
def test_other_networks_are_quantized_too(tmp_path: Path, kind: str) -> None:
    """Two inputs of different shapes with symbolic sizes; indices of a table."""
    source = small.model_of("onnx", getattr(small, f"onnx_{kind}")(tmp_path / "net.onnx"))
    if kind == "pair":
        arrays = {"vector": small.vectors(SAMPLES), "image": small.images(SAMPLES)}
    else:
        arrays = {"text": small.tokens(SAMPLES)}
    expected = framework("onnx").load(source).run(arrays)
    for name in ("onnx-quantize-static", "onnx-quantize-dynamic"):
        made = convert(source, name, tmp_path / name, data_of(tmp_path, **arrays))
        assert made.about.quantized
        output = next(iter(expected))
        assert 0 < small.relative_l2(expected[output], made.run(arrays)[output]) < 0.05


# --- What converters declare ---


@pytest.mark.parametrize(
    ("name", "options", "intent", "samples"),
    [
        ("keras-tflite", {}, None, 0),
        ("keras-tflite", {"quantize": "dynamic"}, "int8 weights", 0),
        ("keras-tflite", {"quantize": "float16"}, "float16", 0),
        ("savedmodel-tflite", {"quantize": "int8"}, "int8", 100),
        ("savedmodel-tflite", {"quantize": "int8", "calibration_samples": 7}, "int8", 7),
        ("onnx-quantize-dynamic", {}, "int8 weights", 0),
        ("onnx-quantize-static", {}, "int8", 100),
        ("onnx-float16", {}, "float16", 0),
        ("onnx-onnxslim", {}, None, 0),
        ("torch-onnx-dynamo", {}, None, 0),
    ],
)
def test_intent_and_calibration(name: str, options: dict[str, Any], intent: str | None, samples: int) -> None:
    step = CONVERTERS[name]
    complete = step.complete(options)
    assert step.intent(complete) == intent
    assert step.calibrates(complete) == samples


def test_data_belong_to_a_result_only_where_they_calibrate(tmp_path: Path) -> None:
    step = CONVERTERS["keras-tflite"]
    data = data_of(tmp_path, image=pictures()), None
    for options in ({}, {"quantize": "dynamic"}, {"quantize": "float16"}):
        complete = step.complete(options)
        assert ConversionStep.of(step, complete, data) == ConversionStep.of(step, complete)
    told = ConversionStep.of(step, step.complete({"quantize": "int8"}), data)
    assert told.calibration == Calibration(*data, 100)


@pytest.mark.parametrize("options", [{"quantize": "int4"}, {"quantize": "int8", "calibration_samples": 0}])
def test_values_that_are_not_allowed(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"of keras-tflite takes"):
        CONVERTERS["keras-tflite"].complete(options)
