"""Which networks of attention there are: what they compute, and how they're written."""

from __future__ import annotations

import dataclasses
import zlib
from dataclasses import dataclass

import numpy as np

from benchmarks.common.cases import REPORTING_SEEDS

__all__ = ["COUNT", "MASKS", "POSITIONS", "Spec", "Writing", "networks", "writing_of"]

COUNT = 24
"""Networks of each seed."""

MASKS = ("none", "causal", "padding", "causal+padding", "window")
POSITIONS = ("learned", "rope-half", "rope-interleaved", "alibi", "none")

_MASKED_BY = (
    "add-1e4",
    "add-1e9",
    "add-min",
    "add-inf",
    "where-1e9",
    "where-min",
    "where-inf",
    "fill-1e9",
    "fill-inf",
)
_SCALED = ("div", "mul", "q", "both", "folded")
_MLPS = ("gelu", "gelu-tanh", "relu", "silu-glu", "gelu-glu")


@dataclass(frozen=True)
class Spec:
    """What a network computes.

    Attributes:
        name: Of the network.
        seed: Of its weights.
        blocks: How many.
        heads: Of queries.
        kv_heads: Of keys and values, that divide those.
        width: Of a head.
        inner: Width of the MLP.
        tokens: Of an input.
        words: That there are.
        mask: One of `MASKS`.
        position: One of `POSITIONS`.
        norm: "layer" or "rms".
        before: Whether norms stand before attention and MLP, or behind the sums.
        mlp: What's between its products.
        bias: Whether projections have one.
        past: Tokens in a cache of keys and values, which is an input and an output; 0: there's none.
        window: Tokens that a token sees, where the mask is that.
        epsilon: Of norms.
        embedding: Standard deviation of embeddings.
        massive: "" for no massive activation; "channel" of what blocks add, or "token" of what they add to.
        magnitude: Of that.
    """

    name: str
    seed: int
    blocks: int
    heads: int
    kv_heads: int
    width: int
    inner: int
    tokens: int
    words: int
    mask: str
    position: str
    norm: str
    before: bool
    mlp: str
    bias: bool
    past: int
    window: int
    epsilon: float
    embedding: float
    massive: str
    magnitude: float

    @property
    def hidden(self) -> int:
        """Width of what runs through the blocks."""
        return self.heads * self.width

    @property
    def causal(self) -> bool:
        """Whether a token doesn't see those behind it."""
        return self.mask in {"causal", "causal+padding", "window"}

    @property
    def padded(self) -> bool:
        """Whether an input says which tokens are padding."""
        return "padding" in self.mask

    @property
    def gated(self) -> bool:
        """Whether the MLP multiplies two products."""
        return self.mlp.endswith("glu")


@dataclass(frozen=True)
class Writing:
    """How a network is written; none of it changes what's computed.

    Attributes:
        mask: How: added or chosen by Where (in either order), and the number for what isn't seen.
        constant: Whether what doesn't depend on inputs is computed ahead: masks and the tables of rotations.
        shared: Whether blocks share one mask.
        scale: Where scores are scaled, and by what.
        fused: Whether one product makes queries, keys and values.
        operators: Whether norms and activations are operators of their own, where the opset has them.
        constant_nodes: Whether small constants are nodes.
        opset: Of the file.
    """

    mask: str
    constant: bool
    shared: bool
    scale: str
    fused: bool
    operators: bool
    constant_nodes: bool
    opset: int

    @property
    def fill(self) -> float:
        """The number for what isn't seen."""
        named = {"1e4": -1e4, "1e9": -1e9, "min": float(np.finfo(np.float32).min), "inf": -np.inf}
        return named[self.mask.partition("-")[2]]

    @property
    def added(self) -> bool:
        """Whether that's added."""
        return self.mask.startswith("add")


def networks(seed: int) -> list[Spec]:
    """The networks of a seed; those of reporting seeds differ in sizes and in what is combined with what."""
    reporting = seed in REPORTING_SEEDS
    generator = np.random.default_rng([seed, 1])
    found: list[Spec] = []
    while len(found) < COUNT:
        spec = _drawn(f"attention-{seed}-{len(found)}", generator, len(found), reporting=reporting)
        if (_parity(spec) == 1) == reporting:
            found.append(spec)
    return found


def _drawn(name: str, generator: np.random.Generator, place: int, *, reporting: bool) -> Spec:
    def chosen(*values: object) -> object:
        return values[int(generator.integers(len(values)))]

    mask = MASKS[place % len(MASKS)]
    position = chosen(*(POSITIONS if mask != "padding" else ("learned", "rope-half", "alibi", "none")))
    heads = chosen(3, 6, 6, 10) if reporting else chosen(2, 4, 4, 8)
    fewer = [number for number in range(1 + heads % 2, heads) if heads % number == 0]
    norm = chosen("layer", "rms")
    massive = ("", "", "channel", "", "token")[(place + place // len(MASKS)) % len(MASKS)]
    return Spec(
        name=name,
        seed=int(generator.integers(2**31)),
        blocks=chosen(2, 3, 5) if reporting else chosen(2, 4),
        heads=heads,
        kv_heads=chosen(*fewer, heads, heads),
        width=chosen(6, 10, 14) if reporting else chosen(4, 8, 16),
        inner=chosen(44, 76) if reporting else chosen(48, 64),
        tokens=chosen(7, 11, 13) if reporting else chosen(6, 9, 12),
        words=chosen(37, 61) if reporting else chosen(40, 64),
        mask=mask,
        position=position,
        norm=norm,
        before=norm == "rms" or massive == "token" or bool(chosen(True, False)),
        mlp=chosen(*_MLPS),
        bias=norm == "layer" or bool(chosen(True, False, False)),
        past=int(chosen(0, 3, 4)) if mask in {"causal", "none"} and generator.random() < 0.6 else 0,
        window=int(chosen(2, 3, 4)),
        epsilon=float(chosen(1e-5, 1e-6)),
        embedding=float(chosen(0.02, 1.0)),
        massive=massive,
        magnitude=float(chosen(1e3, 1e4, 1e5, 1e6, 1e7)),
    )  # type: ignore[arg-type]


def _parity(spec: Spec) -> int:
    """By which combinations are dealt to development and to reporting."""
    what = (spec.mask, spec.position, spec.norm, spec.before, spec.mlp, bool(spec.past), spec.massive)
    return zlib.crc32(repr(what).encode()) & 1


def writing_of(spec: Spec, number: int) -> Writing:
    """One of a network's writings; 0 is what cases start from."""
    generator = np.random.default_rng([spec.seed, number, 2])

    def chosen(*values: object) -> object:
        return values[int(generator.integers(len(values)))]

    masks = [item for item in _MASKED_BY if spec.position == "alibi" or item != "add-1e4" or spec.magnitude < 1e6]
    writing = Writing(
        mask=str(chosen(*masks)),
        constant=bool(chosen(True, False)),
        shared=bool(chosen(True, False)),
        scale=str(chosen(*_SCALED)),
        fused=bool(chosen(True, False, False)),
        operators=bool(chosen(True, False)),
        constant_nodes=bool(chosen(True, False)),
        opset=int(chosen(14, 16, 17, 18, 20, 21)),
    )
    if number == 0 and writing.scale == "folded":  # faults of the scale need one
        return dataclasses.replace(writing, scale="div")
    return writing
