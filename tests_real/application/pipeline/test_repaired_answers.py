"""A repair's run has the answers to each input as the target came, and as it was repaired."""

from __future__ import annotations

from pathlib import Path

import compiled
import localizations
import numpy as np
import onnx
import pytest
import torch
from PIL import Image

import conrepair
from conrepair.application.jobs import execution as jobs
from conrepair.application.jobs.values import RunRecord, RunRequest
from conrepair.application.report.result import Row
from conrepair.application.report.saved import read_result
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import InferenceError
from tests.support.native_models import feeds_of, torch_file, torch_image


def sides_of(row: Row) -> tuple[list[float], list[float]]:
    """Errors of the same inputs, as the target came and as it was repaired."""
    assert row.inputs
    assert {item.index for item in row.inputs} == {item.index for item in row.repaired.inputs}
    before, after = (sorted(some, key=lambda item: item.index) for some in (row.inputs, row.repaired.inputs))
    assert [item.name for item in before] == [item.name for item in after]
    assert [item.reference for item in before] == [item.reference for item in after]
    return [item.relative_l2 for item in before], [item.relative_l2 for item in after]


def test_of_a_model_whose_file_is_edited(tmp_path: Path) -> None:
    localizations.wrong_pads(tmp_path)
    pair = tmp_path / "source.onnx", tmp_path / "target.onnx"
    found = conrepair.repair(*pair, output=tmp_path / "out", in_process=True)
    before, after = sides_of(found.row)
    assert len(before) == 72, "those that layers were looked at with, and those to verify on"
    assert min(before) > 0.01
    assert max(after) < 1e-6
    assert any(item.differs for item in found.row.inputs)
    assert not any(item.differs for item in found.row.repaired.inputs)
    assert read_result(tmp_path / "out").rows[-1].repaired.inputs == found.row.repaired.inputs


def test_of_a_model_that_is_fed_otherwise(tmp_path: Path) -> None:
    localizations.wrong_pads(tmp_path)
    (tmp_path / "photos").mkdir()
    generator = np.random.default_rng(0)
    for place in range(12):
        pixels = generator.integers(0, 256, (12, 12, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{place}.png")
    found = conrepair.repair(
        *[tmp_path / "source.onnx"] * 2, data=tmp_path / "photos", recipe="torchvision", target_recipe="keras:tf",
        advice=0, in_process=True,
    )  # fmt: skip
    assert found.result is not None
    assert found.result.model is None
    before, after = sides_of(found.row)
    assert max(before) > 0.01
    assert max(after) < 1e-6


def test_of_a_model_that_is_delivered_in_another_format(tmp_path: Path) -> None:
    right, network = torch_file("image", tmp_path), torch_image()
    with torch.no_grad():
        network.square.weight.mul_(1.5)
    pictures = torch.from_numpy(feeds_of("image")["image"])
    torch.jit.trace(network, pictures).save(str(tmp_path / "traced.pt"))
    found = conrepair.repair(right.path, tmp_path / "traced.pt", in_process=True)
    assert found.result is not None
    assert found.result.delivery is not None
    before, after = sides_of(found.row)
    assert max(before) > 0.01
    assert max(after) < 1e-4


def test_of_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled.leave_ends_unwritten(monkeypatch)
    model = compiled.short(tmp_path)
    build = compiled.built(model, tmp_path / "build", "O3")
    found = conrepair.repair(model.path, build, samples=10, in_process=True)
    assert found.mended
    before, after = sides_of(found.row)
    assert max(before) > 0.01
    assert max(after) < 1e-5


def test_where_the_repaired_model_does_not_run_that_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    execute = jobs.execute

    def refusing(folder: Path, model: Model, request: RunRequest) -> RunRecord:
        if "repaired" in Path(model.path).name:
            raise InferenceError("there's no room for it")
        return execute(folder, model, request)

    monkeypatch.setattr(jobs, "execute", refusing)
    localizations.wrong_pads(tmp_path)
    target = onnx.load(tmp_path / "target.onnx")
    target.ir_version += 1  # else it's the source again, of which the run is known
    onnx.save(target, tmp_path / "target.onnx")
    found = conrepair.repair(tmp_path / "source.onnx", tmp_path / "target.onnx", in_process=True)
    assert found.mended
    assert found.row.inputs
    assert found.row.repaired.inputs == ()
    (note,) = found.run.notes
    assert "the repaired model wasn't compared there" in note
    assert "there's no room for it" in note
