"""How fast an imported MobileNetV2 runs, against keras.applications' own, in the same process.

    python -m benchmarks.imported_mobilenet [--rounds 15] [--batch 1 8 32]

Both are called in turns by `predict_on_batch`, each on inputs in its own layout; the figure is the ratio of the
medians. One network is imported from PyTorch's exporter (BatchNormalization folded by it), one from Keras's own
through tf2onnx. Target: 1.2.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import onnx_ir

from conrepair.formats.models.model import Model
from conrepair_onnx_keras.importer.graph import import_model

SIZE, CLASSES, SEED = 224, 1000, 20261120


def torch_onnx(folder: Path) -> Path:
    """MobileNetV2 of torchvision, exported."""
    from conrepair.ground.runtime.torchvision import import_torchvision

    torchvision = import_torchvision()
    import torch

    torch.manual_seed(SEED)
    network = torchvision.models.mobilenet_v2(weights=None).eval()
    path = folder / "torch.onnx"
    batch = torch.export.Dim("batch")
    torch.onnx.export(
        network, (torch.zeros(2, 3, SIZE, SIZE),), path, dynamo=True, verbose=False, dynamic_shapes=({0: batch},)
    )
    return path


def keras_onnx(network: Any, folder: Path) -> Path:
    """A Keras network by our converter through tf2onnx."""
    from conrepair.formats.converters.all_converters import converter
    from conrepair.formats.models.identity import model_sha256

    source = folder / "source.keras"
    network.save(source)
    step = converter("keras-onnx-tf2onnx")
    return folder / step.convert(Model("keras", str(source), model_sha256(source)), folder, step.complete({}))


def medians(calls: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The median time of each call in seconds, called in turns; two rounds to warm up."""
    times = np.zeros((rounds + 2, len(calls)))
    for row in times:
        for index, call in enumerate(calls):
            started = time.perf_counter()
            call()
            row[index] = time.perf_counter() - started
    return [float(value) for value in np.median(times[2:], axis=0)]


def main() -> int:
    """Measure and print a table; exit with 1 when a ratio is above the target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--target", type=float, default=1.2)
    options = parser.parse_args()
    keras.utils.set_random_seed(SEED)
    own = keras.applications.MobileNetV2(weights=None, input_shape=(SIZE, SIZE, 3), classes=CLASSES)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        networks = {
            "imported from PyTorch": import_model(onnx_ir.load(torch_onnx(folder))),
            "imported from PyTorch, NHWC inputs": import_model(
                onnx_ir.load(folder / "torch.onnx"), channels_last_inputs=True
            ),
            "imported from Keras": import_model(onnx_ir.load(keras_onnx(own, folder))),
        }
    worst = 0.0
    print("| network | batch | seconds | keras.applications | ratio |\n|---|---:|---:|---:|---:|")
    for batch in options.batch:
        generator = np.random.default_rng(SEED)
        last = generator.uniform(-1, 1, (batch, SIZE, SIZE, 3)).astype(np.float32)
        first = np.ascontiguousarray(last.transpose(0, 3, 1, 2))
        calls: list[Callable[[], Any]] = [lambda last=last: own.predict_on_batch(last)]
        for network in networks.values():
            array = last if network.inputs[0].shape[-1] == last.shape[-1] else first
            calls.append(lambda network=network, array=array: network.predict_on_batch(array))
        reference, *others = medians(calls, options.rounds)
        for name, seconds in zip(networks, others, strict=True):
            worst = max(worst, seconds / reference)
            print(f"| {name} | {batch} | {seconds:.4f} | {reference:.4f} | {seconds / reference:.2f} |")
    return int(worst > options.target)


if __name__ == "__main__":
    sys.exit(main())
