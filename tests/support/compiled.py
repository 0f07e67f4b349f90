"""Small networks, what TVM makes of them, and what a localization says of that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_networks as networks
import pytest
import small_models as small
from localizing import localize_networks

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.formats.models.model import Model
from conrepair.formats.networks.network import open_network
from conrepair.formats.networks.tvm import open_build
from conrepair.formats.tvm.backend import BACKEND
from conrepair.ground.data.tensor_spec import TensorSpec, numpy_dtype

Array = npt.NDArray[Any]

IDLE = (
    "DecomposeOpsForInference",
    "EliminateCommonSubexpr",
    "DeadCodeElimination",
    "DispatchSampling",
    "DispatchSortScan",
    "FoldBatchnormToConv2D",
    "CanonicalizeBindings",
    "RewriteDataflowReshape",
    "StaticPlanBlockMemory",
    "KillAfterLastUse",
)
"""Passes that change nothing here, and which nobody needs to try without."""


def built(model: Model, folder: Path, setting: str = "O2", batch: int = 1, **options: Any) -> Path:
    folder.mkdir()
    BACKEND.compile(model, {"setting": setting, **options}, batch, folder)
    return folder


def older(folder: Path) -> Path:
    """A build, made one that doesn't keep what was imported."""
    record = json.loads((folder / "build.json").read_text())
    record["source"]["kept"] = None
    (folder / "build.json").write_text(json.dumps(record))
    return folder


def convnet(folder: Path) -> Model:
    return small.model_of("onnx", small.onnx_convnet(folder / "net.onnx"))


def encoder(folder: Path) -> Model:
    inputs = (TensorSpec("x", ("batch", 4, 32), "float32"),)
    return small.model_of("onnx", networks.encoder(folder / "encoder.onnx"), inputs=inputs)


def mobile(folder: Path, between: str = "p4 = Identity (p)", **weights: Array) -> Model:
    """Two inverted residual blocks as Keras writes them: a padding at the end in front of a stride.

    Args:
        folder: For the file.
        between: Nodes that compute p4 from p, of shape [1, 6, 4, 4].
        weights: That they read.
    """
    text = f"""mobile (float[1, 3, 16, 16] image) => (float[1, 5] y) {{
        a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (image, stem)
        a6 = Clip (a, low, high)
        b = Conv (a6, expand)
        b6 = Clip (b, low, high)
        bp = Pad (b6, ends)
        c = Conv <group = 12, strides = [2, 2]> (bp, depth)
        c6 = Clip (c, low, high)
        p = Conv (c6, project)
        {between}
        d = Conv (p4, expand2)
        d6 = Clip (d, low, high)
        e = Conv <group = 18, pads = [1, 1, 1, 1]> (d6, depth2)
        e6 = Clip (e, low, high)
        q = Conv (e6, project2)
        r = Add (q, p4)
        g = GlobalAveragePool (r)
        f = Flatten (g)
        s = Gemm <transB = 1> (f, dense, bias)
        y = Softmax (s)
    }}"""
    drawn = networks.drawn
    held = {
        "stem": drawn(6, 3, 3, 3, seed=1), "expand": drawn(12, 6, 1, 1, seed=2), "depth": drawn(12, 1, 3, 3, seed=3),
        "project": drawn(6, 12, 1, 1, seed=4), "expand2": drawn(18, 6, 1, 1, seed=5),
        "depth2": drawn(18, 1, 3, 3, seed=6), "project2": drawn(6, 18, 1, 1, seed=7),
        "dense": drawn(5, 6, seed=8, scale=1.0), "bias": drawn(5, seed=9),
        "low": np.array(0, np.float32), "high": np.array(6, np.float32),
        "ends": np.array([0, 0, 0, 0, 0, 0, 1, 1]),
    }  # fmt: skip
    return small.model_of("onnx", networks.written(folder / "mobile.onnx", text, {**held, **weights}, opset=18))


def short(folder: Path, between: str = "", **weights: Array) -> Model:
    """Two convolutions, with what `mobile` has around them: bounds, and a padding at the end in front of a stride.

    Args:
        folder: For the file.
        between: Nodes that compute p, which the last convolution reads, from c6, of shape [1, 6, 4, 4].
        weights: That they read.
    """
    text = f"""short (float[1, 3, 8, 8] image) => (float[1, 5, h, w] y) {{
        a = Conv <pads = [1, 1, 1, 1]> (image, stem)
        a6 = Clip (a, low, high)
        ap = Pad (a6, ends)
        c = Conv <strides = [2, 2]> (ap, second)
        c6 = Clip (c, low, high)
        {between}
        y = Conv ({"p" if between else "c6"}, last)
    }}"""
    drawn = networks.drawn
    held = {
        "stem": drawn(4, 3, 3, 3, seed=1), "second": drawn(6, 4, 3, 3, seed=2), "last": drawn(5, 6, 1, 1, seed=3),
        "low": np.array(0, np.float32), "high": np.array(6, np.float32), "ends": np.array([0, 0, 0, 0, 0, 0, 1, 1]),
    }  # fmt: skip
    return small.model_of("onnx", networks.written(folder / "short.onnx", text, {**held, **weights}, opset=18))


def feeds_of(inputs: Any, seed: int) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    return {
        spec.name: generator.normal(size=spec.shape).astype(numpy_dtype(spec.dtype))
        if spec.dtype.startswith("float")
        else generator.integers(0, 4, spec.shape).astype(spec.dtype)
        for spec in inputs
    }


def localized(source: Model, folder: Path, work: Path, **options: Any) -> Localization:
    """Localize between a model and a build of it, or of a conversion, on two batches."""
    target = open_build(folder, source)
    network = open_network(source, target.runnable.inputs)
    batches = []
    for seed in (11, 12):
        drawn = feeds_of(target.runnable.inputs, seed)
        batches.append((_by_tensor(network, drawn), _by_tensor(target, drawn)))
    work.mkdir()
    found = localize_networks(
        network, target, batches, work, Options(**options), second_opinion=network.second_opinion
    )
    return found.result


def _by_tensor(network: Any, drawn: Mapping[str, Array]) -> dict[str, Array]:
    return {network.input_names[name]: array for name, array in drawn.items()}


def leave_ends_unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule for CPUs as it was: a padding's ends stayed unwritten."""
    from conrepair.formats.tvm import cpu_rule

    def without_ends(block: Any) -> list[int]:
        return [{9: 8}.get(int(item.dom.extent), int(item.dom.extent)) for item in block.iter_vars]

    monkeypatch.setattr(cpu_rule, "_extents", without_ends)
