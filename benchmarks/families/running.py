"""What a network answers in its own framework."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.families.architecture import Architecture, Array

__all__ = ["answers_of"]


def answers_of(chosen: Architecture, network: Any, samples: Mapping[str, Array]) -> list[Array]:
    """All outputs.

    Args:
        chosen: The architecture.
        network: As it's built, or changed.
        samples: Of its inputs.
    """
    if chosen.framework == "keras":
        found = network(list(samples.values()), training=False)
        return [np.array(item) for item in (found if isinstance(found, list | tuple) else [found])]
    import torch

    with torch.no_grad():
        found = network(*(torch.from_numpy(array) for array in samples.values()))
    return [item.numpy() for item in ([found] if isinstance(found, torch.Tensor) else found)]
