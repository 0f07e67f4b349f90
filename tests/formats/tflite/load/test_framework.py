"""TFLite models of every kind of quantization, made here from one Keras model."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flatbuffers
import keras
import numpy as np
import pytest
import small_models as small
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from conrepair.formats.models.model import Model
from conrepair.formats.tflite.load.framework import FRAMEWORK
from conrepair.formats.tflite.load.screening import check_tables
from conrepair.ground.runtime.errors import DataError, ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of

IMAGES = small.images(3, channels_last=True)
VECTORS = small.vectors(3)
KINDS = ["float", "float16", "dynamic-range", "int8", "full-int8", "full-uint8"]


@pytest.fixture(scope="module")
def convnet() -> Any:
    return small.keras_convnet()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, convnet: Any) -> Path:
    folder = tmp_path_factory.mktemp("tflite")
    for kind in KINDS:
        small.tflite_of(wide() if kind == "dynamic-range" else convnet, folder / f"{kind}.tflite", kind)
    small.tflite_of(convnet, folder / "fixed.tflite", batch=3)
    small.tflite_of(small.keras_pair(), folder / "pair.tflite")
    small.tflite_of(small.keras_text(), folder / "text.tflite")
    return folder


def wide() -> Any:
    """Dynamic range quantization leaves weights of fewer than 1024 elements alone."""
    keras.utils.set_random_seed(20)
    image = keras.Input((small.HEIGHT, small.WIDTH, small.CHANNELS), name="image")
    return keras.Model(image, keras.layers.Dense(small.CLASSES, name="logits")(keras.layers.Flatten()(image)))


def model(folder: Path, kind: str) -> Model:
    return small.model_of("tflite", folder / f"{kind}.tflite")


def directly(path: Path, feeds: dict[str, small.Array]) -> dict[str, small.Array]:
    """LiteRT called without conrepair, by the signature."""
    runner = Interpreter(model_path=str(path), num_threads=1).get_signature_runner()
    return dict(runner(**feeds))


# --- Description ---


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dynamic-range"])
def test_description(folder: Path, kind: str) -> None:
    about = FRAMEWORK.describe(model(folder, kind))
    assert about.format == "TFLite"
    (given,), (result,) = about.inputs, about.outputs
    assert (given.name, given.shape) == ("image", ("batch", 12, 10, 3))
    assert (result.name, result.shape) == ("output_0", ("batch", 6))
    expected = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 1, "AVERAGE_POOL_2D": 1, "MAX_POOL_2D": 1, "FULLY_CONNECTED": 1}
    assert expected.items() <= about.operators.items()
    # Each BatchNormalization is folded into the bias of its convolution: 520 - 2 * 20 + 2 * 5. Constants of shapes
    # count too.
    assert 0 <= about.parameters - 490 < 4
    assert about.parameters == sum(about.weights.values())


@pytest.mark.parametrize(
    ("kind", "precision", "stored"),
    [
        ("float", "float32", "float32"),
        ("float16", "float16", "float32"),
        ("dynamic-range", "quantized weights", "float32"),
        ("int8", "quantized weights", "float32"),
        ("full-int8", "full-integer quantized", "int8"),
        ("full-uint8", "full-integer quantized", "uint8"),
    ],
)
def test_precision(folder: Path, kind: str, precision: str, stored: str) -> None:
    about = FRAMEWORK.describe(model(folder, kind))
    assert about.precision == precision
    assert {spec.dtype for spec in about.inputs + about.outputs} == {stored}
    assert all((spec.quantization is not None) == (stored != "float32") for spec in about.inputs + about.outputs)


def test_quantization_is_the_files(folder: Path) -> None:
    interpreter = Interpreter(model_path=str(folder / "full-int8.tflite"))
    (detail,) = interpreter.get_input_details()
    quantization = FRAMEWORK.describe(model(folder, "full-int8")).inputs[0].quantization
    assert quantization is not None
    assert (quantization.scale, quantization.zero_point) == detail["quantization"]


# --- Running ---


@pytest.mark.parametrize("kind", ["float", "float16", "dynamic-range", "int8"])
@pytest.mark.parametrize("count", [1, 3])
def test_run_is_what_litert_gives(folder: Path, kind: str, count: int) -> None:
    feeds = {"image": IMAGES[:count]}
    result = FRAMEWORK.load(model(folder, kind)).run(feeds)
    expected = directly(folder / f"{kind}.tflite", feeds)
    assert small.relative_l2(expected["output_0"], result["output_0"]) < 1e-6


@pytest.mark.parametrize(("kind", "near"), [("float", 1e-6), ("float16", 2e-3), ("full-int8", 0.1)])
def test_run_is_near_what_keras_gives(folder: Path, convnet: Any, kind: str, near: float) -> None:
    result = FRAMEWORK.load(model(folder, kind)).run({"image": IMAGES})["output_0"]
    assert result.dtype == np.float32
    assert small.relative_l2(convnet(IMAGES), result) < near


@pytest.mark.parametrize("kind", ["full-int8", "full-uint8"])
def test_quantized_inputs_and_outputs_are_real_numbers(folder: Path, kind: str) -> None:
    runnable = FRAMEWORK.load(model(folder, kind))
    given, result = runnable.inputs[0].quantization, runnable.outputs[0].quantization
    assert given is not None
    assert result is not None
    limits = np.iinfo(runnable.inputs[0].dtype)
    stored = np.clip(np.rint(IMAGES / given.scale) + given.zero_point, limits.min, limits.max)
    stored = stored.astype(runnable.inputs[0].dtype)
    expected = directly(folder / f"{kind}.tflite", {"image": stored})["output_0"]
    assert expected.dtype == runnable.outputs[0].dtype
    real = (expected.astype(np.float32) - result.zero_point) * np.float32(result.scale)
    np.testing.assert_array_equal(runnable.run({"image": IMAGES})["output_0"], real)
    np.testing.assert_array_equal(runnable.run({"image": stored})["output_0"], real)


def test_int8_does_not_take_the_bytes_of_a_photo(folder: Path) -> None:
    photo = np.full((1, 12, 10, 3), 200, np.uint8)
    with pytest.raises(DataError, match="input image: int8"):
        FRAMEWORK.load(model(folder, "full-int8")).run({"image": photo})


def test_the_batch_may_change_from_run_to_run(folder: Path, convnet: Any) -> None:
    runnable = FRAMEWORK.load(model(folder, "float"))
    for count in (2, 2, 1, 3, 1):
        result = runnable.run({"image": IMAGES[:count]})["output_0"]
        assert small.relative_l2(convnet(IMAGES[:count]), result) < 1e-6


def test_results_are_not_overwritten_by_the_next_run(folder: Path) -> None:
    runnable = FRAMEWORK.load(model(folder, "float"))
    first = runnable.run({"image": IMAGES})["output_0"]
    kept = first.copy()
    runnable.run({"image": -IMAGES})
    np.testing.assert_array_equal(first, kept)


def test_fixed_batch(folder: Path, convnet: Any) -> None:
    about = FRAMEWORK.describe(model(folder, "fixed"))
    assert (about.inputs[0].shape[0], about.outputs[0].shape[0]) == (3, 3)
    runnable = FRAMEWORK.load(model(folder, "fixed"))
    assert small.relative_l2(convnet(IMAGES), runnable.run({"image": IMAGES})["output_0"]) < 1e-6
    with pytest.raises(DataError, match=r"input image: float32\[3, 12, 10, 3\]"):
        runnable.run({"image": IMAGES[:2]})


def test_several_inputs_and_outputs(folder: Path) -> None:
    about = FRAMEWORK.describe(model(folder, "pair"))
    assert [(spec.name, spec.shape[1:]) for spec in about.inputs] == [("context", (4,)), ("scene", (12, 10, 3))]
    assert [(spec.name, spec.shape[1:]) for spec in about.outputs] == [("output_0", (6, 5, 5)), ("output_1", (6,))]
    result = FRAMEWORK.load(model(folder, "pair")).run({"context": VECTORS, "scene": IMAGES})
    for expected, array in zip(small.keras_pair()([IMAGES, VECTORS]), result.values(), strict=True):
        assert small.relative_l2(expected, array) < 1e-6


def test_twin_inputs_and_outputs_are_not_swapped(tmp_path: Path) -> None:
    network = small.keras_twins()
    feeds = {"first": small.vectors(3, seed=5), "second": small.vectors(3, seed=6)}
    path = small.tflite_of(network, tmp_path / "twins.tflite")
    result = FRAMEWORK.load(small.model_of("tflite", path)).run(feeds)
    assert list(result) == ["output_0", "output_1"]
    for expected, array in zip(network([feeds["second"], feeds["first"]]), result.values(), strict=True):
        assert small.relative_l2(expected, array) < 1e-6


def test_names_of_a_file_without_signature(tmp_path: Path) -> None:
    function = tf.function(lambda x, y: (x + 2 * y, x - y))
    specs = [tf.TensorSpec([2, 3], tf.float32, name=name) for name in ("left", "right")]
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function(*specs)])
    path = tmp_path / "net.tflite"
    path.write_bytes(without_signature(converter.convert()))
    runnable = FRAMEWORK.load(small.model_of("tflite", path))
    assert [spec.name for spec in runnable.inputs] == ["left", "right"]
    left, right = np.ones((2, 3), np.float32), np.full((2, 3), 5, np.float32)
    result = [float(array[0, 0]) for array in runnable.run({"left": left, "right": right}).values()]
    assert sorted(result) == [-4.0, 11.0]


def without_signature(content: bytes) -> bytes:
    from tensorflow.lite.tools import flatbuffer_utils

    loaded = flatbuffer_utils.convert_bytearray_to_object(bytearray(content))
    loaded.signatureDefs = None
    return bytes(flatbuffer_utils.convert_object_to_bytearray(loaded))


def test_whole_numbers(folder: Path) -> None:
    assert str(FRAMEWORK.describe(model(folder, "text")).inputs[0]) == "text: int32[batch, 5]"
    runnable = FRAMEWORK.load(model(folder, "text"))
    result = runnable.run({"text": small.tokens(3)})["output_0"]
    assert small.relative_l2(small.keras_text()(small.tokens(3)), result) < 1e-6
    with pytest.raises(DataError, match=r"input text: int32.*whole numbers"):
        runnable.run({"text": small.tokens(3, dtype="float32")})


@pytest.mark.parametrize(("feeds", "named"), small.WRONG_FEEDS)
def test_wrong_feeds(folder: Path, feeds: dict[str, small.Array], named: str) -> None:
    with pytest.raises(DataError, match=named):
        FRAMEWORK.load(model(folder, "pair")).run(feeds)


def test_the_second_opinion_is_close_but_another(folder: Path) -> None:
    feeds = {"image": small.images(16, channels_last=True)}
    first = FRAMEWORK.load(model(folder, "float")).run(feeds)["output_0"]
    second = FRAMEWORK.load(model(folder, "float"), second_opinion=True).run(feeds)["output_0"]
    assert 0 < small.relative_l2(first, second) < 1e-5


# --- Files ---


def test_damaged_files_are_named(folder: Path, tmp_path: Path) -> None:
    for path in small.damaged_copies(folder / "float.tflite", tmp_path):
        for action in (FRAMEWORK.describe, FRAMEWORK.load):
            with pytest.raises(ModelLoadError) as error:
                action(small.model_of("tflite", path))
            assert str(path) in str(error.value)
            assert "a TFLite model" in str(error.value)


def test_damaged_names(folder: Path, tmp_path: Path) -> None:
    """LiteRT doesn't look at them."""
    content = (folder / "float.tflite").read_bytes()
    for name in (b"serving_default_image:0", b"output_0"):
        assert name in content
        path = tmp_path / "net.tflite"
        path.write_bytes(content.replace(name, b"\xff" * len(name)))
        with pytest.raises(ModelLoadError, match=r"net\.tflite can't be loaded.*UnicodeDecodeError"):
            FRAMEWORK.describe(small.model_of("tflite", path))


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_stays_as_it_is(folder: Path, kind: str) -> None:
    given, before = model(folder, kind), sorted(folder.iterdir())
    FRAMEWORK.describe(given)
    FRAMEWORK.load(given).run({"image": IMAGES})
    FRAMEWORK.load(given, second_opinion=True).run({"image": IMAGES})
    assert sha256_of(Path(given.path)) == given.sha256
    assert sorted(folder.iterdir()) == before


# --- The size of the table that an integer input indexes ---


def test_table_sizes(folder: Path) -> None:
    assert FRAMEWORK.describe(model(folder, "text")).inputs[0].high == small.WORDS
    assert {spec.high for spec in FRAMEWORK.describe(model(folder, "pair")).inputs} == {None}


def test_table_sizes_of_several_inputs(tmp_path: Path) -> None:
    """Two tables for one input, one along its second axis behind a cast, and an input without."""
    one, two = (tf.constant(np.ones(shape, np.float32)) for shape in ((11, 3), (3, 9)))

    def call(words: Any, kinds: Any, free: Any) -> Any:
        looked_up = tf.gather(one, words) + tf.gather(one, tf.cast(kinds, tf.int32))
        return looked_up, tf.gather(two, tf.expand_dims(kinds, 0), axis=1), tf.gather(one, free + 1)

    specs = [
        tf.TensorSpec([4], dtype, name=name)
        for name, dtype in (("words", tf.int32), ("kinds", tf.int64), ("free", tf.int32))
    ]
    function = tf.function(call).get_concrete_function(*specs)
    path = tmp_path / "net.tflite"
    path.write_bytes(tf.lite.TFLiteConverter.from_concrete_functions([function]).convert())
    about = FRAMEWORK.describe(small.model_of("tflite", path))
    assert {spec.name: spec.high for spec in about.inputs} == {"words": 11, "kinds": 9, "free": None}


def test_outputs_that_are_one_tensor_have_a_name_each(tmp_path: Path) -> None:
    x = keras.Input((3,), name="x")
    y = keras.layers.ReLU()(x)
    small.tflite_of(keras.Model(x, [y, y]), tmp_path / "twice.tflite")
    runnable = FRAMEWORK.load(model(tmp_path, "twice"))
    found = runnable.run({"x": np.array([[1, -1, 2]], np.float32)})
    assert len(runnable.outputs) == len(found) == 2
    assert all(array.tolist() == [[1, 0, 2]] for array in found.values())


_TRIED = """
import sys
from pathlib import Path

from conrepair.formats.models.model import Model
from conrepair.formats.tflite.load.framework import FRAMEWORK
from conrepair.ground.runtime.errors import ModelLoadError

whole, place = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2])
refused = 0
for start in range(0, 1200, 12):
    for value in (0, 255):
        damaged = bytearray(whole)
        damaged[start : start + 4] = bytes([value] * 4)
        place.write_bytes(damaged)
        try:
            FRAMEWORK.describe(Model("tflite", str(place), ""))
        except ModelLoadError:
            refused += 1
print(refused)
"""


def test_damaged_files_end_no_process(folder: Path, tmp_path: Path) -> None:
    call = [sys.executable, "-c", _TRIED, str(folder / "full-int8.tflite"), str(tmp_path / "damaged.tflite")]
    told = subprocess.run(call, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr[-500:]
    assert int(told.stdout) > 20


def _written_twice(graph: Any) -> None:
    graph.operators[-1].outputs = list(graph.inputs)


def _emptied(graph: Any) -> None:
    graph.tensors[graph.operators[-1].outputs[0]] = schema.TensorT()


def _unscaled(graph: Any) -> None:
    graph.tensors[graph.operators[0].outputs[0]].quantization.scale = [0.0]


def _huge(graph: Any) -> None:
    graph.tensors[graph.operators[-1].outputs[0]].shape = [1, 2**31 - 1]


def _bare(graph: Any) -> None:
    depthwise = next(item for item in graph.operators if item.builtinOptionsType == 2)
    depthwise.inputs = depthwise.inputs[:2]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_written_twice, "an input, a constant or another operator's output"),
        (_emptied, "converts no types"),
        (_unscaled, "no number above 0"),
        (_huge, "2,147,483,647 elements"),
        (_bare, "reads an operand, that isn't there"),
    ],
)
def test_what_kernels_take_for_granted_is_asked_before(
    folder: Path, tmp_path: Path, damage: Callable[[Any], None], words: str
) -> None:
    whole = (folder / "full-int8.tflite").read_bytes()
    damaged = schema.ModelT.InitFromPackedBuf(whole, 0)
    damage(damaged.subgraphs[0])
    builder = flatbuffers.Builder(len(whole))
    builder.Finish(damaged.Pack(builder), b"TFL3")
    path = tmp_path / "damaged.tflite"
    path.write_bytes(bytes(builder.Output()))
    with pytest.raises(ValueError, match=re.escape(words)):
        check_tables(str(path))
