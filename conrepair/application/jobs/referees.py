"""What a worker does before somebody is blamed: ask everybody who computes a network in float64."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx

from conrepair.application.jobs.trace_values import JudgedSample, Refereed
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.laboratory.systems.registry import entry
from conrepair.verdicts.truth.agreement import agreed
from conrepair.verdicts.truth.referees import OnnxReference, OnnxRuntime, PyTorch


def referees(folder: Path, model: Model, sample: JudgedSample) -> Refereed:
    """Ask all referees for a sample.

    Args:
        folder: For files.
        model: An ONNX file.
        sample: Which.
    """
    eager = entry("torch-eager")
    with tempfile.TemporaryDirectory(dir=folder) as made:

        def converted(asked: onnx.ModelProto) -> Model:
            path = Path(made) / "asked.onnx"
            onnx.save(asked, path)
            return eager.runs.converted(Model("onnx", str(path), model_sha256(path)), eager.chosen, Path(made))

        proto = onnx.load(model.path)  # with weights that lie beside it
        found = agreed([OnnxReference(), PyTorch(converted), OnnxRuntime()], proto, sample.feeds)
    apart = [item for item in found.disagreements if item.bounds > 1]
    doubted: dict[str, float] = {}
    for item in apart:
        doubted[item.tensor] = max(doubted.get(item.tensor, 0.0), 1 + item.bounds)
    return Refereed(tuple(found.referees), tuple(map(str, apart)), doubted)
