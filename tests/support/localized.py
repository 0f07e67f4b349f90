"""A small image network in ONNX, with variants of its ends, and what a localization says of two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from localizing import localize_networks
from onnx_networks import drawn, specs, written
from small_models import model_of

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.read.network import open_network

Array = npt.NDArray[Any]

CLASSES = 5
_TEXT = """small (float[batch, 3, {height}, {width}] image) => ({outputs}) {{
    {before}
    a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> ({begin}, first, bias)
    b = Relu (a)
    c = Conv <pads = [1, 1, 1, 1]> (b, inner)
    d = Add (b, c)
    e = GlobalAveragePool (d)
    f = Flatten (e)
    {scores} = Gemm <transB = 1> (f, dense, shift)
    {after}
}}"""
WEIGHTS: Mapping[str, Array] = {
    "first": drawn(6, 3, 3, 3, seed=1), "bias": drawn(6, seed=2), "inner": drawn(6, 6, 3, 3, seed=3),
    "dense": drawn(CLASSES, 6, seed=4, scale=2.0), "shift": drawn(CLASSES, seed=5),
}  # fmt: skip
SOFTMAX = "y = Softmax <axis = 1> (scores)"


@dataclass(frozen=True)
class Variant:
    """The network, written otherwise at its ends.

    Attributes:
        before: Nodes in front; they make `begin`.
        begin: What the first convolution reads.
        scores: Name of the last product.
        after: Nodes behind.
        outputs: Declarations.
        weights: Instead of, or besides, the usual ones.
        size: Height and width.
    """

    before: str = ""
    begin: str = "image"
    scores: str = "scores"
    after: str = SOFTMAX
    outputs: str = f"float[batch, {CLASSES}] y"
    weights: Mapping[str, Array] | None = None
    size: tuple[int, int] = (12, 10)

    def write(self, path: Path) -> Model:
        height, width = self.size
        text = _TEXT.format(
            before=self.before,
            begin=self.begin,
            scores=self.scores,
            after=self.after,
            outputs=self.outputs,
            height=height,
            width=width,
        )
        return model_of("onnx", written(path, text, {**WEIGHTS, **(self.weights or {})}))


def pictures(count: int = 7, *, seed: int = 0) -> Array:
    """Between 0 and 1."""
    values = np.random.default_rng(seed).normal(0.5, 0.2, (count, 3, 12, 10))
    return np.clip(values, 0, 1).astype(np.float32)


def localized(folder: Path, source: Model, target: Model, ours: Any, theirs: Any, **options: Any) -> Localization:
    """Localize between two ONNX files on one batch each; one array stands for the input `image`."""
    feeds = [{"image": item} if isinstance(item, np.ndarray) else item for item in (ours, theirs)]
    networks = [open_network(model, specs(model, fed)) for model, fed in zip((source, target), feeds, strict=True)]
    work = folder / "work"
    work.mkdir()
    return localize_networks(*networks, [(feeds[0], feeds[1])], work, Options(**options)).result
