"""A small network, and its files of eight bits: made once, by the tools that users have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx_networks import drawn, written
from small_models import model_of

from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import CalibrationFeeds, DataReference, open_feeds
from conrepair.ground.runtime.files.whole import sha256_of

COUNT = 32
_TEXT = """small (float[batch, 3, 12, 12] x) => (float[batch, 6] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, w0, b0)
    b = Relu (a)
    c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)
    d = Conv <pads = [1, 1, 1, 1]> (c, w1, b1)
    e = Add (c, d)
    f = Relu (e)
    g = Conv <pads = [1, 1, 1, 1]> (f, w2, b2)
    h = Relu (g)
    i = GlobalAveragePool (h)
    j = Flatten (i)
    k = Gemm <transB = 1> (j, w3, b3)
    y = Softmax (k)
}"""


def source(folder: Path) -> Model:
    """The network of real numbers."""
    weights = {
        "w0": drawn(16, 3, 3, 3, scale=0.3), "b0": drawn(16, seed=1), "w1": drawn(16, 16, 3, 3, seed=2, scale=0.1),
        "b1": drawn(16, seed=3), "w2": drawn(16, 16, 3, 3, seed=4, scale=0.1), "b2": drawn(16, seed=5),
        "w3": drawn(6, 16, seed=6), "b3": drawn(6, seed=7),
    }  # fmt: skip
    return model_of("onnx", written(folder / "right.onnx", _TEXT, weights))


def subject(model: Model, folder: Path) -> FedModel:
    """A model with its samples, in its own order of axes."""
    inputs = framework(model.framework).describe(model).inputs
    rows = np.random.default_rng(3).normal(size=(COUNT, 3, 12, 12)).astype(np.float32)
    path = folder / f"samples-{model.framework}.npz"
    np.savez(path, **{inputs[0].name: rows.transpose(0, 2, 3, 1) if inputs[0].shape[-1] == 3 else rows})
    return FedModel(model, inputs, DataReference("tensors", COUNT, str(path), sha256_of(path)), None)


def converted(model: Model, name: str, folder: Path, **options: Any) -> Model:
    """A model converted by one step, calibrated where it asks for that."""
    step = converter(name)
    folder.mkdir(parents=True)
    complete = step.complete(options)
    if step.calibrates is None or not step.calibrates(complete):
        return model_of(step.target, folder / step.convert(model, folder, complete))
    fed = subject(model, folder)
    feeds = CalibrationFeeds(open_feeds(fed.data, fed.inputs, None), fed.inputs, COUNT)
    return model_of(step.target, folder / step.convert(model, folder, complete, feeds))
