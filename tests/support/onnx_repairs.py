"""Repairing one ONNX file by another, with drawn inputs."""

from __future__ import annotations

from pathlib import Path

from small_models import model_of

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference

__all__ = ["repaired"]

OPTIONS = RepairOptions(Options(samples=4, batch_size=4), seconds=120, unseen=8)


def repaired(source: Path, target: Path, folder: Path) -> RepairResult:
    """Repair the target by the source, looking at four samples of twelve."""
    models = [model_of("onnx", path) for path in (source, target)]
    inputs = framework("onnx").describe(models[0]).inputs
    data = DataReference("synthetic", OPTIONS.localization.samples + OPTIONS.unseen, samples=inputs)
    right, wrong = (FedModel(model, inputs, data, None) for model in models)
    return repair_models(right, wrong, folder, OPTIONS)
