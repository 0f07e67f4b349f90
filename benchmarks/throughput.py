"""How fast photos go through a model, against the bare runtime in a loop on tensors made before.

    python -m benchmarks.throughput [--repeats 5] [--copies 6] [--batch-size 16] [--json]

Both sides run the same ONNX file (MobileNetV2) in ONNX Runtime with the same graph optimizations, threads and
batch size, in turn, in warm worker processes. The bare side gets float tensors that lie in memory. Ours gets a
folder of JPEG files that no run has seen: it decodes, resizes, crops, normalizes, and writes all outputs to disk.
The target is a ratio of at least 0.85 (bare seconds / our seconds).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.config.model import DatasetConfig
from conrepair.data.named_recipes import named_recipe
from conrepair.data.photos import read_photo_folder
from conrepair.frameworks.model import Model, to_json
from conrepair.pipeline.datasets import resolve_dataset
from conrepair.pipeline.photos import PhotoRoom
from conrepair.runtime.files import sha256_of
from conrepair.runtime.store import Store
from conrepair.runtime.workers import Job, Success, Workers
from conrepair.zoo.catalog import zoo_model, zoo_photos


def main() -> int:
    """Measure and print; returns 1 when the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--copies", type=int, default=6, help="how often the 71 photos are repeated")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch, Workers(1) as workers:
        room = Path(scratch)
        model = _export(room, workers)
        folder = _photo_folder(room / "photos", options.copies)
        ours, bare = [], []
        for repeat in range(options.repeats + 1):
            measured = _ours(room / str(repeat), model, folder, options.batch_size, workers)
            reference = _bare(room, model, folder, options.batch_size, workers)
            if repeat:  # the first warms both
                ours.append(measured)
                bare.append(reference)
        count = len(list(folder.iterdir()))
    ratios = [b / o for b, o in zip(bare, ours, strict=True)]
    result = {
        "photos": count,
        "batch_size": options.batch_size,
        "bare_photos_per_second": count / statistics.median(bare),
        "our_photos_per_second": count / statistics.median(ours),
        "ratio_median": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
    }
    text = json.dumps(result, indent=2) if options.json else "\n".join(f"{k}: {v:.4g}" for k, v in result.items())
    sys.stdout.write(text + "\n")
    return 0 if result["ratio_median"] >= 0.85 else 1


def bare_loop(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """In a worker: run ONNX Runtime over tensors in memory."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(payload["model"], options, providers=["CPUExecutionProvider"])
    tensors = np.random.default_rng(0).normal(size=(payload["count"], 3, 224, 224)).astype(np.float32)
    name, size = session.get_inputs()[0].name, payload["batch_size"]
    session.run(None, {name: tensors[:size]})
    started = time.perf_counter()
    for start in range(0, len(tensors), size):
        session.run(None, {name: tensors[start : start + size]})
    return {"seconds": time.perf_counter() - started}


def _export(room: Path, workers: Workers) -> Model:
    entry, weights = zoo_model("mobilenet_v2")
    built = room / "built"
    built.mkdir()
    payload = {
        "target": entry.factory,
        "kwargs": {},
        "weights": {"path": str(weights), "sha256": ""},
        "inputs": [{"name": "", "shape": ["batch", 3, 224, 224], "dtype": "float32"}],
        "initialize": "as-built",
        "seed": 0,
    }
    value = _value(workers, "conrepair.pipeline.jobs:build", payload, built)
    source = value["model"] | {"path": str(built / value["model"]["path"])}
    converted = room / "converted"
    converted.mkdir()
    payload = {
        "model": source,
        "converter": "torch-onnx-script",
        "options": {"opset": 17, "fold_constants": True},
        "versions": {},
        "inputs": value["description"]["inputs"],
    }
    _value(workers, "conrepair.pipeline.jobs:convert", payload, converted)
    path = converted / "model.onnx"
    return Model("onnx", str(path), sha256_of(path))


def _photo_folder(folder: Path, copies: int) -> Path:
    folder.mkdir()
    photos = [photo for entry, source in zoo_photos("photos") for photo in read_photo_folder(source).photos]
    for copy in range(copies):
        for photo in photos:
            shutil.copyfile(photo.path, folder / f"{copy}_{photo.path.name}")
    return folder


def _ours(room: Path, model: Model, folder: Path, batch_size: int, workers: Workers) -> float:
    dataset = resolve_dataset(DatasetConfig(folder=str(folder)), folder)
    recipe = named_recipe("torchvision").for_size(224, 224)
    photos = PhotoRoom(Store(room / "store"), reuse=False)
    output = room / "run"
    output.mkdir()
    payload = {
        "model": to_json(model),
        "backend": "libraries",
        "options": {},
        "data": to_json(photos.reference(dataset, recipe.spatial)),
        "recipe": to_json(recipe),
        "batch_size": batch_size,
        "limit": None,
    }
    value = _value(workers, "conrepair.pipeline.jobs:execute", payload, output)
    photos.wait()
    return float(value["run_seconds"])


def _bare(room: Path, model: Model, folder: Path, batch_size: int, workers: Workers) -> float:
    payload = {"model": model.path, "count": len(list(folder.iterdir())), "batch_size": batch_size}
    return float(_value(workers, "benchmarks.throughput:bare_loop", payload, room / "bare")["seconds"])


def _value(workers: Workers, function: str, payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    outcome = workers.call(Job(function, payload, folder))
    if not isinstance(outcome, Success):
        raise RuntimeError(str(outcome))
    return outcome.value


if __name__ == "__main__":
    sys.exit(main())
