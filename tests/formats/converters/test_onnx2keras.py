"""ONNX to Keras by onnx2keras: right where it can be saved, refused where it holds functions, and without traces."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import small_models as small

from conrepair.application.jobs.conversion import convert
from conrepair.application.jobs.values import ConversionStep
from conrepair.application.report.row_paths import placed, resolved_in
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.converters.onnx_keras_onnx2keras import lambda_layers, make_network
from conrepair.formats.converters.routes import find_route, pinned_route
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.runtime.errors import ConversionError

STEP = converter("onnx-keras-onnx2keras")


def onnx_of(source: Model, name: str, folder: Path) -> Model:
    folder.mkdir()
    step = converter(name)
    return small.model_of("onnx", folder / step.convert(source, folder, step.complete({})))


def torch_network() -> Any:
    """Eight channels on pictures 5 wide: Keras adds a bias along the width where that equals the channels."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(small.CHANNELS, 8, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU6(),
        nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU6(),
        nn.AvgPool2d(3, stride=1, padding=1),
        nn.Conv2d(8, 8, 1),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(48, small.CLASSES),
    )
    return small.randomized(network)


@pytest.fixture(scope="module")
def from_torch(tmp_path_factory: pytest.TempPathFactory) -> Model:
    import torch

    folder = tmp_path_factory.mktemp("torch")
    path = small.export_pt2(torch_network(), [torch.from_numpy(small.images())], folder / "net.pt2")
    return onnx_of(small.model_of("torch", path), "torch-onnx-script", folder / "onnx")


@pytest.fixture(scope="module")
def from_keras(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("keras")
    small.keras_convnet().save(folder / "net.keras")
    return onnx_of(small.model_of("keras", folder / "net.keras"), "keras-onnx-tf2onnx", folder / "onnx")


def converted(source: Model, folder: Path, **options: Any) -> Model:
    inputs = framework("onnx").describe(source).inputs
    folder.mkdir()
    made = convert(folder, source, ConversionStep.of(STEP, STEP.complete(options)), inputs)
    return placed(made.model, resolved_in(folder))


def expected(source: Model, array: small.Array) -> small.Array:
    runnable = framework("onnx").load(source)
    (result,) = runnable.run({runnable.inputs[0].name: array}).values()
    return result


@pytest.mark.parametrize("options", [{"normalise": False}, {}, {"opset": 11}])
@pytest.mark.parametrize("count", [1, 3])
def test_a_network_from_pytorch(from_torch: Model, tmp_path: Path, options: dict[str, Any], count: int) -> None:
    target = framework("keras").load(converted(from_torch, tmp_path / "out", **options))
    array = small.images(count)
    assert target.inputs[0].shape[1:] == (3, 12, 10)
    (given,) = target.run({target.inputs[0].name: array}).values()
    assert small.relative_l2(expected(from_torch, array), given) < 1e-5


def test_channels_last(from_torch: Model) -> None:
    """In memory: what it writes for Flatten is a Lambda layer then."""
    network = make_network(from_torch, STEP.complete({"change_ordering": True}))
    assert network.inputs[0].shape == (None, 12, 10, 3)
    assert lambda_layers(network)
    given = np.asarray(network.predict_on_batch(small.images(3, channels_last=True)))
    assert small.relative_l2(expected(from_torch, small.images(3)), given) < 1e-5


def test_lambda_layers_are_no_file(from_keras: Model, tmp_path: Path) -> None:
    """What it makes of a Keras network is right in memory."""
    with pytest.raises(ConversionError, match=r"onnx2keras made \d Lambda layers .*can't carry") as caught:
        converted(from_keras, tmp_path / "out")
    network = make_network(from_keras, STEP.complete({}))
    lambdas = lambda_layers(network)
    assert lambdas
    assert f"made {len(lambdas)} Lambda" in str(caught.value)
    assert lambdas[0] in str(caught.value)
    array = small.images(3, channels_last=True)
    assert small.relative_l2(expected(from_keras, array), np.asarray(network.predict_on_batch(array))) < 1e-5


def test_a_failure_leaves_kerass_settings_alone(tmp_path: Path) -> None:
    source = small.model_of("onnx", small.onnx_text(tmp_path / "net.onnx"))
    logger = logging.getLogger("onnx2keras")
    before = keras.config.image_data_format(), logger.level
    with pytest.raises(AttributeError, match="Can't gather from tf tensor"):
        make_network(source, STEP.complete({}))
    assert (keras.config.image_data_format(), logger.level) == before


def test_it_logs_no_node(from_torch: Model, caplog: pytest.LogCaptureFixture) -> None:
    handlers = list(logging.getLogger().handlers)
    with caplog.at_level(logging.DEBUG):
        make_network(from_torch, STEP.complete({}))
    assert not [record for record in caplog.records if record.levelno < logging.WARNING and "onnx2" in record.name]
    assert logging.getLogger().handlers == handlers


def test_it_is_used_only_when_pinned() -> None:
    assert find_route("onnx", "keras").name == "onnx-keras"
    assert pinned_route([STEP.name], "onnx", "keras").steps == (STEP,)
