"""Small networks of the same families as `networks`, with sizes and parts that a seed decides about, in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["pair", "pictures", "series", "text", "vector"]


def _activation(name: str) -> Any:
    from torch import nn

    return nn.LeakyReLU(0.15) if name == "LeakyReLU" else getattr(nn, name)()


def pictures(
    channels: Sequence[int], kernel: int, activations: Sequence[str], pooling: str, residual: bool, dense: int
) -> Any:
    """Pictures of 8 x 8 to digits.

    Args:
        channels: Of the blocks; each has a depthwise convolution and one of 1 x 1.
        kernel: Of the depthwise ones, odd.
        activations: One for each block.
        pooling: "max" or "mean", behind the first block.
        residual: Whether a last, dilated block is added to what it reads.
        dense: Size of the layer before the last one.
    """
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            blocks, width = [], 1
            for place, (size, name) in enumerate(zip(channels, activations, strict=True)):
                depthwise = nn.Conv2d(width, width, kernel, padding=kernel // 2, groups=width)
                parts = [depthwise] if place else [nn.Conv2d(1, 1, 3, padding=1)]
                pool: Any = nn.MaxPool2d(2) if pooling == "max" else nn.AvgPool2d(3, 2, 1)
                more = [] if place else [pool]
                blocks.append(
                    nn.Sequential(*parts, nn.Conv2d(width, size, 1), nn.BatchNorm2d(size), _activation(name), *more)
                )
                width = size
            self.blocks = nn.Sequential(*blocks)
            self.far = nn.Sequential(nn.Conv2d(width, width, 3, padding=2, dilation=2), nn.BatchNorm2d(width))
            self.dense, self.classes = nn.Linear(width * 16, dense), nn.Linear(dense, 10)

        def forward(self, picture: torch.Tensor) -> torch.Tensor:
            x = self.blocks(picture)
            x = torch.relu(self.far(x) + x if residual else self.far(x))
            return self.classes(torch.tanh(self.dense(x.flatten(1))))

    return Network()


def text(
    words: int, tokens: int, width: int, heads: int, inner: int, layers: int, activation: str, first: bool
) -> Any:
    """Token ids to classes.

    Args:
        words: How many ids there are.
        tokens: In a text.
        width: Of an embedding.
        heads: Of attention.
        inner: Width within a layer's dense part.
        layers: How many.
        activation: "relu" or "gelu".
        first: Whether layers are normalized in front.
    """
    import torch
    from torch import nn

    torch.backends.mha.set_fastpath_enabled(False)  # a fused kernel that exporters don't know

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(tokens, width))
            layer = nn.TransformerEncoderLayer(
                width, heads, inner, batch_first=True, activation=activation, norm_first=first
            )
            self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.classes = nn.Linear(width, 7)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            found = self.layers(self.words(tokens) + self.places)
            return self.classes(found.amax(1) if first else found.mean(1))

    return Network()


def series(features: int, sorts: Sequence[str], sizes: Sequence[int], both: bool) -> Any:
    """A series to classes.

    Args:
        features: At a time.
        sorts: "LSTM" or "GRU", one layer each.
        sizes: Of the layers.
        both: Whether the first one runs in both directions.
    """
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers, width = nn.ModuleList(), features
            for place, (sort, size) in enumerate(zip(sorts, sizes, strict=True)):
                twice = both and not place
                self.layers.append(getattr(nn, sort)(width, size, batch_first=True, bidirectional=twice))
                width = size * (1 + twice)
            self.norm, self.classes = nn.LayerNorm(width), nn.Linear(width, 5)

        def forward(self, series: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                series = layer(series)[0]
            return self.classes(self.norm(series[:, -1]))

    return Network()


def pair(left: int, right: int, width: int, joined: str, activations: Sequence[str]) -> Any:
    """Two vectors to two results.

    Args:
        left: Size of one vector.
        right: Of the other one.
        width: Of the hidden layers.
        joined: "cat", "mul" or "sub".
        activations: Two.
    """
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Sequential(nn.Linear(left, width), _activation(activations[0]))
            self.two = nn.Sequential(nn.Linear(right, width), _activation(activations[1]))
            self.scores = nn.Linear(width * (1 + (joined == "cat")), 6)
            self.shares = nn.Linear(width * (1 + (joined == "cat")), 9)

        def forward(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            one, two = self.one(left), self.two(right)
            both = torch.cat([two, one], 1) if joined == "cat" else one * two if joined == "mul" else one - two
            return torch.softmax(self.shares(both), 1), self.scores(both)

    return Network()


def vector(size: int, widths: Sequence[int], activations: Sequence[str], norm: int) -> Any:
    """A vector to four numbers.

    Args:
        size: Of the vector.
        widths: Of the hidden layers.
        activations: As many.
        norm: Behind which layer the values are normalized.
    """
    from torch import nn

    parts: list[Any] = []
    for place, (width, name) in enumerate(zip(widths, activations, strict=True)):
        parts += [nn.Linear(size, width), *([nn.LayerNorm(width)] if place == norm else []), _activation(name)]
        size = width
    return nn.Sequential(*parts, nn.Linear(size, 4))
