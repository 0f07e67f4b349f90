"""Turn configured models into tasks that make or describe them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.config.model import InputConfig, ModelConfig
from conrepair.data.binding import image_layout
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.detect import detect_framework
from conrepair.frameworks.factories import factory_code
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Description, Model, from_json, to_json
from conrepair.pipeline.scheduler import Task
from conrepair.runtime.errors import ModelLoadError
from conrepair.runtime.files import sha256_of
from conrepair.runtime.store import Entry
from conrepair.zoo.catalog import zoo_model
from conrepair.zoo.packages import ProgressCallback

__all__ = ["Source", "declared_inputs", "framework_needs", "model_of", "source_task"]

_TORCHVISION_INPUT = {"inception_v3": 299}
_DEFAULT_IMAGE = 224


@dataclass(frozen=True)
class Source:
    """A model that exists on disk and was loaded once.

    Attributes:
        model: Where it is.
        description: What it consists of.
    """

    model: Model
    description: Description


def source_task(
    config: ModelConfig,
    base: Path,
    timeout: float,
    *,
    like: str | None = None,
    progress: ProgressCallback | None = None,
) -> Task:
    """The task that builds or describes a configured model.

    Args:
        config: The model.
        base: Folder that relative paths start from.
        timeout: Of the task, in seconds.
        like: Name of the task of the model whose inputs it has, where its own file doesn't say them.
        progress: Told about downloads.

    Raises:
        ModelLoadError: if its file or weights don't exist.
        FetchError: if the zoo's file can't be fetched.
    """
    if config.zoo is not None:
        entry, path = zoo_model(config.zoo, progress=progress)
        if entry.factory is None:
            return _describe(config, path, timeout, like)
        shape = entry.input_shape or ()
        return _build(config, entry.factory, path, (TensorSpec("", shape, "float32", layout="NCHW"),), timeout)
    if config.path is not None:
        return _describe(config, base / config.path, timeout, like)
    weights = None if config.weights is None else base / config.weights
    if weights is not None and not weights.is_file():
        raise ModelLoadError(
            f"model '{config.name}': no such weights file {weights}. Check `weights`; relative paths start "
            "at the configuration's folder."
        )
    return _build(config, str(config.factory), weights, _declared(config), timeout, base)


def model_of(entry: Entry) -> Source:
    """The model that a finished task made or described."""
    model = from_json(Model, entry.result["model"])
    path = Path(model.path)
    absolute = path if path.is_absolute() else entry.folder / path
    return Source(
        from_json(Model, to_json(model) | {"path": str(absolute)}),
        from_json(Description, entry.result["description"]),
    )


def framework_needs(framework: str) -> frozenset[str]:
    """What a worker imports for a framework; Keras stands on TensorFlow."""
    return frozenset({"tensorflow" if framework == "keras" else framework})


def _describe(config: ModelConfig, path: Path, timeout: float, like: str | None) -> Task:
    path = path.resolve()
    framework = detect_framework(path)
    model = Model(
        framework,
        str(path),
        model_sha256(path),
        inputs=declared_inputs(config.inputs),
        trust=config.trust,
    )

    def make(entries: Mapping[str, Entry]) -> dict[str, Any]:
        inputs = _taken_over(model_of(entries[str(like)]).description.inputs) if like is not None else model.inputs
        return {"model": to_json(dataclasses.replace(model, inputs=inputs)), "place": str(path)}

    depends = () if like is None else (like,)
    return Task(config.name, "describe", make, depends, framework_needs(framework), timeout)


def _taken_over(inputs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    """A source's inputs as PyTorch takes them: by position, images with channels first, real numbers as such."""
    return tuple(_as_torch_takes(spec) for spec in inputs)


def _as_torch_takes(spec: TensorSpec) -> TensorSpec:
    dtype = spec.dtype if spec.quantization is None else "float32"
    spec = dataclasses.replace(spec, name="", dtype=dtype, quantization=None)
    if image_layout(spec) != "NHWC":
        return spec
    batch, height, width, channels = spec.shape
    return dataclasses.replace(spec, shape=(batch, channels, height, width), layout="NCHW")


def _build(
    config: ModelConfig,
    target: str,
    weights: Path | None,
    inputs: tuple[TensorSpec, ...],
    timeout: float,
    base: Path | None = None,
) -> Task:
    payload = {
        "target": target,
        "code": factory_code(target, base or Path.cwd()),
        "kwargs": config.kwargs,
        "weights": None if weights is None else {"path": str(weights), "sha256": sha256_of(weights)},
        "inputs": [to_json(spec) for spec in inputs],
        "initialize": config.initialize,
        "seed": config.seed,
    }

    def make(_: Mapping[str, Entry]) -> dict[str, Any]:
        return payload

    package = target.split(".")[0]
    needs = framework_needs("keras" if package in {"keras", "tensorflow"} else "torch")
    return Task(config.name, "build", make, needs=needs, timeout=timeout)


def _declared(config: ModelConfig) -> tuple[TensorSpec, ...]:
    """The declared inputs; torchvision's classifiers all take one RGB picture."""
    if config.inputs is None and (config.factory or "").startswith("torchvision"):
        size = _TORCHVISION_INPUT.get(str(config.factory).partition(":")[2], _DEFAULT_IMAGE)
        return (TensorSpec("", ("batch", 3, size, size), "float32", layout="NCHW"),)
    return declared_inputs(config.inputs)


def declared_inputs(inputs: tuple[InputConfig, ...] | None) -> tuple[TensorSpec, ...]:
    """The declared inputs as specs; one without a name has the name ""."""
    return tuple(
        TensorSpec(item.name or "", item.shape, item.dtype, layout=item.layout, high=item.high)
        for item in inputs or ()
    )
