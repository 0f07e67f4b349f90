"""Networks with trained weights, and what they're fed: digits, or photos."""

from __future__ import annotations

import copy
import functools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from benchmarks.common.digits import read_digits
from benchmarks.families.pictures import MEAN, STD, pictures
from benchmarks.rightness import sequences
from benchmarks.rightness.families import inputs_of
from benchmarks.rightness.families import network as drawn
from conrepair.formats.models.factories import call_factory
from conrepair.formats.models.model import Factory
from conrepair.ground.zoo.catalog import zoo_model

__all__ = ["FAINT", "PRETRAINED", "SAMPLES", "UNFOLDED", "WHOLE", "Network", "exported", "network"]

Array = npt.NDArray[Any]

SAMPLES = 32
"""That a network is fed in a case of digits."""

UNFOLDED = "unfolded"
"""Behind a family's name: BatchNorm is written as nodes of their own."""

FAINT, WHOLE = "faint", "whole"
"""Families with subnormal numbers, and with whole numbers beyond 32 bits, within."""

PRETRAINED = ("mobilenet_v2", "efficientnet_lite0")

_PHOTOS, _PHOTO_SIZE = 6, 96
_STEPS, _BATCH, _RATE = 120, 64, 3e-3
_CLASSES = 10
_OPSET = 17


@dataclass(frozen=True)
class Network:
    """A network of PyTorch and its samples.

    Attributes:
        name: Family and number.
        module: With trained weights, in evaluation.
        feed: Samples, first axis.
        folded: Whether the exporter folds BatchNorm.
    """

    name: str
    module: nn.Module
    feed: Array
    folded: bool


def network(name: str, kept: Path) -> Network:
    """Build and train a network, or read what was trained before; what's drawn depends on the name only.

    Args:
        name: A family, perhaps "unfolded" behind a space, a dash, and a number; or one of `PRETRAINED`.
        kept: Folder of trained weights.
    """
    folded = UNFOLDED not in name
    if name in PRETRAINED:
        return Network(name, _pretrained(name), _photos(name), folded)
    seed = zlib.crc32(name.encode()) >> 1
    torch.manual_seed(seed)
    module, given = _drawn(name.rpartition("-")[0].removesuffix(f" {UNFOLDED}"), seed)
    path = kept / f"{name}.pt"
    if path.exists():
        module.load_state_dict(torch.load(path, weights_only=True))
    else:
        _train(module, given, seed)
        kept.mkdir(parents=True, exist_ok=True)
        torch.save(module.state_dict(), path)
    feed = given[-SAMPLES:]
    if isinstance(module, _Faint):
        module.adapt(torch.from_numpy(feed))
    return Network(name, module.eval(), feed, folded)


def exported(module: nn.Module, feed: Array, path: Path, *, folded: bool) -> None:
    """Write a module as ONNX, with any number of samples.

    Args:
        module: In evaluation.
        feed: Samples.
        path: Of the file.
        folded: Whether BatchNorm goes into weights.
    """
    more: dict[str, Any] = {}
    if not folded:
        more = {"do_constant_folding": False, "training": torch.onnx.TrainingMode.PRESERVE}
    torch.onnx.export(
        copy.deepcopy(module),
        (torch.from_numpy(feed[:2].copy()),),
        str(path),
        dynamo=False,
        opset_version=_OPSET,
        input_names=["given"],
        output_names=["made"],
        dynamic_axes={"given": {0: "batch"}, "made": {0: "batch"}},
        **more,
    )


@functools.cache
def _digits() -> tuple[Array, Array]:
    found, shown = read_digits()
    order = np.random.default_rng(0).permutation(len(found))
    return found[order], shown[order]


def _drawn(family: str, seed: int) -> tuple[nn.Module, Array]:
    """A network with random weights, and all digits as it takes them."""
    if family == FAINT:
        return _Faint(8 + seed % 9, 2 + seed % 2), _sized((3, 12, 12))
    if family == WHOLE:
        tokens = 40 + seed % 9
        return _Whole(tokens, 16 + seed % 17), _levels(tokens)
    (spec,) = inputs_of(family, seed)
    shape = [size for size in spec.shape[1:] if isinstance(size, int)]
    if spec.dtype == "int64":
        return drawn(family, seed), _levels(shape[0]) % sequences.WORDS
    return drawn(family, seed), _sized(shape)


def _sized(shape: Sequence[int]) -> Array:
    """Digits, stretched to a shape, each channel a little darker than the one before."""
    found = torch.from_numpy(_digits()[0]) * 2 - 0.6
    if len(shape) == 1:
        return nn.functional.interpolate(found.flatten(2), shape[0], mode="linear").squeeze(1).numpy()
    stretched = nn.functional.interpolate(found, tuple(shape[-2:]), mode="bilinear")
    if len(shape) == 2:
        return stretched.squeeze(1).numpy()
    shades = torch.linspace(1, 0.6, shape[0]).view(1, -1, 1, 1)
    return (stretched * shades - 0.1 * (1 - shades)).numpy()


def _levels(tokens: int) -> Array:
    """Digits' pixels from the middle, as whole numbers of 0 to 16."""
    flat = _digits()[0].reshape(len(_digits()[0]), -1)
    start = (flat.shape[1] - tokens) // 2
    return (16 * flat[:, start : start + tokens]).round().astype(np.int64)


def _train(module: nn.Module, given: Array, seed: int) -> None:
    """Some steps on digits, through a layer that tells classes by what the network makes; that's dropped then."""
    samples, classes = torch.from_numpy(given[:-SAMPLES]), torch.from_numpy(_digits()[1][:-SAMPLES])
    module.train()
    with torch.no_grad():
        size = module(samples[:2]).flatten(1).shape[1]
    head = nn.Linear(size, _CLASSES)
    optimizer = torch.optim.Adam([*module.parameters(), *head.parameters()], _RATE)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(_STEPS):
        chosen = torch.randint(len(samples), (_BATCH,), generator=generator)
        loss = nn.functional.cross_entropy(head(module(samples[chosen]).flatten(1)), classes[chosen])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    module.eval()


def _pretrained(name: str) -> nn.Module:
    entry, path = zoo_model(name)
    assert entry.factory is not None
    module: nn.Module = call_factory(Factory(entry.factory, {}, ""))
    module.load_state_dict(torch.load(path, weights_only=True))
    return module.eval()


def _photos(name: str) -> Array:
    found = pictures(np.random.default_rng(zlib.crc32(name.encode())), _PHOTOS, _PHOTO_SIZE)
    mean, std = (np.array(item, np.float32).reshape(1, 3, 1, 1) for item in (MEAN, STD))
    return (found - mean) / std


class _Faint(nn.Module):
    """Convolutions; on the way numbers are so small that some of them are subnormal."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.ends = nn.Conv2d(3, width, 3, padding=1), nn.Linear(width, 5)
        self.first, self.last = self.ends
        self.body = nn.Sequential(*(nn.Conv2d(width, width, 3, padding=1) for _ in range(depth)))
        self.active = nn.SiLU()
        self.register_buffer("less", torch.tensor(1.0), persistent=False)
        self.register_buffer("more", torch.tensor(1.0), persistent=False)

    def adapt(self, given: torch.Tensor) -> None:
        """Choose the factor so that a third of the numbers is subnormal."""
        with torch.no_grad():
            middle = self.active(self.first(given)).abs().flatten()
        middle = middle[middle > 0]
        part = float(middle.kthvalue(max(1, len(middle) // 3)).values)
        power = int(np.floor(np.log2(part)))
        self.less = torch.tensor(2.0 ** (-126 - power))
        self.more = torch.tensor(2.0 ** ((126 + power) // 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of pictures."""
        x = self.active(self.first(x)) * self.less
        x = x * self.more * self.more
        for layer in self.body:
            x = x + torch.relu(layer(x))
        return self.last(x.mean((2, 3)))


class _Whole(nn.Module):
    """Pairs of whole numbers, whose products are beyond 32 bits before they become real ones."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.first, self.active = nn.Linear(tokens - 1, width), nn.GELU()
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, 6)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Of [batch, tokens]."""
        pairs = (tokens[:, 1:] * 17 + tokens[:, :-1]) * 99_991
        found = (pairs * 7_919).to(self.first.weight.dtype) * 2.0**-36
        return self.last(self.norm(self.active(self.first(found))))
