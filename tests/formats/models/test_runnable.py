"""What every framework's models have in common: checked feeds, quantized tensors, errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from conrepair.formats.models.model import Description, Factory, Model, Provenance
from conrepair.formats.models.runnable import Runnable, load_error
from conrepair.ground.data.tensor_spec import Quantization, TensorSpec
from conrepair.ground.runtime.errors import DataError, InferenceError, ModelLoadError
from conrepair.ground.runtime.typed import typed
from conrepair.ground.runtime.words import natural_order

Array = npt.NDArray[Any]


class Echo(Runnable):
    """Gives back what it's fed."""

    def __init__(self, *specs: TensorSpec, outputs: tuple[TensorSpec, ...] | None = None) -> None:
        self.inputs = specs
        self.outputs = specs if outputs is None else outputs
        self.fed: dict[str, Array] = {}

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        self.fed = dict(feeds)
        return {spec.name: feed for spec, feed in zip(self.outputs, feeds.values(), strict=True)}


def fed(spec: TensorSpec, array: Array) -> Array:
    """What the framework gets for an array."""
    model = Echo(spec)
    model.run({spec.name: array})
    return model.fed[spec.name]


FLOATS = TensorSpec("x", ("batch", 3), "float32")


# --- Names, shapes and types ---


@pytest.mark.parametrize("feeds", [{}, {"y": 1}, {"x": 1, "y": 1}, {"X": 1}])
def test_missing_and_unknown_names(feeds: dict[str, int]) -> None:
    arrays = {name: np.zeros((2, 3), np.float32) for name in feeds}
    with pytest.raises(DataError, match=r"x: float32\[batch, 3\]") as error:
        Echo(FLOATS).run(arrays)
    assert str(sorted(feeds)) in str(error.value)


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 3, 1), (2, 0), ()])
def test_wrong_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=r"input x: float32\[batch, 3\]"):
        Echo(FLOATS).run({"x": np.zeros(shape, np.float32)})


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (7, 3)])
def test_symbolic_dimensions_take_any_size(shape: tuple[int, ...]) -> None:
    assert fed(FLOATS, np.zeros(shape, np.float32)).shape == shape


def test_the_second_input_is_named() -> None:
    model = Echo(FLOATS, TensorSpec("mask", ("batch",), "bool"))
    with pytest.raises(DataError, match="input mask"):
        model.run({"x": np.zeros((2, 3), np.float32), "mask": np.zeros((2, 1), np.bool_)})


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        ("float32", "float64"), ("float64", "float32"), ("float16", "float32"), ("float32", "uint8"),
        ("float32", "bool"), ("int32", "int64"), ("int64", "uint8"), ("uint8", "int64"), ("bool", "uint8"),
    ],
)  # fmt: skip
def test_values_are_cast_when_none_changes(wanted: str, given: str) -> None:
    array = np.array([[0, 1, 1]]).astype(given)
    result = fed(TensorSpec("x", ("batch", 3), wanted), array)
    assert result.dtype == wanted
    np.testing.assert_array_equal(result.astype("int64"), [[0, 1, 1]])


@pytest.mark.parametrize(
    ("wanted", "array"),
    [
        ("int64", np.zeros((1, 3))),
        ("bool", np.zeros((1, 3), np.float32)),
        ("int32", np.array([[0, 1, 2**31]])),
        ("uint8", np.array([[0, 1, -1]])),
        ("int8", np.array([[0, 1, 128]], np.uint8)),
        ("bool", np.array([[0, 1, 2]])),
        ("uint64", np.array([[0, 1, -1]])),
        ("float32", np.array([["a", "b", "c"]])),
        ("float32", np.array([[1, 2, None]], object)),
        ("float32", np.zeros((1, 3), np.complex64)),
        ("string", np.zeros((1, 3), np.float32)),
    ],
)
def test_values_that_a_cast_would_change_are_refused(wanted: str, array: Array) -> None:
    with pytest.raises(DataError, match=rf"input x: {wanted}\[batch, 3\]"):
        Echo(TensorSpec("x", ("batch", 3), wanted)).run({"x": array})


def test_text_passes() -> None:
    array = np.array([["a", "b", "c"]], object)
    assert fed(TensorSpec("x", ("batch", 3), "string"), array) is array


def test_bfloat16() -> None:
    result = fed(TensorSpec("x", ("batch", 3), "bfloat16"), np.array([[1.0, 2.0, 3.0]]))
    assert result.dtype == ml_dtypes.bfloat16


def test_the_framework_gets_contiguous_arrays() -> None:
    assert fed(FLOATS, np.zeros((3, 2), np.float32).T).flags.c_contiguous
    assert fed(FLOATS, np.zeros((2, 3), np.float32)[::-1]).flags.c_contiguous


# --- Quantization ---


def test_real_numbers_are_quantized_and_outputs_are_real() -> None:
    spec = TensorSpec("x", ("batch", 4), "uint8", Quantization(0.5, 10))
    model = Echo(spec)
    outputs = model.run({"x": np.array([[-5.0, 0.0, 0.6, 1000.0]])})
    np.testing.assert_array_equal(model.fed["x"], np.array([[0, 10, 11, 255]], np.uint8))
    assert model.fed["x"].dtype == np.uint8
    np.testing.assert_array_equal(outputs["x"], np.array([[-5.0, 0.0, 0.5, 122.5]], np.float32))
    assert outputs["x"].dtype == np.float32


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_extremes_saturate(dtype: str) -> None:
    limits = np.iinfo(dtype)
    result = fed(TensorSpec("x", (3,), dtype, Quantization(0.1, 0)), np.array([-1e9, 0.0, 1e9], np.float32))
    np.testing.assert_array_equal(result, np.array([limits.min, 0, limits.max], dtype))


def test_stored_values_pass_as_they_are() -> None:
    stored = np.array([-128, 0, 127], np.int8)
    np.testing.assert_array_equal(fed(TensorSpec("x", (3,), "int8", Quantization(0.1, 5)), stored), stored)


def test_other_whole_numbers_are_not_taken_for_stored_ones() -> None:
    with pytest.raises(DataError, match="input x"):
        fed(TensorSpec("x", (3,), "int8", Quantization(0.1, 5)), np.array([0, 128, 255], np.uint8))


# --- Errors of the framework ---


class Failing(Echo):
    def __init__(self, error: Exception) -> None:
        super().__init__(FLOATS)
        self.error = error

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        raise self.error


def test_failures_become_inference_errors() -> None:
    with pytest.raises(InferenceError, match="KeyError: 'shape'"):
        Failing(KeyError("shape")).run({"x": np.zeros((1, 3), np.float32)})


@pytest.mark.parametrize("error", [DataError("bad data"), InferenceError("bad run")])
def test_our_own_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error), match=r"^bad"):
        Failing(error).run({"x": np.zeros((1, 3), np.float32)})


def test_a_load_error_says_where_what_and_why() -> None:
    model = Model("onnx", "/nets/small.onnx", "")
    error = load_error(model, "an ONNX model", ValueError("\n\nbad magic.\nat byte 7\n"))
    assert isinstance(error, ModelLoadError)
    assert str(error).startswith(
        "/nets/small.onnx can't be loaded as an ONNX model: ValueError: bad magic. at byte 7. "
    )
    assert len(str(load_error(model, "x", ValueError("y" * 9999)))) < 800


def test_natural_order() -> None:
    names = ["output_10", "output_2", "b", "a", "output_1", "2", "10"]
    assert natural_order(names) == ["2", "10", "a", "b", "output_1", "output_2", "output_10"]
    assert natural_order(["x²", "x1"])  # a digit that int() doesn't read


# --- Models as values ---


def test_models_and_descriptions_survive_json() -> None:
    quantized = TensorSpec("x", ("batch", 3), "int8", Quantization(0.1, 3), "NHWC", 7)
    model = Model(
        "torch", "/a/b.pt", "00", Factory("nets:small", {"depth": 3}), (quantized,), True,
        Provenance("11", "tool", {"tool": "1.0"}, {"opset": 13}, 2.5),
    )  # fmt: skip
    assert typed(Model, asdict(model)) == model
    description = Description("ONNX", (quantized,), (FLOATS,), {"Conv": 2}, 5, {"int8": 5}, 17, producer="tests")
    assert typed(Description, asdict(description)) == description


@pytest.mark.parametrize(
    ("weights", "precision"),
    [
        ({}, "float32"),
        ({"float32": 10, "int64": 2}, "float32"),
        ({"float16": 10, "float32": 2}, "float16"),
        ({"bfloat16": 10}, "bfloat16"),
        ({"float64": 10}, "float64"),
        ({"int8": 10, "int32": 2}, "quantized weights"),
        ({"uint4": 10}, "quantized weights"),
        ({"int8": 5, "float32": 5}, "float32"),
    ],
)
def test_precision(weights: dict[str, int], precision: str) -> None:
    description = Description("ONNX", (FLOATS,), (FLOATS,), {}, 0, weights)
    assert description.precision == precision
    assert description.quantized == ("quantized" in precision)


def test_full_integer_precision_needs_quantized_inputs_and_outputs() -> None:
    spec = TensorSpec("x", (1,), "int8", Quantization(0.1, 0))
    assert Description("TFLite", (spec,), (spec,), {}, 0, {"int8": 9}).precision == "full-integer quantized"
    assert Description("TFLite", (spec,), (FLOATS,), {}, 0, {"int8": 9}).precision == "quantized weights"
    mixed = Description("TFLite", (spec,), (spec,), {}, 0, {"int8": 9}, matrices={"int8": 3, "float32": 1})
    assert mixed.precision == "partly quantized"
