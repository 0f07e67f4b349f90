"""An audit of 20 targets, what it comes to wherever it runs, and a small campaign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_networks

from conrepair.application.config.load import parse_config
from conrepair.application.config.model import AuditConfig
from conrepair_lab.options.fuzz import Fuzz

CAMPAIGN = Fuzz(
    systems=["ort-none", "ort-all", "convert-version"],
    alone=6,
    count=2,
    nodes=4,
    seed=8,
    operators=["Min", "Max", "Elu", "Relu", "Add", "Mul", "Neg"],
    workers=1,
    reduction_seconds=5,
    varied=0.0,
    screen=0,
)

_TARGETS = 20
_CHANGING = {"seconds", "times", "folder", "path", "load_seconds", "run_seconds", "command", "reused"}


def audit(folder: Path) -> dict[str, Any]:
    """Sources and 20 targets, each wrong in its way, one of them no model."""
    folder.mkdir()
    models = []
    for name in (sources := ("residual", "branching", "split")):
        source = getattr(onnx_networks, name)(folder / f"{name}.onnx")
        models.append({"name": name, "path": source.name})
    for number in range(_TARGETS - 1):
        name = sources[number % len(sources)]
        target = changed(folder / f"{name}.onnx", folder / f"target-{number}.onnx", number // len(sources))
        models.append({"name": f"{name}-{number}", "path": target.name, "compare_with": name})
    (folder / "broken.onnx").write_bytes(b"no model")
    models.append({"name": "broken", "path": "broken.onnx", "compare_with": "residual"})
    stages = {"localize": True, "repair": True}
    return {"name": "many", "models": models, "stages": stages, "dataset": {"synthetic": {"samples": 4}}}


def changed(source: Path, target: Path, number: int) -> Path:
    """A copy with a weight that's off: which, and by how much, hangs on a number."""
    model = onnx.load(source)
    weights = [item for item in model.graph.initializer if item.data_type == onnx.TensorProto.FLOAT]
    weight, off = weights[-1 - number % len(weights)], np.float32(0.3 + number / 10)
    weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight) + off, weight.name))
    onnx.save(model, target)
    return target


def config_of(asked: dict[str, Any], output: Path) -> AuditConfig:
    return parse_config(asked | {"output": str(output)}, "audit.json")


def plain(value: Any, folder: Path) -> Any:
    """A document without what changes from run to run."""
    if isinstance(value, dict):
        return {key: plain(item, folder) for key, item in value.items() if key not in _CHANGING}
    if isinstance(value, list):
        return [plain(item, folder) for item in value]
    return value.replace(str(folder), "") if isinstance(value, str) else value


def document(folder: Path) -> Any:
    return plain(json.loads((folder / "many" / "result.json").read_text()), folder)


def entries(folder: Path) -> dict[str, Any]:
    """Hashes of all files of results, by entry; those that have times in them have no hash here."""
    records = {path.parent.name: json.loads(path.read_text()) for path in (folder / "store").glob("*/record.json")}
    return {
        name: {file: sha256 for file, sha256 in record["files"].items() if "seconds" not in file}
        for name, record in records.items()
    }
