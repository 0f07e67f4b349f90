"""Whole files of every format, small, which are damaged then."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from PIL import Image

import conrepair

__all__ = ["FORMATS", "write_data", "write_models"]

FORMATS = ("onnx", "outside.onnx", "pt2", "pt", "keras", "h5", "saved", "pb", "tflite")
_FORM = '<ir_version: 8, opset_import: ["" : 17]> g (float[n,3,8,8] x) => (float[n,5] y) {{ {body} }}'
_BODY = (
    "c = Conv <pads = [1,1,1,1]> (x, k, b) r = Relu (c) m = GlobalAveragePool (r) f = Flatten (m) y = MatMul (f, w)"
)


def write_models(folder: Path, formats: Sequence[str] = FORMATS) -> dict[str, Path]:
    """Write models, and return their paths by format.

    Args:
        folder: Where to; one that is there already stays.
        formats: Which.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = {name: folder / ("saved" if name == "saved" else f"net.{name}") for name in formats}
    missing = [name for name, path in made.items() if not path.exists()]
    for name in missing:
        if name.endswith("onnx"):
            _onnx(made[name], outside=name != "onnx")
        elif name in {"pt", "pt2"}:
            _torch(made[name])
        else:
            _keras(made[name])
    return made


def _onnx(path: Path, *, outside: bool) -> None:
    model = onnx.parser.parse_model(_FORM.format(body=_BODY))
    draw = np.random.default_rng(0)
    for name, shape in (("k", (4, 3, 3, 3)), ("b", (4,)), ("w", (4, 5))):
        model.graph.initializer.append(numpy_helper.from_array(draw.normal(size=shape).astype(np.float32), name))
    if outside:
        onnx.save(model, path, save_as_external_data=True, location=f"{path.name}.data", size_threshold=0)
    else:
        onnx.save(model, path)


def _torch(path: Path) -> None:
    import torch

    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)
    )
    network.eval()
    example = torch.zeros(2, 3, 8, 8)
    if path.suffix == ".pt":
        torch.jit.save(torch.jit.trace(network, example), str(path))
    else:
        shapes = ({0: torch.export.Dim("batch")},)
        torch.export.save(torch.export.export(network, (example,), dynamic_shapes=shapes), path)


def _keras(path: Path) -> None:
    import keras
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    keras.utils.set_random_seed(0)
    layers: list[Any] = [keras.layers.Conv2D(4, 3, activation="relu"), keras.layers.Flatten(), keras.layers.Dense(5)]
    network = keras.Sequential([keras.Input((8, 8, 3), name="x"), *layers])
    if path.suffix in {".keras", ".h5"}:
        network.save(path)
    elif path.suffix == ".tflite":
        path.write_bytes(tf.lite.TFLiteConverter.from_keras_model(network).convert())
    elif path.suffix == ".pb":
        call = tf.function(network).get_concrete_function(tf.TensorSpec((None, 8, 8, 3), tf.float32, "x"))
        frozen = convert_variables_to_constants_v2(call)
        path.write_bytes(frozen.graph.as_graph_def().SerializeToString())
    else:
        network.export(str(path), verbose=False)


def write_data(folder: Path) -> None:
    """Write what models are fed and what commands read: arrays, photos, labels, recipes, patches, configurations."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(1)
    array = draw.normal(size=(3, 3, 8, 8)).astype(np.float32)
    np.savez(folder / "data.npz", x=array)
    np.save(folder / "data.npy", array)
    photos = folder / "photos"
    for name in ("a/1_0.png", "a/2_1.jpg", "b/3_2.bmp", "b/4_3.gif", "b/5_4.webp", "b/6_5.tiff"):
        (photos / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw.integers(0, 255, (9, 10, 3), dtype=np.uint8)).save(photos / name)
    names = sorted(file.relative_to(photos).as_posix() for file in photos.glob("*/*"))
    (folder / "labels.csv").write_text("file,label\n" + "".join(f"{name},{i}\n" for i, name in enumerate(names)))
    recipe = {"base": "torchvision", "size": [8, 8], "mean": [0.5, 0.5, 0.5], "std": [0.2, 0.2, 0.2], "fit": "crop"}
    (folder / "recipe.json").write_text(json.dumps(recipe))
    edits = [
        {"edit": "SetOperator", "node": "r", "operator": "LeakyRelu", "attributes": {"alpha": 0.1}},
        {"edit": "SetAttributes", "node": "c", "attributes": {"pads": [1, 1, 1, 1]}},
        {"edit": "Remove", "node": "r", "input": 0},
    ]
    patch = {"version": 1, "target_sha256": "0" * 64, "arrays": None, "edits": edits, "effects": [], "rules": []}
    (folder / "patch.json").write_text(json.dumps(patch))
    (folder / "config.json").write_text(json.dumps(_CONFIG))
    (folder / "run.json").write_text(json.dumps(_RUN))
    found = conrepair.compare(folder / "net.onnx", folder / "net.onnx", samples=2, in_process=True)
    found.save(folder / "result")
    shutil.move(folder / "result" / "result.json", folder)
    shutil.rmtree(folder / "result")


_CONFIG: dict[str, Any] = {
    "schema_version": 1,
    "name": "drawn",
    "output": "out",
    "dataset": {"synthetic": {"samples": 2, "seed": 1, "low": -1, "high": 1}},
    "models": [
        {"name": "first", "path": "net.onnx", "conversions": ["onnx"], "recipe": {"base": "raw", "size": [8, 8]}},
        {
            "name": "second",
            "path": "net.onnx",
            "compare_with": "first",
            "inputs": [{"name": "x", "shape": ["n", 3, 8, 8], "dtype": "float32", "layout": "NCHW"}],
            "batch_size": 2,
        },
        {
            "name": "third",
            "factory": "torchvision.models:resnet18",
            "kwargs": {"num_classes": 3},
            "seed": 3,
            "dataset": {"folder": "photos", "labels": "subfolders", "limit": 2},
            "conversions": [{"to": "tflite", "via": ["torch-onnx-script", "onnx-normalise"], "options": {}}],
            "backends": ["libraries", {"name": "tvm", "target": "llvm", "setting": "O1", "label": "compiled"}],
        },
    ],
    "architectures": [{"family": "keras", "names": ["ResNet*"], "size": 64, "conversions": ["onnx"]}],
    "devices": {"board": {"host": "127.0.0.1", "port": 9190, "key": "pi", "connect_seconds": 1}},
    "backends": ["libraries", {"name": "onnxruntime", "optimization": "basic"}, {"name": "tvm", "device": "board"}],
    "stages": {"localize": True, "repair": False},
    "tolerance": {"rtol": 1e-4, "atol": 1e-5, "noise_margin": 10},
    "localize": {"when": "always", "samples": 2},
    "repair": {"seconds": 5, "advice_seconds": 0, "edits": None},
    "limits": {"seconds": 30, "workers": 1, "memory_gb": 4},
    "batch_size": 2,
    "top_k": 3,
    "reuse": True,
}

_RUN: dict[str, Any] = {
    "name": "drawn",
    "dataset": {"synthetic": {"samples": 2, "seed": 1}},
    "models": [
        {"name": "first", "path": "net.onnx", "conversions": [{"to": "onnx", "via": ["onnx-normalise"]}]},
        {"name": "second", "path": "other.onnx", "compare_with": "first", "batch_size": 2},
    ],
    "stages": {"localize": True, "repair": False},
    "localize": {"when": "always", "samples": 2},
    "limits": {"seconds": 30, "workers": 1},
    "top_k": 3,
}
