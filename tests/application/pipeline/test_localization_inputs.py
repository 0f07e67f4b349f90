"""The localize stage of an audit: photos prepared wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documents import localization_in
from localized import Variant
from PIL import Image

from conrepair.application.cli import main
from conrepair.application.config.load import parse_config
from conrepair.application.pipeline.audit import run_audit
from conrepair.application.report.audit_folder import write_audit
from conrepair.application.report.result import AuditResult
from conrepair.diagnosis.localization.result import Localization
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.shown.progress import ProgressDisplay

SIZE = (48, 40)


def scores() -> Variant:
    """Without a softmax, which would make one class certain on most of these inputs."""
    return Variant(size=SIZE, scores="y", after="")


def photo(seed: int, height: int, width: int) -> Image.Image:
    """Blobs of colour with fine texture, so that every part of a recipe shows."""
    generator = np.random.default_rng(seed)
    coarse = Image.fromarray(generator.integers(0, 256, (7, 9, 3), np.uint8)).resize((width, height))
    noisy = np.asarray(coarse) + generator.normal(0, 30, (height, width, 3))
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "photos").mkdir()
    for seed, size in enumerate([(90, 120), (140, 70), (80, 80), (64, 100), (100, 66)]):
        photo(seed, *size).save(tmp_path / "photos" / f"{seed}.png")
    scores().write(tmp_path / "source.onnx")
    return tmp_path


def audited(room: Path, *models: dict[str, Any], **changes: Any) -> AuditResult:
    value = {"models": list(models), "stages": {"localize": True}} | changes
    config = parse_config(value, "test")
    result = run_audit(config, room, ProgressDisplay(quiet=True))
    write_audit(result, room / config.output / "store")
    return result


def localization_of(result: AuditResult) -> Localization:
    row = next(row for row in result.rows if row.model == "target")
    assert row.localized.problem is None, row.localized.problem
    assert row.localized.result is not None
    return row.localized.result


def test_wrong_recipe_is_found(room: Path) -> None:
    models: list[dict[str, Any]] = [
        {"name": "source", "path": "source.onnx", "recipe": "torchvision"},
        {"name": "target", "path": "source.onnx", "compare_with": "source"},
    ]
    models[1]["recipe"] = {"base": "torchvision", "channels": "bgr"}
    data = {"folder": "photos"}
    result = localization_of(audited(room, *models, dataset=data))
    (fault,) = result.faults
    assert (fault.kind, fault.target_layers) == (Kind.PREPROCESSING, ("image",))
    assert "RGB against BGR" in fault.evidence[0]
    assert result.recipe is not None
    assert (result.recipe.found, result.recipe.recipe["channels"], result.recipe.photos) == (True, "rgb", 5)
    assert result.recipe.changes == ("RGB instead of BGR",)
    assert any(result.recipe.evidence in words for words in fault.evidence)
    document = localization_in(next(room.rglob("result.json")).parent)
    assert document["recipe"]["recipe"]["channels"] == "rgb"

    models[1]["recipe"] = "torchvision"
    right = localization_of(audited(room, *models, dataset=data, localize={"when": "always"}))
    assert (right.verdict, right.faults, right.recipe) == ("equivalent", (), None)


def test_commands_take_a_recipe_for_the_target(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(room / "source.onnx")] * 2
    data = ["--data", str(room / "photos"), "--recipe", "torchvision", "--target-recipe", "keras:tf"]
    folder = room / "out"
    assert main(["localize", *files, *data, "-q", "-o", str(folder)]) == 1
    document = localization_in(folder)
    assert [fault["kind"] for fault in document["faults"]] == ["preprocessing"]
    assert document["recipe"]["found"]
    assert "preprocessing" in capsys.readouterr().out
    assert main(["compare", *files, *data, "-q", "-o", str(room / "compared")]) == 1
    assert main(["compare", *files, *data[:4], "-q", "-o", str(room / "compared")]) == 0
