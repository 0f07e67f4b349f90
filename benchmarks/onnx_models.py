"""ONNX models of different origins, made on the way: by PyTorch's exporters, from Keras, through TFLite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conrepair.application.jobs.values import BuildRequest, ConversionStep
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.model import Description, Model
from conrepair.ground.data.tensor_spec import Dimension, TensorSpec
from conrepair.ground.runtime.files.whole import HashedPath, sha256_of
from conrepair.ground.runtime.processes.workers import Job, Success, Workers
from conrepair.ground.runtime.typed import typed
from conrepair.ground.zoo.architectures import select
from conrepair.ground.zoo.catalog import zoo_model

__all__ = ["Origin", "attention_encoder", "made", "origins", "recurrent_network"]

WORDS, TOKENS, FEATURES = 100, 24, 16
_TIMEOUT = 300.0


@dataclass(frozen=True)
class Origin:
    """Where an ONNX model comes from.

    Attributes:
        name: For people.
        factory: What builds the network.
        via: Converters from there to ONNX.
        kwargs: Of the factory.
        inputs: That a PyTorch network takes.
        pretrained: Name in the zoo, whose weights it gets; else it gets random ones that keep the variance.
        pixels: Whether it takes pixels 0..255.
    """

    name: str
    factory: str
    via: tuple[str, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[TensorSpec, ...] = ()
    pretrained: str = ""
    pixels: bool = False


def _image(size: int) -> tuple[TensorSpec, ...]:
    return (TensorSpec("", ("batch", 3, size, size), "float32"),)


def _pretrained(name: str, via: str) -> Origin:
    entry, _ = zoo_model(name)
    assert entry.factory is not None
    return Origin(f"{name}, pretrained", entry.factory, (via,), {}, _image(224), name)


def _architecture(family: str, name: str, via: tuple[str, ...]) -> Origin:
    (item,) = select(family, [name])
    size = item.size(64)
    inputs = _image(size) if family == "torchvision" else ()
    return Origin(f"{name}, {family}", item.factory, via, item.arguments(size), inputs, pixels=item.pixels)


def _own(function: str, via: str, shape: tuple[Dimension, ...], dtype: str) -> Origin:
    high = WORDS if dtype == "int64" else None
    inputs = (TensorSpec("", shape, dtype, high=high),)
    return Origin(function.replace("_", " "), f"benchmarks.onnx_models:{function}", (via,), {}, inputs)


def origins() -> Iterator[Origin]:
    """All that are measured."""
    for name in ("mobilenet_v2", "efficientnet_lite0"):
        for via in ("torch-onnx-dynamo", "torch-onnx-script"):
            yield _pretrained(name, via)
    for name in (
        "resnet18", "inception_v3", "googlenet", "shufflenet_v2_x0_5", "mobilenet_v3_small", "convnext_tiny",
    ):  # fmt: skip
        yield _architecture("torchvision", name, ("torch-onnx-script",))
    for name in ("MobileNetV2", "ResNet50", "EfficientNetB0"):
        yield _architecture("keras", name, ("keras-onnx-tf2onnx",))
    yield _architecture("keras", "MobileNetV2", ("keras-tflite", "tflite-onnx-tf2onnx"))
    yield _own("attention_encoder", "torch-onnx-dynamo", ("batch", TOKENS), "int64")
    yield _own("recurrent_network", "torch-onnx-script", ("batch", TOKENS, FEATURES), "float32")


def made(origin: Origin, folder: Path, workers: Workers) -> tuple[Model, Description]:
    """Build a network and convert it to ONNX.

    Args:
        origin: What to make.
        folder: A new one, for the files.
        workers: Where that happens.

    Raises:
        RuntimeError: if a step fails.
    """
    weights = zoo_model(origin.pretrained)[1] if origin.pretrained else None
    request = BuildRequest(
        target=origin.factory,
        kwargs=origin.kwargs,
        weights=None if weights is None else HashedPath(str(weights), sha256_of(weights)),
        inputs=origin.inputs,
        initialize="as-built" if weights else "variance-preserving",
    )
    job = Job(
        "conrepair.application.jobs.description:build", {"request": request}, folder / "built", timeout=_TIMEOUT
    )
    model, about = _run(job, workers)
    for name in origin.via:
        step = converter(name)
        told = {"model": model, "step": ConversionStep.of(step, step.complete({})), "inputs": about.inputs}
        job = Job("conrepair.application.jobs.conversion:convert", told, folder / name, step.needs, _TIMEOUT)
        model, about = _run(job, workers)
    return model, about


def _run(job: Job, workers: Workers) -> tuple[Model, Description]:
    job.folder.mkdir(parents=True)
    outcome = workers.call(job)
    if not isinstance(outcome, Success):
        raise RuntimeError(f"{job.folder.name}: {outcome}")
    value = outcome.value["model"]
    model = typed(Model, value | {"path": str(job.folder / value["path"])})
    return model, typed(Description, outcome.value["description"])


# --- networks ---------------------------------------------------------------------------------------------


def attention_encoder() -> Any:
    """Token ids to classes: embeddings, two layers of attention, a mean."""
    import torch
    from torch import nn

    torch.backends.mha.set_fastpath_enabled(False)  # a fused kernel that exporters don't know

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(WORDS, 64)
            self.places = nn.Parameter(torch.randn(TOKENS, 64))
            layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, activation="gelu")
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.classes = nn.Linear(64, 10)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.classes(self.layers(self.words(tokens) + self.places).mean(1))

    return Encoder()


def recurrent_network() -> Any:
    """A series to classes: two LSTM layers in both directions."""
    import torch
    from torch import nn

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(FEATURES, 32, num_layers=2, bidirectional=True, batch_first=True)
            self.classes = nn.Linear(64, 10)

        def forward(self, series: torch.Tensor) -> torch.Tensor:
            return self.classes(self.lstm(series)[0][:, -1])

    return Recurrent()
