"""Networks that systematic faults are put into: each a file or two, samples, and what's needed to write it anew."""

from __future__ import annotations

import dataclasses
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attention.networks import build
from benchmarks.attention.samples import samples
from benchmarks.attention.spec import Spec, Writing
from benchmarks.common.cases import REPORTING_SEEDS
from benchmarks.common.making import FOLDED, KEPT, made
from benchmarks.common.models import MODELS, BenchmarkModel
from benchmarks.common.plain_graph import PlainGraph
from benchmarks.common.target import side_of
from conrepair.formats.models.model import Model
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.files.whole import sha256_of, whole_output

__all__ = ["BY_HAND", "NETWORKS", "attention_graph", "attention_of", "dilated", "lstm", "prepared"]

BY_HAND = ("decoder", "encoder")
NETWORKS = (
    *("mobilenet-v2", "efficientnet-lite0", "resnet50", "mobilenet-v3-small", "vit", "lstm", "dilated"),
    *BY_HAND,
)
"""Names."""

_UNSEEN = 12
_SMALL = 8  # samples of small ones
_WRITING = Writing("add-min", False, True, "div", False, False, True, 17)


def lstm(size: int, layers: int, features: int) -> Any:
    """A series to classes."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.LSTM(features, size, layers, batch_first=True)
            self.norm, self.classes = nn.LayerNorm(size), nn.Linear(size, 6)

        def forward(self, series: torch.Tensor) -> torch.Tensor:
            return self.classes(self.norm(self.layers(series)[0])[:, -1])

    return Network()


def dilated(size: int, layers: int) -> Any:
    """A picture to a picture, by convolutions that see further and further."""
    from torch import nn

    body: list[Any] = [nn.Conv2d(3, size, 3, padding=1), nn.BatchNorm2d(size), nn.LeakyReLU(0.2)]
    for place in range(layers):
        far = 2 + place % 3
        body += [nn.Conv2d(size, size, 3, padding=far, dilation=far), nn.BatchNorm2d(size), nn.LeakyReLU(0.2)]
    return nn.Sequential(*body, nn.Conv2d(size, 2, 1))


def prepared(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """A network's sides, data and sizes, made once.

    Args:
        name: One of `NETWORKS`.
        seed: Of the cases.
        folder: Where it's kept for the cases that follow.

    Returns:
        "sides" (`FOLDED` and, where there's BatchNorm, `KEPT`), "data", "samples", "batch_size".
    """
    place = folder / f"{name}-{seed}"
    told = place / "told.json"
    if not told.exists():
        place.mkdir(parents=True, exist_ok=True)
        value = _by_hand(name, seed, place) if name in BY_HAND else _by_torch(name, seed, place)
        with whole_output(told) as temporary:
            temporary.write_text(json.dumps(value), encoding="utf-8")
    return dict(json.loads(told.read_text(encoding="utf-8")))


def attention_of(name: str, seed: int) -> tuple[Spec, Writing]:
    """What a network that is written by hand computes, and how it's written."""
    more = seed in REPORTING_SEEDS
    common = {"name": name, "seed": zlib.crc32(f"{name}-{seed}".encode()), "past": 0, "window": 0}
    common |= {"epsilon": 1e-5, "massive": "", "magnitude": 0.0, "words": 53 if more else 40}
    common |= {"blocks": 8 if more else 6, "width": 10 if more else 8, "tokens": 14 if more else 10}
    common |= {"heads": 6 if more else 4, "inner": 96 if more else 64}
    if name == "decoder":
        sorts = {"mask": "causal+padding", "position": "rope-half", "norm": "rms", "mlp": "silu-glu"}
        sizes = {"kv_heads": 3 if more else 2, "before": True, "bias": False, "embedding": 0.02}
    else:
        sorts = {"mask": "padding", "position": "learned", "norm": "layer", "mlp": "gelu"}
        sizes = {"kv_heads": common["heads"], "before": False, "bias": True, "embedding": 1.0}
    return Spec(**common, **sorts, **sizes), _WRITING  # type: ignore[arg-type]


def attention_graph(name: str, seed: int) -> PlainGraph:
    """Its graph."""
    return build(*attention_of(name, seed))


def _by_hand(name: str, seed: int, folder: Path) -> dict[str, Any]:
    import onnx

    path, data = folder / "model.onnx", folder / "data.npz"
    onnx.save(attention_graph(name, seed).model(constant_nodes=_WRITING.constant_nodes), path)
    np.savez(data, **samples(attention_of(name, seed)[0], _SMALL + _UNSEEN))
    side = side_of(Model("onnx", str(path), sha256_of(path)))
    return {"sides": {FOLDED: side}, "data": str(data), "samples": _SMALL, "batch_size": 4}


def _by_torch(name: str, seed: int, folder: Path) -> dict[str, Any]:
    wanted = MODELS[name] if name in MODELS else _model(name, more=seed in REPORTING_SEEDS)
    found = made(dataclasses.replace(wanted, samples=wanted.samples + _UNSEEN), folder)
    sides = {side: value for side, value in found["sides"].items() if side in {FOLDED, KEPT}}
    return {"sides": sides, "data": found["data"], "samples": wanted.samples, "batch_size": wanted.batch_size}


def _model(name: str, *, more: bool) -> BenchmarkModel:
    """One that other benchmarks haven't; those of reporting seeds are larger."""
    size = 96 if more else 64
    image = (TensorSpec("", ("batch", 3, size, size), "float32"),)
    classes = {"num_classes": 1000 if more else 100}
    here = "benchmarks.systematic.networks:"
    if name in {"resnet50", "mobilenet-v3-small"}:
        factory = f"torchvision.models:{name.replace('-', '_')}"
        return BenchmarkModel(name, factory, image, kwargs=classes, normalized=True, samples=4, batch_size=2)
    if name == "vit":
        sizes = {"image_size": size, "patch_size": 16, "num_layers": 8 if more else 6, "num_heads": 4}
        sizes |= {"hidden_dim": 64 if more else 48, "mlp_dim": 128 if more else 96}
        return BenchmarkModel(name, "torchvision.models:VisionTransformer", image, kwargs=sizes | classes, samples=4)
    if name == "lstm":
        sizes = {"size": 20 if more else 14, "layers": 4 if more else 3, "features": 7 if more else 5}
        inputs = (TensorSpec("", ("batch", 9, sizes["features"]), "float32"),)
        return BenchmarkModel(name, f"{here}lstm", inputs, kwargs=sizes, samples=_SMALL)
    inputs = (TensorSpec("", ("batch", 3, 24, 24), "float32"),)
    sizes = {"size": 16 if more else 12, "layers": 7 if more else 5}
    return BenchmarkModel(name, f"{here}dilated", inputs, kwargs=sizes, normalized=True, samples=_SMALL)
