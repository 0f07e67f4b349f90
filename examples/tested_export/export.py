"""A classifier, and its export for ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn


def classifier() -> nn.Module:
    """A small network in place of yours, with weights that don't change."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.Softplus(beta=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)
    ).eval()


def export(network: nn.Module, path: Path) -> Path:
    """Write the network as ONNX, the batch left open.

    Args:
        network: In evaluation mode.
        path: Of the file.

    Returns:
        The path.
    """
    batch = torch.export.Dim("batch")
    torch.onnx.export(
        network, (torch.zeros(2, 3, 16, 16),), path, dynamic_shapes=({0: batch},), external_data=False, verbose=False
    )
    return path
