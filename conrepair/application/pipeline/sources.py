"""Turn the models of a run into tasks that make or describe them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.application.engine.scheduler import Task
from conrepair.application.jobs.values import BuildRequest
from conrepair.application.pipeline.subject import Subject
from conrepair.application.report.row_paths import placed, resolved_in
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.formats import framework_needs
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import LoadedModel, Model
from conrepair.ground.data.binding import image_layout
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.files.store import Entry
from conrepair.ground.runtime.path_text import model_path


def source_task(subject: Subject, timeout: float, *, like: str | None = None) -> Task:
    """The task that builds or describes a model.

    Args:
        subject: The model; its origin is known.
        timeout: Of the task, in seconds.
        like: Name of the task of the model whose inputs it has, where its own file doesn't say them.

    Raises:
        ModelLoadError: if its file doesn't exist.
    """
    if isinstance(subject.origin, Path):
        return _describe(subject, model_path(subject.origin), timeout, like)
    if subject.origin is None:
        raise ValueError(f"{subject.name} has no origin")
    return _build(subject, subject.origin, timeout)


def model_of(entry: Entry) -> LoadedModel:
    """The model that a finished task made or described."""
    made = entry.read(LoadedModel)
    return dataclasses.replace(made, model=placed(made.model, resolved_in(entry.folder)))


def _describe(subject: Subject, path: Path, timeout: float, like: str | None) -> Task:
    framework = detect_framework(path, recorded=True)
    sha256 = subject.sha256 or model_sha256(path)
    model = Model(framework, str(path), sha256, inputs=subject.declared, trust=subject.trust)

    def make(entries: Mapping[str, Entry]) -> dict[str, Any]:
        inputs = model.inputs
        if like is not None:
            inputs = tuple(map(_as_torch_takes, model_of(entries[like]).description.inputs))
        return {"model": dataclasses.replace(model, inputs=inputs), "place": str(path)}

    depends = () if like is None else (like,)
    return Task(subject.name, "describe", make, depends, framework_needs(framework), timeout)


def _as_torch_takes(spec: TensorSpec) -> TensorSpec:
    """A source's input as PyTorch takes it: by position, images with channels first, real numbers as such."""
    dtype = spec.dtype if spec.quantization is None else "float32"
    spec = dataclasses.replace(spec, name="", dtype=dtype, quantization=None)
    if image_layout(spec) != "NHWC":
        return spec
    batch, height, width, channels = spec.shape
    return dataclasses.replace(spec, shape=(batch, channels, height, width), layout="NCHW")


def _build(subject: Subject, origin: BuildRequest, timeout: float) -> Task:
    request = dataclasses.replace(origin, inputs=subject.declared)
    package = origin.target.split(".")[0]
    needs = framework_needs("keras" if package in {"keras", "tensorflow"} else "torch")
    return Task(subject.name, "build", lambda _: {"request": request}, needs=needs, timeout=timeout)
