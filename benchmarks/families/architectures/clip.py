"""Two towers as CLIP's (Radford et al. 2021): pictures and texts in one space, logits of their similarities."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.families.architecture import Architecture
from benchmarks.families.pictures import pictures
from benchmarks.families.torch_faults import attribute, input_as, other_class, scaled, tensor, written_as
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_SIZE, _PATCH, _WIDTH, _HEADS, _WORDS, _LENGTH, _SPACE = 24, 8, 32, 4, 80, 10, 24


class QuickGELU(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


class ExactGELU(QuickGELU):
    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.in_proj, self.out_proj = nn.Linear(_WIDTH, 3 * _WIDTH), nn.Linear(_WIDTH, _WIDTH)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        batch, length, _ = x.shape
        parts = self.in_proj(x).view(batch, length, 3, _HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k, v = self.parts(parts)
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out_proj(found.transpose(1, 2).reshape(batch, length, _WIDTH))

    def parts(self, parts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return parts[0], parts[1], parts[2]


class PartsInAnotherOrder(Attention):
    def parts(self, parts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return parts[1], parts[0], parts[2]


class InChunks(Attention):
    """The same."""

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, _HEADS, -1).transpose(1, 2) for part in self.in_proj(x).chunk(3, -1))
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
        scores = scores if mask is None else scores + mask
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, _WIDTH))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(_WIDTH), Attention(), nn.LayerNorm(_WIDTH)
        self.c_fc, self.gelu, self.c_proj = nn.Linear(_WIDTH, 64), QuickGELU(), nn.Linear(64, _WIDTH)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attn(self.ln_1(x), mask)
        return x + self.c_proj(self.gelu(self.c_fc(self.ln_2(x))))


class Pictures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, _WIDTH, _PATCH, _PATCH, bias=False)
        self.cls = nn.Parameter(torch.zeros(1, 1, _WIDTH))
        self.positions = nn.Parameter(torch.zeros(1, 1 + (_SIZE // _PATCH) ** 2, _WIDTH))
        self.ln_pre, self.blocks = nn.LayerNorm(_WIDTH), nn.ModuleList([Block()])
        self.ln_post, self.proj = nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, _SPACE, bias=False)

    def forward(self, image: Tensor) -> Tensor:
        x = self.flat(self.conv1(image))
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.positions
        x = self.ln_pre(x)
        for block in self.blocks:
            x = block(x)
        return self.proj(self.ln_post(x[:, 0]))

    def flat(self, x: Tensor) -> Tensor:
        return x.flatten(2).transpose(1, 2)


class ColumnsFirst(Pictures):
    def flat(self, x: Tensor) -> Tensor:
        return x.transpose(2, 3).flatten(2).transpose(1, 2)


class Texts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(_WORDS, _WIDTH)
        self.positions = nn.Parameter(torch.zeros(_LENGTH, _WIDTH))
        self.blocks, self.ln_final = nn.ModuleList([Block()]), nn.LayerNorm(_WIDTH)
        self.proj = nn.Linear(_WIDTH, _SPACE, bias=False)

    def forward(self, text: Tensor) -> Tensor:
        mask = torch.empty(_LENGTH, _LENGTH).fill_(float("-inf")).triu_(1)
        x = self.token_embedding(text) + self.positions
        for block in self.blocks:
            x = block(x, mask)
        x = self.ln_final(x)
        return self.proj(x[torch.arange(x.shape[0]), self.end(text)])

    def end(self, text: Tensor) -> Tensor:
        return text.argmax(-1)


class OneFurther(Texts):
    def end(self, text: Tensor) -> Tensor:
        return (text.argmax(-1) + 1).clamp(max=_LENGTH - 1)


class Clip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.visual, self.transformer = Pictures(), Texts()
        self.logit_scale = nn.Parameter(torch.tensor([2.0]))

    def forward(self, image: Tensor, text: Tensor) -> tuple[Tensor, Tensor]:
        one, two = self.visual(image), self.transformer(text)
        one, two = self.unit(one), self.unit(two)
        return self.logit_scale.exp() * (one * two).sum(-1, keepdim=True), one

    def unit(self, x: Tensor) -> Tensor:
        return x / x.norm(dim=-1, keepdim=True)


class NotUnit(Clip):
    def unit(self, x: Tensor) -> Tensor:
        return x


class ScaleNotExponential(Clip):
    def forward(self, image: Tensor, text: Tensor) -> tuple[Tensor, Tensor]:
        one, two = self.unit(self.visual(image)), self.unit(self.transformer(text))
        return self.logit_scale * (one * two).sum(-1, keepdim=True), one


class ByNormalize(Clip):
    """The same."""

    def unit(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1)


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    words = generator.integers(0, _WORDS - 1, (count, _LENGTH))
    words[np.arange(count), generator.integers(3, _LENGTH, count)] = _WORDS - 1  # the last token has the largest id
    return {"image": (pictures(generator, count, _SIZE) - 0.45) / 0.27, "text": words}


def _built() -> nn.Module:
    network = drawn(Clip(), 103)
    with torch.no_grad():
        network.visual.positions.mul_(_WIDTH**0.5)
        network.visual.cls.mul_(_WIDTH**0.5)
        network.logit_scale.fill_(2.0)
        network.transformer.token_embedding.weight.mul_(1.5)
    return network


ARCHITECTURE = Architecture(
    "clip",
    "torch",
    _built,
    _samples,
    {
        "bgr": input_as(lambda image: image.flip(1)),
        "exact-gelu": other_class(Kind.GRAPH, QuickGELU, ExactGELU),
        "q-and-k": other_class(Kind.GRAPH, Attention, PartsInAnotherOrder),
        "columns-first": other_class(Kind.STRUCTURE, Pictures, ColumnsFirst),
        "one-further": other_class(Kind.GRAPH, Texts, OneFurther),
        "not-unit": other_class(Kind.GRAPH, Clip, NotUnit),
        "scale-not-exponential": other_class(Kind.GRAPH, Clip, ScaleNotExponential),
        "epsilon": attribute("eps", 1e-2, "LayerNorm"),
        "positions-off-by-one": tensor(Kind.PARAMETERS, "visual.positions", lambda numbers: numbers.roll(1, 1)),
        "patches-transposed": tensor(Kind.PARAMETERS, "visual.conv1.weight", lambda numbers: numbers.transpose(2, 3)),
        "bias-lost": tensor(Kind.PARAMETERS, "visual.blocks.0.c_fc.bias", torch.zeros_like),
        "value-scaled": scaled("transformer.blocks.0.c_proj.weight", 1.1),
    },
    {"attention-in-chunks": written_as(Attention, InChunks), "by-normalize": written_as(Clip, ByNormalize)},
    routes=("dynamo", "script"),  # TFLite's converter has no ArgMax of int64
)
