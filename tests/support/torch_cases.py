"""PyTorch networks as ONNX models, by both of PyTorch's exporters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

EXPORTERS = [pytest.param(True, id="dynamo"), pytest.param(False, id="torchscript")]


def exported(
    network: Any,
    feeds: Sequence[Any],
    names: Sequence[Mapping[int, str]],
    path: Path,
    *,
    dynamo: bool,
    **options: Any,
) -> onnx.ModelProto:
    """Export a module.

    Args:
        network: In evaluation mode.
        feeds: Example arrays, in the order of its arguments.
        names: For each the names of the axes whose sizes stay open.
        path: Where the file goes.
        dynamo: Which exporter.
        options: Of `torch.onnx.export`.
    """
    import torch

    inputs = ["x", "y", "z"][: len(feeds)]
    tensors = tuple(torch.from_numpy(np.ascontiguousarray(array)) for array in feeds)
    if dynamo:
        dims = [{axis: torch.export.Dim(name, min=1, max=64) for axis, name in axes.items()} for axes in names]
        settings: dict[str, Any] = {"dynamic_shapes": tuple(dims)}
    else:
        settings = {"dynamic_axes": {name: dict(axes) for name, axes in zip(inputs, names, strict=True)}}
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # a fused kernel that the older exporter doesn't know
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network, tensors, str(path), dynamo=dynamo, input_names=inputs, external_data=False, **settings,
                **options,
            )  # fmt: skip
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return onnx.load(path)
