"""Where models run: their own framework, and ONNX Runtime as it's BACKEND."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import small_models as small

from conrepair.formats.backends.all_backends import BACKENDS, backend
from conrepair.formats.backends.onnxruntime import BACKEND
from conrepair.formats.models.formats import OWN
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.formats.onnx.load.optimizers import OPTIMIZERS
from conrepair.ground.runtime.errors import ConfigError, ModelLoadError


@pytest.fixture
def convnet(tmp_path: Path) -> Model:
    return small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))


def optimized(model: Model, level: str) -> small.Array:
    """ONNX Runtime called without conrepair."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = onnxruntime.InferenceSession(model.path, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"image": small.images(16)})[0])


def run(name: str, model: Model, **options: Any) -> small.Array:
    return backend(name).load(model, options).run({"image": small.images(16)})["probabilities"]


def test_registry() -> None:
    assert {"libraries", "onnxruntime"} <= BACKENDS.keys()
    assert all(backend(name) is BACKENDS[name] for name in BACKENDS)


@pytest.mark.parametrize("framework", OWN)
def test_libraries_run_everything(framework: str) -> None:
    assert backend("libraries").refuses(Model(framework, "net", "")) is None


@pytest.mark.parametrize("framework", OWN)
def test_onnxruntime_runs_onnx(framework: str) -> None:
    reason = backend("onnxruntime").refuses(Model(framework, "net", ""))
    assert reason == (None if framework == "onnx" else f"ONNX Runtime doesn't run {framework} models")


def test_libraries_run_onnx_as_it_is_written(convnet: Model) -> None:
    np.testing.assert_array_equal(run("libraries", convnet), optimized(convnet, "ORT_DISABLE_ALL"))


def test_libraries_second_opinion(convnet: Model) -> None:
    second = run("libraries", convnet, second_opinion=True)
    np.testing.assert_array_equal(second, optimized(convnet, "ORT_ENABLE_ALL"))
    assert 0 < small.relative_l2(run("libraries", convnet), second) < 1e-5
    np.testing.assert_array_equal(run("libraries", convnet, second_opinion=False), run("libraries", convnet))


def test_onnxruntime_optimizes_all_unless_told_otherwise(convnet: Model) -> None:
    np.testing.assert_array_equal(run("onnxruntime", convnet), optimized(convnet, "ORT_ENABLE_ALL"))
    for option, level in (("disabled", "DISABLE_ALL"), ("basic", "ENABLE_BASIC"), ("extended", "ENABLE_EXTENDED")):
        result = run("onnxruntime", convnet, optimization=option)
        np.testing.assert_array_equal(result, optimized(convnet, f"ORT_{level}"))


def unseen(options: object) -> Runnable:
    raise AssertionError("what can be left out is known without a look at the model")


def test_onnxruntime_leaves_optimizers_out(convnet: Model) -> None:
    known = {part.name: part for part in BACKEND.switches({}, unseen)}
    assert list(known) == list(OPTIMIZERS)
    assert BACKEND.switches({"optimization": "disabled"}, unseen) == []
    line = known["NchwcTransformer"].line
    session = eval(line, {"onnxruntime": onnxruntime, "path": convnet.path})  # noqa: S307
    options = BACKEND.without(BACKEND.without({"optimization": "all"}, ["NchwcTransformer"]), [])
    assert options == {"optimization": "all", "disabled_optimizers": ["NchwcTransformer"]}
    result = run("onnxruntime", convnet, **options)
    np.testing.assert_array_equal(result, np.asarray(session.run(None, {"image": small.images(16)})[0]))
    assert (result != run("onnxruntime", convnet)).any()
    left = [part.name for part in BACKEND.switches(options, unseen)]
    assert left == [name for name in OPTIMIZERS if name != "NchwcTransformer"]
    everything = BACKEND.without(options, left)
    np.testing.assert_array_equal(run("onnxruntime", convnet, **everything), run("libraries", convnet))


def test_onnxruntime_refuses_optimizers_that_it_would_ignore(convnet: Model) -> None:
    with pytest.raises(ConfigError, match="no 'NchwcTransfomer'; did you mean 'NchwcTransformer'"):
        run("onnxruntime", convnet, disabled_optimizers=["NchwcTransfomer"])
    with pytest.raises(ConfigError, match="known: EliminateIdentity"):
        backend("onnxruntime").check({"disabled_optimizers": ["zzz"]})


def test_libraries_choose_the_framework(tmp_path: Path) -> None:
    import torch

    path = small.export_pt2(small.torch_convnet(), [torch.from_numpy(small.images())], tmp_path / "net.pt2")
    runnable = backend("libraries").load(small.model_of("torch", path), {})
    with torch.inference_mode():
        expected = small.torch_convnet()(torch.from_numpy(small.images()))
    assert small.relative_l2(expected, runnable.run({"input": small.images()})["output"]) < 1e-6
    double = backend("libraries").load(small.model_of("torch", path), {"second_opinion": True})
    assert double.outputs[0].dtype == "float64"


@pytest.mark.parametrize("name", ["libraries", "onnxruntime"])
def test_damaged_models_are_named(tmp_path: Path, convnet: Model, name: str) -> None:
    for path in small.damaged_copies(Path(convnet.path), tmp_path):
        with pytest.raises(ModelLoadError, match=path.name):
            backend(name).load(small.model_of("onnx", path), {})
