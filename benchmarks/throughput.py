"""How fast photos go through a model, against the bare runtime in a loop on tensors made before.

    python -m benchmarks.throughput [--repeats 3] [--copies 6] [--batch-size 16] [--json]

Both sides run the same model (MobileNetV2) with the same threads and batch size, in turn, in warm worker processes.
The bare side gets float tensors that lie in memory. Ours gets a folder of JPEG files and writes all outputs to disk:

- first: photos that no run has seen; they're decoded, resized and cropped while the model runs. The zoo's photos as
  they are (most 640 x 480), and saved again with 500 pixels on the longer side (as ImageNet's are).
- next: every further model of a run, which finds the photos decoded.

The target is a ratio of at least 0.85 (bare seconds / our seconds). Decoding and resizing take 4 ms of processor time
for a photo of 640 x 480, 2.3 ms for 500 x 375. Where a model keeps all cores busy, overlapping can't hide that: the
first pass takes at least (model + decoding) / cores.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.common.jobs import JOBS
from conrepair.application.config.model import DatasetConfig
from conrepair.application.jobs.values import BuildRequest, ConversionStep, RunRequest
from conrepair.application.pipeline.from_config import resolve_dataset
from conrepair.application.pipeline.photos import PhotoRoom
from conrepair.application.report.row_paths import placed, resolved_in
from conrepair.formats.models.model import Model
from conrepair.ground.data.pictures.named_recipes import named_recipe
from conrepair.ground.data.pictures.photos import read_photo_folder
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.files.store import Store
from conrepair.ground.runtime.files.whole import HashedPath, sha256_of
from conrepair.ground.runtime.processes.workers import Job, Success, Workers
from conrepair.ground.runtime.typed import typed
from conrepair.ground.zoo.catalog import zoo_model, zoo_photos

TARGET = 0.85


def main() -> int:
    """Measure and print; returns 1 when the target is missed in any row."""
    parser = argparse.ArgumentParser(description="Photos per second against the bare runtime.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--copies", type=int, default=6, help="how often the 71 photos are repeated")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="conrepair-benchmark-") as scratch, Workers(1, jobs=JOBS) as workers:
        room = Path(scratch)
        folders = {
            "first": _photo_folder(room / "photos", options.copies),
            "first, 500 px": _photo_folder(room / "small", options.copies, longest=500),
        }
        count = len(list(folders["first"].iterdir()))
        for name, model in mobilenets(room, workers).items():
            measured = [
                _measure(room / f"{name}-{repeat}", model, folders, options.batch_size, workers)
                for repeat in range(options.repeats + 1)
            ][1:]  # the first warms the worker
            bare = [row.pop("bare") for row in measured]
            for kind in measured[0]:
                ours = [row[kind] for row in measured]
                ratios = [b / o for b, o in zip(bare, ours, strict=True)]
                rows.append(
                    {
                        "runtime": name,
                        "pass": kind,
                        "bare_per_second": count / statistics.median(bare),
                        "ours_per_second": count / statistics.median(ours),
                        "ratio": statistics.median(ratios),
                        "ratio_range": [min(ratios), max(ratios)],
                    }
                )
    _print(rows, as_json=options.json)
    return int(any(row["ratio"] < TARGET for row in rows))


def _measure(
    room: Path, model: Model, folders: dict[str, Path], batch_size: int, workers: Workers
) -> dict[str, float]:
    """Seconds of the bare loop, of the first passes, of a next pass; one after the other."""
    payload = {"model": asdict(model), "count": len(list(folders["first"].iterdir())), "batch_size": batch_size}
    seconds = {
        "bare": float(worker_value(workers, "benchmarks.throughput:bare_loop", payload, room / "bare")["seconds"])
    }
    recipe = named_recipe("torchvision").for_size(224, 224)
    photos = PhotoRoom(Store(room / "store"), reuse=False)
    for kind, folder in [*folders.items(), ("next", folders["first"])]:
        dataset = resolve_dataset(DatasetConfig(folder=str(folder)), folder)
        data = photos.reference(dataset, recipe.spatial)
        payload = {"model": model, "request": RunRequest(data=data, recipe=recipe, batch_size=batch_size)}
        value = worker_value(workers, "conrepair.application.jobs.execution:execute", payload, room / kind)
        photos.wait()
        seconds[kind] = float(value["run_seconds"])
    return seconds


def _print(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    for row in rows:
        low, high = row["ratio_range"]
        sys.stdout.write(
            f"{row['runtime']:12} {row['pass']:13} bare {row['bare_per_second']:6.1f}/s  "
            f"ours {row['ours_per_second']:6.1f}/s  ratio {row['ratio']:.2f} ({low:.2f}-{high:.2f})\n"
        )


def bare_loop(folder: Path, **payload: Any) -> dict[str, Any]:
    """In a worker: run a runtime over tensors in memory, and nothing else."""
    model = typed(Model, payload["model"])
    tensors = np.random.default_rng(0).normal(size=(payload["count"], 3, 224, 224)).astype(np.float32)
    size = payload["batch_size"]
    call = _bare_onnxruntime(model) if model.framework == "onnx" else _bare_torch(model)
    call(tensors[:size])
    started = time.perf_counter()
    for start in range(0, len(tensors), size):
        call(tensors[start : start + size])
    return {"seconds": time.perf_counter() - started}


def _bare_onnxruntime(model: Model) -> Callable[[Any], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda batch: session.run(None, {name: batch})


def _bare_torch(model: Model) -> Callable[[Any], Any]:
    import torch

    from conrepair.formats.torch.load.framework import load_module

    module = load_module(model)

    def call(batch: Any) -> Any:
        with torch.inference_mode():
            return module(torch.from_numpy(batch))

    return call


def mobilenets(room: Path, workers: Workers) -> dict[str, Model]:
    """MobileNetV2 in ONNX Runtime and in PyTorch."""
    entry, weights = zoo_model("mobilenet_v2")
    built = room / "built"
    built.mkdir()
    request = BuildRequest(
        target=entry.factory,
        weights=HashedPath(str(weights), sha256_of(weights)),
        inputs=(TensorSpec("", ("batch", 3, 224, 224), "float32"),),
    )
    value = worker_value(workers, "conrepair.application.jobs.description:build", {"request": request}, built)
    source = placed(typed(Model, value["model"]), resolved_in(built))
    converted = room / "converted"
    converted.mkdir()
    step = ConversionStep("torch-onnx-script", {"opset": 17, "fold_constants": True}, {})
    payload = {"model": source, "step": step, "inputs": value["description"]["inputs"]}
    worker_value(workers, "conrepair.application.jobs.conversion:convert", payload, converted)
    path = converted / "model.onnx"
    return {"onnxruntime": Model("onnx", str(path), sha256_of(path)), "torch": source}


def _photo_folder(folder: Path, copies: int, longest: int | None = None) -> Path:
    folder.mkdir()
    photos = [photo for _, source in zoo_photos("photos") for photo in read_photo_folder(source).photos]
    for photo in photos:
        first = folder / f"0_{photo.path.name}"
        shutil.copyfile(photo.path, first)
        if longest is not None:
            with Image.open(first) as picture:
                picture.thumbnail((longest, longest))
                picture.convert("RGB").save(first, quality=90)
        for copy in range(1, copies):
            shutil.copyfile(first, folder / f"{copy}_{photo.path.name}")
    return folder


def worker_value(
    workers: Workers, function: str, payload: dict[str, Any], folder: Path, timeout: float = 600.0
) -> dict[str, Any]:
    """What a job returns; raises when it fails."""
    folder.mkdir(parents=True, exist_ok=True)
    outcome = workers.call(Job(function, payload, folder, timeout=timeout))
    if not isinstance(outcome, Success):
        raise RuntimeError(str(outcome))
    return outcome.value


if __name__ == "__main__":
    sys.exit(main())
