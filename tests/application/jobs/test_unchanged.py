"""What workers do, where the other tests don't see it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import small_models as small

import conrepair
from conrepair.application.engine.fingerprint import job_code
from conrepair.application.engine.job_table import JOBS
from conrepair.application.engine.scheduler import Scheduler
from conrepair.application.jobs.description import describe
from conrepair.application.jobs.execution import execute, with_declared_layouts
from conrepair.application.jobs.values import RunRequest
from conrepair.application.pipeline.stages.preparation import source_task
from conrepair.application.pipeline.subject import Subject
from conrepair.formats.models.model import Model
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.data.tensor_spec import Dimension, TensorSpec
from conrepair.ground.runtime.errors import SourceChangedError
from conrepair.ground.runtime.files.store import Store
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.processes.workers import Workers

SHAPE = ("batch", small.CHANNELS, small.HEIGHT, small.WIDTH)


def test_a_model_that_was_replaced_is_not_described(tmp_path: Path) -> None:
    model = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    assert describe(tmp_path, model).description.opset == 17
    small.onnx_convnet(tmp_path / "net.onnx", opset=13)
    with pytest.raises(SourceChangedError, match=r"net\.onnx was changed"):
        describe(tmp_path, model)


@pytest.mark.parametrize("changed", ["model", "data"])
def test_outputs_of_what_was_replaced_are_not_used(tmp_path: Path, changed: str) -> None:
    model = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    np.save(tmp_path / "data.npy", small.images(3))
    data = DataReference("tensors", 3, str(tmp_path / "data.npy"), sha256_of(tmp_path / "data.npy"))
    data = dataclasses.replace(data, samples=(TensorSpec("image", SHAPE, "float32"),))
    request = RunRequest(data=data, batch_size=2)
    assert execute(tmp_path, model, request).run.count == 3
    if changed == "model":
        small.onnx_convnet(tmp_path / "net.onnx", opset=13)
    else:
        np.save(tmp_path / "data.npy", small.images(3, seed=1))
    with pytest.raises(SourceChangedError, match="was changed"):
        execute(tmp_path, model, request)


@pytest.mark.timeout(60)
def test_such_a_failure_is_not_kept(tmp_path: Path) -> None:
    """It would be found again when the old file is back."""
    path = small.onnx_convnet(tmp_path / "net.onnx")
    task = source_task(Subject(name="net", origin=path), 60.0)
    task = dataclasses.replace(task, keep_failure=True)
    before = path.read_bytes()
    with Workers(1, jobs=JOBS) as workers, Store(tmp_path / "store") as store:
        small.onnx_convnet(path, opset=13)
        scheduler = Scheduler(store, workers)
        scheduler.run([task])
        failure = scheduler.results["net"].failure
        assert failure is not None
        assert failure.kind == "changed"
        path.write_bytes(before)
        again = Scheduler(store, workers)
        again.run([task])
        assert again.results["net"].entry is not None


def layout_of(declared: tuple[Dimension, ...], found: tuple[Dimension, ...]) -> str | None:
    model = Model("onnx", "net.onnx", "", inputs=(TensorSpec("x", declared, "float32", layout="NCHW"),))
    (spec,) = with_declared_layouts((TensorSpec("x", found, "float32"),), model)
    return spec.layout


def test_a_declared_layout_is_not_that_of_a_conversion_which_moved_the_channels() -> None:
    assert layout_of(("batch", 3, 224, 224), ("n", 3, 224, 224)) == "NCHW"
    assert layout_of(("batch", 3, 224, 224), ("n", 3, "h", "w")) == "NCHW"
    assert layout_of(("batch", 3, 224, 224), ("n", 224, 224, 3)) is None
    assert layout_of(("batch", 3, 224, 224), ("n", 3)) is None


def test_the_code_of_every_room_that_jobs_use_counts() -> None:
    read = {"/".join(name.split("/")[:2]) for name in job_code(Path(conrepair.__file__).parent)}
    used = {*("application/jobs", "formats/backends", "formats/converters", "formats/models")}
    used |= {"formats/onnx", "ground/data", "ground/runtime"}
    assert used <= read
    assert not {"application/cli", "api.py"} & read
