"""The small image network with its preparation inside, from bytes with the channels last, and without."""

from __future__ import annotations

from pathlib import Path

import localized
import numpy as np
import pytest
from localized import WEIGHTS, Variant

from conrepair.ground.data.pictures.named_recipes import RECIPES

_NODES = {
    "torchvision": "s = Div (t, k) m = Sub (s, mean) begin = Div (m, std)",
    "keras:tf": "s = Div (t, half) begin = Sub (s, one)",
    "raw": "begin = Identity (t)",
}
_NUMBERS = {
    "k": np.float32(255),
    "half": np.float32(127.5),
    "one": np.float32(1),
    "mean": np.array(RECIPES["torchvision"].mean, np.float32).reshape(1, 3, 1, 1),
    "std": np.array(RECIPES["torchvision"].std, np.float32).reshape(1, 3, 1, 1),
}
PREPARATIONS = tuple(_NODES)


def prepared(path: Path, *, recipe: str = "", wrong: str = "") -> str:
    """The network as it is, or with a preparation inside, and maybe with weights that are wrong."""
    if not recipe:
        return Variant(size=(12, 12)).write(path).path
    weights = {name: value for name, value in _NUMBERS.items() if f" {name})" in _NODES[recipe]}
    weights |= {wrong: WEIGHTS[wrong] * np.float32(1.3)} if wrong else {}
    before = f"g = Cast <to = 1> (image) t = Transpose <perm = [0, 3, 1, 2]> (g) {_NODES[recipe]}"
    variant = Variant(before=before, begin="begin", weights=weights, size=(12, 12))
    text = "float[batch, 3, {height}, {width}] image"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(localized, "_TEXT", localized._TEXT.replace(text, "uint8[batch, {height}, {width}, 3] image"))
        return variant.write(path).path
