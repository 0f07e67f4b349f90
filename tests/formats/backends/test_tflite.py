"""TFLite with its delegate, and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small_models as small
from ai_edge_litert import interpreter as litert

from conrepair.formats.backends.all_backends import backend
from conrepair.formats.backends.tflite import BACKEND
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable

RESOLVERS = ("AUTO", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN_REF")
FEEDS = {"image": small.images(2, channels_last=True)}


@pytest.fixture(scope="module")
def convnet(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = tmp_path_factory.mktemp("tflite") / "net.tflite"
    return small.model_of("tflite", small.tflite_of(small.keras_convnet(), path))


def run(name: str, model: Model, **options: Any) -> small.Array:
    (output,) = backend(name).load(model, options).run(FEEDS).values()
    return output


def plain(model: Model, line: str) -> small.Array:
    """LiteRT called without conrepair."""
    found = eval(line, {**vars(litert), "path": model.path})  # noqa: S307
    (given,) = found.get_input_details()
    found.resize_tensor_input(given["index"], FEEDS["image"].shape)
    found.allocate_tensors()
    found.set_tensor(given["index"], FEEDS["image"])
    found.invoke()
    return np.asarray(found.get_tensor(found.get_output_details()[0]["index"]))


def test_kernels_are_those_of_the_resolver(convnet: Model) -> None:
    results = {name: run("tflite", convnet, kernels=name) for name in ("delegate", "builtin", "reference")}
    for result, resolver in zip(results.values(), RESOLVERS, strict=True):
        line = f"Interpreter(path, experimental_op_resolver_type=OpResolverType.{resolver})"
        np.testing.assert_array_equal(result, plain(convnet, line))
    assert len({result.tobytes() for result in results.values()}) == 3
    np.testing.assert_array_equal(results["delegate"], run("libraries", convnet))
    np.testing.assert_array_equal(results["builtin"], run("libraries", convnet, second_opinion=True))


def unseen(options: object) -> Runnable:
    raise AssertionError("what can be left out is known without a look at the model")


def test_what_is_left_out_is_what_the_line_says(convnet: Model) -> None:
    first, second = BACKEND.switches({}, unseen)
    for part in (first, second):
        result = run("tflite", convnet, **BACKEND.without({}, [part.name]))
        np.testing.assert_array_equal(result, plain(convnet, part.line))
    assert BACKEND.switches(BACKEND.without({}, [first.name]), unseen) == [second]
    assert BACKEND.switches(BACKEND.without({}, [first.name, second.name]), unseen) == []
    assert BACKEND.without({"kernels": "builtin"}, []) == {"kernels": "builtin"}


def test_other_formats_are_converted() -> None:
    model = Model("onnx", "net", "")
    assert backend("tflite").refuses(model) is None
    assert backend("tflite").takes(model, {}) == "tflite"
