"""What a worker does before somebody is blamed: ask everybody who computes a network in float64."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import onnx

from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Model, from_json
from conrepair.systems.registry import entry
from conrepair.tracing.judging import read_judged
from conrepair.truth.agreement import agreed
from conrepair.truth.referees import OnnxReference, OnnxRuntime, PyTorch


def referees(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Ask all referees for a sample.

    Args:
        payload: "model" (an ONNX file), "judged" (folder of `conrepair.tracing.judging`), "judged_sha256", "sample".
        folder: For files.

    Returns:
        "agreed" (who says the same), "doubts" (where others say otherwise by more than rounding in the network's own
        type, in words), "doubted" (by output, how many bounds a side must be off to be wrong whoever is right).
    """
    model = from_json(Model, payload["model"])
    feeds = read_judged(Path(payload["judged"])).feeds[payload["sample"]]
    eager = entry("torch-eager")
    with tempfile.TemporaryDirectory(dir=folder) as made:

        def converted(asked: onnx.ModelProto) -> Model:
            path = Path(made) / "asked.onnx"
            onnx.save(asked, path)
            return eager.runs.converted(Model("onnx", str(path), model_sha256(path)), eager.chosen, Path(made))

        proto = onnx.load(model.path)  # with weights that lie beside it
        found = agreed([OnnxReference(), PyTorch(converted), OnnxRuntime()], proto, feeds)
    apart = [item for item in found.disagreements if item.bounds > 1]
    doubted: dict[str, float] = {}
    for item in apart:
        doubted[item.tensor] = max(doubted.get(item.tensor, 0.0), 1 + item.bounds)
    return {"agreed": list(found.referees), "doubts": [str(item) for item in apart], "doubted": doubted}
