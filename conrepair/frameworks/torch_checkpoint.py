"""Checkpoints as training scripts write them: a network, its weights, or both, beside what training goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WEIGHTS = ("state_dict", "model_state_dict", "model")
_PARALLEL = "module."  # what DataParallel puts before each name


class CheckpointError(ValueError):
    """A checkpoint that doesn't say which network it's about."""


def weights_in(checkpoint: Any) -> Any:
    """The weights of a checkpoint: what training scripts keep under "state_dict", without DataParallel's prefix.

    Args:
        checkpoint: What a file holds; weights alone are returned as they are.
    """
    for key in _WEIGHTS:
        if isinstance(checkpoint, Mapping) and isinstance(checkpoint.get(key), Mapping):
            checkpoint = checkpoint[key]
    if isinstance(checkpoint, Mapping) and checkpoint and all(str(key).startswith(_PARALLEL) for key in checkpoint):
        return {str(key).removeprefix(_PARALLEL): value for key, value in checkpoint.items()}
    return checkpoint


def network_in(checkpoint: Any) -> Any:
    """The network of a trusted checkpoint, with the weights that lie beside it; None where there's none.

    Args:
        checkpoint: What a file holds.

    Raises:
        CheckpointError: if there are several, or the weights are another's.
    """
    import torch

    if isinstance(checkpoint, torch.nn.Module):
        return checkpoint
    items = checkpoint.items() if isinstance(checkpoint, Mapping) else ()
    networks = {str(key): value for key, value in items if isinstance(value, torch.nn.Module)}
    if len(networks) > 1:
        raise CheckpointError(
            f"it holds several networks ({', '.join(networks)}): save the one that's meant by itself"
        )
    for key, network in networks.items():
        beside = weights_in(checkpoint)
        if beside is not checkpoint:  # the network is there for its form, maybe as it was before training
            try:
                network.load_state_dict(beside)
            except RuntimeError as error:
                raise CheckpointError(
                    f"the weights in it aren't those of its network '{key}': save that with its weights by itself"
                ) from error
        return network
    return None
