"""Minimal PyTorch models that exporters to ONNX get wrong."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import faulty_models as faulty
import onnx
import torch
from torch import nn


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: torch.Tensor) -> Any:
        """What the function says."""
        return self.function(*tensors)


@dataclass(frozen=True)
class TorchCase:
    """A network with one set of inputs.

    Attributes:
        network: A module, or a function of tensors.
        arrays: Its inputs.
        least: The exported model differs by more than this somewhere.
    """

    network: Any
    arrays: Sequence[Any]
    least: float = 0.0

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The inputs."""
        return tuple(torch.from_numpy(array) for array in self.arrays)

    @property
    def module(self) -> nn.Module:
        """In evaluation mode."""
        return (self.network if isinstance(self.network, nn.Module) else Function(self.network)).eval()

    def expected(self) -> Any:
        """PyTorch's answer."""
        with torch.no_grad():
            return self.module(*self.tensors).numpy()


def export(case: TorchCase, *, dynamo: bool) -> onnx.ModelProto:
    """By the current exporter (`dynamo`), or by the older one to opset 17."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if dynamo:
            program = torch.onnx.export(case.module, case.tensors, dynamo=True, verbose=False)
            return program.model_proto
        file = io.BytesIO()
        torch.onnx.export(case.module, case.tensors, file, dynamo=False, opset_version=17)
        return onnx.load_from_string(file.getvalue())


_INTEGERS = faulty.whole(-3, -1, 3, 5)
_IMAGE = faulty.normal(1, 3, 8, 8)
_TWICE = faulty.whole(0, 0)

BOTH_WRONG = {
    "AvgPool2d, divisor_override": TorchCase(nn.AvgPool2d(2, divisor_override=3), [_IMAGE], 0.1),
    "LogSigmoid far below zero": TorchCase(nn.LogSigmoid(), [faulty.real(-200, -90, 3)], 1e9),
    "log1p next to zero": TorchCase(lambda x: torch.log1p(x) * 1e8, [faulty.real(1e-8)], 0.5),
}

OLDER_WRONG = {
    "floor_divide of negative integers": TorchCase(lambda x: torch.floor_divide(x, 2), [_INTEGERS], 0.5),
    "floor_divide of negative numbers": TorchCase(
        lambda x: torch.floor_divide(x, 2.0), [faulty.real(-3, -1, 3)], 0.5
    ),
    "Softplus, threshold": TorchCase(nn.Softplus(threshold=5), [faulty.real(4, 5.1, 9)], 5e-3),
    "shift of negative integers": TorchCase(lambda x: x >> 1, [_INTEGERS], 0.5),
    "index_add, the same row twice": TorchCase(
        lambda x, i, y: x.index_add(0, i, y), [faulty.normal(4, 2), _TWICE, faulty.normal(2, 2)], 0.3
    ),
    "index_put, adding to the same row twice": TorchCase(
        lambda x, i, y: x.index_put((i,), y, accumulate=True), [faulty.normal(4, 2), _TWICE, faulty.normal(2, 2)], 0.3
    ),
}

CURRENT_WRONG = {
    "scatter_reduce, mean": TorchCase(
        lambda x, i, y: x.scatter_reduce(1, i, y, "mean"),
        [faulty.normal(1, 4), _TWICE[None], faulty.normal(1, 2) + 30], 5,
    ),
    "attention with a row that is all masked": TorchCase(
        lambda x, m: nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=m),
        [faulty.normal(1, 1, 2, 4), faulty.whole(1, 0)[:, None].repeat(2, 1).astype(bool)], 0.1,
    ),
}  # fmt: skip

# ONNX Runtime refuses what the exporter wrote.
UNLOADABLE = {
    "sum of booleans": TorchCase(lambda x: (x > 0) + (x > 1), [faulty.normal(3)]),
}

BOTH_REFUSE = {
    "AdaptiveMaxPool2d, sizes that don't divide": TorchCase(nn.AdaptiveMaxPool2d(3), [_IMAGE]),
    "median": TorchCase(lambda x: x.median(), [faulty.normal(6)]),
    "cumprod": TorchCase(lambda x: x.cumprod(0), [faulty.normal(6)]),
}

OLDER_REFUSES = {
    "AdaptiveAvgPool2d, sizes that don't divide": TorchCase(nn.AdaptiveAvgPool2d(3), [_IMAGE]),
    "RMSNorm": TorchCase(nn.RMSNorm(8), [_IMAGE]),
    "trunc": TorchCase(lambda x: x.trunc(), [faulty.normal(6)]),
    "interpolate, nearest-exact": TorchCase(
        lambda x: nn.functional.interpolate(x, size=(5, 11), mode="nearest-exact"), [_IMAGE]
    ),
}

LSTM = TorchCase(nn.LSTM(4, 6, proj_size=3), [faulty.normal(5, 2, 4)])
