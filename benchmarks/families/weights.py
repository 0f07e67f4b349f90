"""Weights with which the answers of a network depend on its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.families.architecture import Array

__all__ = ["drawn", "spread"]

_SETTLING = 64  # samples that statistics of normalizations are set on


def drawn(network: Any, seed: int, samples: Mapping[str, Array] | None = None, *, gain: float = 1.2) -> Any:
    """Draw a PyTorch network's weights, in place.

    Weights keep the variance of what they are applied to (He et al. 2015, with another gain); biases, and scales and
    shifts of normalizations, are what trained ones look like, so that none can be lost without a trace.

    Args:
        network: Of PyTorch.
        seed: Of the numbers.
        samples: On which means and variances of BatchNorm are set; needed where there are any.
        gain: Of weights.

    Returns:
        The network, in evaluation mode.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for role, norm, tensor in _parameters(network):
            if norm:
                low, high = (0.6, 1.6) if role == "weight" else (-0.3, 0.3)
                tensor.uniform_(low, high, generator=generator)
            elif tensor.dim() > 1:
                fan = tensor[0].numel() if role != "table" else 1
                tensor.normal_(0, gain / fan**0.5, generator=generator)
            else:
                tensor.normal_(0, 0.2, generator=generator)
    if samples is not None:
        _settle(network, [torch.from_numpy(array[:_SETTLING]) for array in samples.values()])
    return network.eval()


def _parameters(network: Any) -> Iterator[tuple[str, bool, Any]]:
    """Each with its role, and whether it's a normalization's."""
    from torch import nn

    for module in network.modules():
        norm = "norm" in type(module).__name__.lower()
        for name, tensor in module.named_parameters(recurse=False):
            yield ("table" if isinstance(module, nn.Embedding) else name), norm, tensor


def _settle(network: Any, inputs: list[Any]) -> None:
    """Let BatchNorm's statistics be those of some samples."""
    import torch

    norms = [item for item in network.modules() if isinstance(item, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None  # the mean over all batches
        norm.reset_running_stats()
    network.train()
    with torch.no_grad():
        for _ in range(len(norms) and 1):
            network(*inputs)
    for norm in norms:
        norm.momentum = 0.1


def spread(answers: Array) -> float:
    """How much answers depend on the sample: how far they are from their mean, relative to how large they are."""
    flat = np.asarray(answers, np.float64).reshape(len(answers), -1)
    return float(np.linalg.norm(flat - flat.mean(0)) / max(np.linalg.norm(flat), 1e-30))
