"""Vector-Jacobian products by PyTorch's autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

__all__ = ["products"]


def products(
    call: Callable[..., Sequence[torch.Tensor]],
    arguments: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor | None],
) -> list[torch.Tensor | None]:
    """Differentiate.

    Args:
        call: Gives outputs.
        arguments: What it's called with.
        cotangents: Of each output; None where it isn't real.

    Returns:
        By argument; None where it isn't real, zeros where nothing depends on it.
    """
    with torch.inference_mode(mode=False), torch.enable_grad():
        leaves = [tensor.clone().requires_grad_(tensor.is_floating_point()) for tensor in arguments]
        pairs = [
            (output, given.to(output.device))
            for output, given in zip(call(*leaves), cotangents, strict=True)
            if given is not None and output.requires_grad
        ]
        real = [leaf for leaf in leaves if leaf.requires_grad]
        if pairs and real:
            outputs, given = zip(*pairs, strict=True)
            found = torch.autograd.grad(outputs, real, given, allow_unused=True, materialize_grads=True)
        else:
            found = tuple(map(torch.zeros_like, real))
    by_leaf = iter(found)
    return [next(by_leaf).detach().cpu() if leaf.requires_grad else None for leaf in leaves]
