"""What a device that computes in another arithmetic gives for the small image network; PyTorch is the device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from localized import WEIGHTS, Variant, pictures
from torch.nn import functional

IMAGES = pictures()


def computed(kind: torch.dtype, factors: Mapping[str, float] | None = None) -> dict[str, npt.NDArray[Any]]:
    """What the network gives in a type, all its tensors, with weights off by some factors."""
    w = {name: torch.tensor(array * (factors or {}).get(name, 1.0), dtype=kind) for name, array in WEIGHTS.items()}
    found = {"a": functional.conv2d(torch.tensor(IMAGES, dtype=kind), w["first"], w["bias"], stride=2, padding=1)}
    found["b"] = functional.relu(found["a"])
    found["c"] = functional.conv2d(found["b"], w["inner"], padding=1)
    found["d"] = found["b"] + found["c"]
    found["f"] = found["d"].mean((2, 3))
    found["scores"] = functional.linear(found["f"], w["dense"], w["shift"])
    found["y"] = functional.softmax(found["scores"], dim=1)
    return {name: array.float().numpy() for name, array in found.items()}


def scores(path: Path, *, wrong: str | None = None) -> str | dict[str, npt.NDArray[Any]]:
    """A file that gives scores; or what a device in bfloat16 gives for it, with or without something else wrong."""
    if wrong is None:
        return Variant(after="", outputs="float[batch, 5] scores").write(path).path
    found = computed(torch.bfloat16)["scores"].copy()
    if wrong == "no numbers":
        found[:] = np.nan
    elif wrong == "one that's none":
        found[0, 0] = np.inf
    elif wrong == "zeros behind the samples that are simulated":
        found[5:] = 0
    elif wrong == "samples exchanged":
        found[[-1, -2]] = found[[-2, -1]]
    elif wrong == "classes exchanged":
        found = found[:, ::-1].copy()
    elif wrong == "one column":
        found[:, 2] *= 1.2
    return {"scores": found}


def narrow(path: Path, *, rounded: bool = False) -> str:
    """The network, or the same with weights that were rounded to bfloat16."""
    weights = {name: torch.tensor(array).to(torch.bfloat16).float().numpy() for name, array in WEIGHTS.items()}
    return Variant(weights=weights if rounded else {}).write(path).path
