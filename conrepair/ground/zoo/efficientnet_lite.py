"""EfficientNet-Lite0 in PyTorch, with the parameter names of the published state dict.

Architecture: EfficientNet-B0 (Tan and Le, 2019) without squeeze-and-excitation, ReLU6 for Swish, stem and
head of fixed width (the "lite" variants of TensorFlow's TPU models). Convolutions pad as TensorFlow's
SAME does, which is not symmetric when the stride is 2.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

__all__ = ["efficientnet_lite0"]

_EPSILON = 1e-3
_STEM = 32
_HEAD = 1280


class _Stage(NamedTuple):
    repeats: int
    kernel: int
    stride: int
    expansion: int
    channels: int


_STAGES = (
    _Stage(1, 3, 1, 1, 16),
    _Stage(2, 3, 2, 6, 24),
    _Stage(2, 5, 2, 6, 40),
    _Stage(3, 3, 2, 6, 80),
    _Stage(3, 5, 1, 6, 112),
    _Stage(4, 5, 2, 6, 192),
    _Stage(1, 3, 1, 6, 320),
)


class _SameConv2d(nn.Conv2d):
    """Convolution padded as TensorFlow's SAME for a square input of a known size."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, groups: int = 1, size: int
    ) -> None:
        super().__init__(inputs, outputs, kernel, stride=stride, groups=groups, bias=False)
        total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        before = total // 2
        self.pad = nn.ZeroPad2d((before, total - before, before, total - before))

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 (the base class's name)
        return super().forward(self.pad(input))


class _Block(nn.Module):
    """Inverted bottleneck: expand, filter by depth, project, add."""

    def __init__(self, inputs: int, stage: _Stage, stride: int, size: int) -> None:
        super().__init__()
        inner = inputs * stage.expansion
        self.expands = stage.expansion != 1
        if self.expands:
            self._expand_conv = _SameConv2d(inputs, inner, 1, size=size)
            self._bn0 = nn.BatchNorm2d(inner, eps=_EPSILON)
        self._depthwise_conv = _SameConv2d(inner, inner, stage.kernel, stride=stride, groups=inner, size=size)
        self._bn1 = nn.BatchNorm2d(inner, eps=_EPSILON)
        self._project_conv = _SameConv2d(inner, stage.channels, 1, size=-(-size // stride))
        self._bn2 = nn.BatchNorm2d(stage.channels, eps=_EPSILON)
        self.activation = nn.ReLU6()
        self.adds = stride == 1 and inputs == stage.channels

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        x = inputs
        if self.expands:
            x = self.activation(self._bn0(self._expand_conv(x)))
        x = self.activation(self._bn1(self._depthwise_conv(x)))
        x = self._bn2(self._project_conv(x))
        return x + inputs if self.adds else x


class EfficientNetLite(nn.Module):
    """Classifier: float32 [N, 3, size, size] (RGB, (x - 127) / 128) to logits [N, classes]."""

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self._conv_stem = _SameConv2d(3, _STEM, 3, stride=2, size=size)
        self._bn0 = nn.BatchNorm2d(_STEM, eps=_EPSILON)
        size = -(-size // 2)
        blocks, channels = [], _STEM
        for stage in _STAGES:
            for repeat in range(stage.repeats):
                stride = stage.stride if repeat == 0 else 1
                blocks.append(_Block(channels, stage, stride, size))
                channels, size = stage.channels, -(-size // stride)
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = _SameConv2d(channels, _HEAD, 1, size=size)
        self._bn1 = nn.BatchNorm2d(_HEAD, eps=_EPSILON)
        self.activation = nn.ReLU6()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.2)
        self._fc = nn.Linear(_HEAD, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.activation(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        x = self.activation(self._bn1(self._conv_head(x)))
        return self._fc(self.dropout(self.pool(x).flatten(1)))


def efficientnet_lite0(size: int = 224, classes: int = 1000) -> EfficientNetLite:
    """Build EfficientNet-Lite0 with random weights.

    Args:
        size: Height and width of the input in pixels; the padding depends on it.
        classes: Number of answers.
    """
    return EfficientNetLite(size, classes)
