"""PyTorch in float64, whatever types a network names, and vector-Jacobian products by its autograd."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode


def products(
    call: Callable[..., Sequence[torch.Tensor]],
    arguments: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor | None],
) -> list[torch.Tensor | None]:
    """Compute gradients in float64.

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


_WIDE = {torch.complex32: torch.complex128, torch.complex64: torch.complex128}


def arithmetic(*, double: bool) -> AbstractContextManager[Any]:
    """What a network's operators are called in: PyTorch as it is, or widened.

    Args:
        double: Whether every operator reads, names and gives real numbers of 64 bits only.
    """
    return _InDouble() if double else contextlib.nullcontext()


class _InDouble(TorchDispatchMode):
    """While it's entered, every tensor is widened to float64.

    `Module.double()` widens parameters and buffers. It leaves what a network makes in `forward` (a mask by `full`,
    an activation by `to(float32)`), and operators that are given both types may compute anything: attention of
    float64 queries with a float32 mask does.
    """

    supports_higher_order_operators = True  # control flow, whose branches are entered here

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operator with everything in it widened."""
        args, kwargs = pytree.tree_map(self._wide, (args, kwargs or {}))
        return pytree.tree_map(self._wide, function(*args, **kwargs))

    def _wide(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            dtype = widened(value.dtype)
            return value if value.dtype is dtype else value.to(dtype)
        if isinstance(value, torch.dtype):
            return widened(value)
        return self._entered(value) if isinstance(value, torch.nn.Module) else value

    def _entered(self, branch: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            with self:
                return branch(*args)

        return run


def widened(dtype: torch.dtype) -> torch.dtype:
    """The type of 64 bits for a real number, of 128 for a complex one; others as they are.

    Args:
        dtype: Any.
    """
    return torch.float64 if dtype.is_floating_point else _WIDE.get(dtype, dtype)
