"""PyTorch networks that together have most operators; factories take nothing and give seeded modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import small_models as small
import torch
import torch.nn.functional as functional
from made_once import made_once
from torch import nn

from conrepair.formats.models.model import Factory, Model
from conrepair.ground.data.tensor_spec import TensorSpec

Array = small.Array


@dataclass(frozen=True)
class Case:
    """A factory's name in this file or in `small_models`, and what the network takes."""

    factory: str
    feeds: Callable[[], tuple[Array, ...]]
    pt2: bool = True


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


CASES: Mapping[str, Case] = {
    "convnet": Case("small_models:torch_convnet", lambda: (small.images(),)),
    "pair": Case("small_models:torch_pair", lambda: (small.images(), small.vectors())),
    "text": Case("small_models:torch_text", lambda: (small.tokens(),)),
    "residual": Case("torch_networks:residual", lambda: (small.images(),)),
    "encoder": Case("torch_networks:encoder", lambda: (numbers(2, 5, 8),)),
    "seq2seq": Case("torch_networks:seq2seq", lambda: (numbers(2, 5, 8), numbers(2, 4, 8, seed=1))),
    "recurrent": Case("torch_networks:recurrent", lambda: (numbers(2, 7, 4),)),
    "mlp": Case("torch_networks:mlp", lambda: (small.vectors(),)),
    "functions": Case("torch_networks:Functions", lambda: (numbers(2, 3, 10),)),
    "arrangement": Case("torch_networks:Arrangement", lambda: (numbers(2, 8, 4),)),
    "writing": Case("torch_networks:Writing", lambda: (numbers(2, 3, 6, 6),)),
    "branches": Case("torch_networks:Branches", lambda: (numbers(2, 4),)),
    "selecting": Case("torch_networks:Selecting", lambda: (numbers(2, 4),)),
}


def prepared(name: str, folder: Path, *, pt2: bool, core: bool = False) -> tuple[Model, dict[str, Array], nn.Module]:
    """A model file, feeds by the names of its inputs, and the module.

    Args:
        name: Of a case.
        folder: Receives the file.
        pt2: Whether it's an exported program, else weights and a factory.
        core: Whether PyTorch takes the program apart into its core operators before.
    """
    case, network = CASES[name], _network(name)
    arrays = case.feeds()
    if core or pt2:
        model = _exported(folder, name, core=core)
    else:
        path = folder / f"{name}.pt"
        torch.save(network.state_dict(), path)
        declared = tuple(TensorSpec("", ("batch", *array.shape[1:]), array.dtype.name) for array in arrays)
        model = small.model_of("torch", path, factory=Factory(case.factory), inputs=declared)
    from conrepair.formats.torch.load.framework import TorchRunnable

    names = [spec.name for spec in TorchRunnable(model).inputs]
    return model, dict(zip(names, arrays, strict=True)), network


def _network(name: str) -> nn.Module:
    module_name, _, function = CASES[name].factory.partition(":")
    network: nn.Module = (getattr(small, function) if module_name == "small_models" else globals()[function])()
    return network.eval()


@made_once
def _exported(folder: Path, name: str, *, core: bool) -> Model:
    network, path = _network(name), folder / f"{name}.pt2"
    examples = tuple(map(torch.from_numpy, CASES[name].feeds()))
    if core:
        with torch.no_grad():
            program = torch.export.export(network, examples, strict=False)
        torch.export.save(program.run_decompositions(), path)
    else:
        small.export_pt2(network, examples, path)
    return small.model_of("torch", path)


def specs_of(feeds: Mapping[str, Array]) -> list[TensorSpec]:
    return [TensorSpec(name, array.shape, array.dtype.name) for name, array in feeds.items()]


def renamed(model: Model, *names: str) -> Model:
    return replace(model, inputs=tuple(replace(s, name=n) for s, n in zip(model.inputs, names, strict=True)))


def residual() -> nn.Module:
    """What torchvision's ResNets do: one rectifier that writes in place for all, an addition in place."""

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(3, 6, 3, stride=2, padding=1)
            self.first = nn.Conv2d(6, 6, 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(6)
            self.second = nn.Conv2d(6, 6, (3, 1), padding="same", groups=2)
            self.relu = nn.ReLU(inplace=True)
            self.pool = nn.MaxPool2d(3, stride=2, ceil_mode=True)
            self.mean = nn.AdaptiveAvgPool2d(1)
            self.head = nn.Linear(6, small.CLASSES)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            start = self.relu(self.stem(image))
            branch = self.second(self.relu(self.norm(self.first(start))))
            branch += start
            return self.head(self.mean(self.pool(self.relu(branch))).flatten(1))

    torch.manual_seed(20)
    return small.randomized(Residual())


def encoder() -> nn.Module:
    torch.manual_seed(21)
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu"), 2).eval()


def seq2seq() -> nn.Module:
    torch.manual_seed(22)
    return nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval()


def mlp() -> nn.Module:
    torch.manual_seed(23)
    return nn.Sequential(nn.Linear(small.FEATURES, 8), nn.Tanh(), nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 3)).eval()


def recurrent() -> nn.Module:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True)
            self.gru = nn.GRU(10, 3, bidirectional=True)
            self.single = nn.LSTM(6, 4)
            self.rnn = nn.RNN(4, 2, nonlinearity="relu", bias=False)
            self.start = nn.Parameter(torch.randn(1, 1, 2))

        def forward(self, text: torch.Tensor) -> Any:
            sequence, (hidden, cell) = self.lstm(text)
            other, last = self.gru(sequence.transpose(0, 1))
            deeper, state = self.single(other)
            result, _ = self.rnn(deeper, self.start.expand(-1, text.shape[0], -1).contiguous())
            return result, last * 2, self.single(other, state)[0] + deeper, hidden.sum(0), cell.mean((0, 2))

    torch.manual_seed(24)
    return Recurrent().eval()


class Functions(nn.Module):
    """Activations, normalizations, reductions and arithmetic."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(25)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 5, 3, padding="same"))
        self.transposed = nn.ConvTranspose1d(5, 4, 3, 2, padding=1, output_padding=1)
        self.slope = nn.PReLU(4)
        self.groups = nn.GroupNorm(2, 4)
        self.instances = nn.InstanceNorm1d(4, affine=True)
        self.root = nn.RMSNorm(4)
        self.layer = nn.LayerNorm((4,))
        with torch.no_grad():
            for module in (self.groups, self.instances, self.root, self.layer, self.slope):
                module.weight.uniform_(0.5, 1.5)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        x = self.instances(self.groups(self.slope(self.transposed(self.normed(signal)))))
        x = self.layer(self.root(x.transpose(1, 2))).transpose(1, 2)
        x = functional.selu(functional.elu(x, 0.7)) + functional.celu(x, 1.3) + functional.gelu(x, approximate="tanh")
        x = x + functional.softplus(x) + functional.mish(x) + functional.hardsigmoid(x) + functional.hardswish(x)
        x = x + functional.leaky_relu(x, 0.2) + functional.glu(x, 1).repeat(1, 2, 1) + functional.relu6(x)
        x = x + functional.threshold(x, 0.3, 0.0) + torch.clamp(x, max=1) + functional.log_softmax(x, 1).exp()
        x = x + functional.hardshrink(x, 0.4) - functional.softshrink(x, 0.3)
        largest, where = x.max(1)
        x = torch.tanh(2 - (x - largest[:, None]) / 50)
        x = x / (x.norm(dim=1, keepdim=True) + 1e-6) + (x > 0.1).float() + x.pow(2) + torch.erf(x)
        x = x + torch.atan(x) + torch.asinh(x)
        x = torch.add(x, torch.sin(x), alpha=2) + torch.rsqrt(x.abs() + 1) + 1.5 ** x.neg()
        x = torch.where(x > 0, torch.einsum("bct,bdt->bct", x, x), torch.tensor(0.5)).masked_fill(x > 2, 3.0)
        x = x.cumsum(1) + x.argmax(1, keepdim=True) + x.maximum(largest[:, None]) + functional.softmax(x, -1)
        few, rest = torch.split(x, [1, 3], 1)
        return torch.stack(
            [x.mean(), x.std(), rest.sum(), few.amax(), where.sum() * 1.0, torch.tanh(x).prod(2).sum()]
        )


class Arrangement(nn.Module):
    """A class token, positions, a mask made in place, attention by hand, and operators that move pixels."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(26)
        self.token = nn.Parameter(torch.randn(1, 1, 4))
        self.register_buffer("positions", torch.randn(1, 9, 4))
        self.mixing = nn.Parameter(torch.randn(9, 9) / 3)
        self.register_buffer("ends", torch.randn(1, 1, 4))

    def forward(self, x: torch.Tensor) -> Any:
        batch, length, width = x.shape
        x = torch.cat([self.token.expand(batch, -1, -1), x], 1) + self.positions[:, : length + 1]
        mask = x.new_zeros((length + 1, length + 1), dtype=torch.bool)
        mask[2:, :3] = True
        weights = (x @ x.transpose(1, 2)) / width**0.5
        x = weights.masked_fill(mask, -1e4).softmax(-1) @ x
        x = torch.einsum(
            "buc,cd->bud", torch.einsum("tu,buc->btc", self.mixing, self.mixing @ x), self.mixing[:4, :4]
        )
        x = torch.cat([self.ends.expand(batch, -1, -1), x[:, 1:-1], 2 * self.ends.expand(batch, -1, -1)], 1)
        picture = x.reshape(batch * (length + 1), width).view(batch, 1, length + 1, width)
        picture = functional.interpolate(picture, scale_factor=2, mode="bilinear", align_corners=False)
        picture = functional.interpolate(functional.interpolate(picture, size=(6, 9)), size=(5, 6), mode="bicubic")
        picture = functional.pixel_shuffle(picture.repeat(1, 4, 1, 1), 2)
        picture = functional.pad(functional.pad(picture, (1, 2, 0, 1), mode="reflect"), (1, 1), value=0.5)
        picture = functional.avg_pool2d(picture, 3, 1, 1, count_include_pad=False, divisor_override=7)
        picture = functional.avg_pool2d(functional.max_pool2d(picture, 2, ceil_mode=True), 3, 2, 1)
        picture = functional.adaptive_avg_pool2d(picture[:, :, 1:, -3::2], (1, 2))
        parts = x.unflatten(2, (2, 2)).unbind(2)
        chunks = torch.stack(parts, 1).permute(0, 2, 1, 3).swapaxes(1, -2).chunk(2, 3)
        return picture.flatten(1).squeeze(), chunks, x[:, 0].t()


class Writing(nn.Module):
    """Writes into what views show, and into what it has returned."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(27)
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> Any:
        first = self.conv(x)
        second = torch.relu_(first)
        flat = second.flatten(1)
        flat.mul_(2)
        second += first
        third = self.norm(second)
        third[:, 1:].clamp_(max=0.5)
        return third, flat


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(28)
        self.dense = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * torch.cond(x.sum() > -100, lambda y: torch.relu(self.dense(y)), lambda y: y - 1, (x,))


class Selecting(nn.Module):
    """Sizes and numbers that depend on the data."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(29)
        self.dense = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.dense(x)
        second = torch.relu_(first)
        rows = torch.nonzero(x[:, 0] > -10)[:, 0]
        return (first[rows] + second[rows] + x.new_ones(x.shape[0], 1)[rows]).sum(0) * x.max().item()
