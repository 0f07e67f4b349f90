"""What tokens see: masks as exports write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.attention.spec import Spec
from benchmarks.common.plain_graph import BOOL, FLOAT, Array

if TYPE_CHECKING:
    from benchmarks.attention.networks import Builder

__all__ = ["Masking", "mask", "masked", "seen", "slopes"]


@dataclass(frozen=True)
class Masking:
    """What attention is masked by.

    Attributes:
        scope: Where the mask is made.
        allowed: The value that says what is seen; "" for all.
        forbidden: The value that says what isn't; "" where that isn't computed.
        bias: The value that's added; "" for none.
    """

    scope: str
    allowed: str = ""
    forbidden: str = ""
    bias: str = ""


def seen(spec: Spec, *, ahead: int = 0, wider: int = 0) -> Array:
    """Which keys a query sees, padding apart: [tokens, past + tokens].

    Args:
        spec: Of the network.
        ahead: Tokens that are seen by mistake.
        wider: Tokens by which the window is too wide.
    """
    rows = np.arange(spec.past, spec.past + spec.tokens)[:, None] + ahead
    columns = np.arange(spec.past + spec.tokens)[None]
    found = columns <= rows if spec.causal else np.ones((len(rows), columns.size), bool)
    if spec.mask == "window":
        found &= rows - columns < spec.window + wider
    return found


def slopes(spec: Spec) -> Array:
    """Of ALiBi, one for each head."""
    return (2.0 ** (-4.0 * np.arange(1, spec.heads + 1) / spec.heads)).astype(np.float32)


def mask(builder: Builder, scope: str) -> Masking:
    """Write what's before all attention that shares it."""
    spec, writing, graph = builder.spec, builder.writing, builder.graph
    bias = _distances(builder, scope) if spec.position == "alibi" else ""
    if spec.mask == "none":
        return Masking(scope, bias=bias)
    fill = graph.constant(f"{scope}/fill", writing.fill)
    if writing.added and writing.constant and not spec.padded:
        numbers = np.where(seen(spec), 0, writing.fill).astype(np.float32)[None, None]
        return _with_bias(builder, scope, graph.constant(f"{scope}/added", numbers), bias)
    if writing.added and spec.mask == "padding" and np.isfinite(writing.fill) and writing.constant:
        keep = graph.add(f"{scope}/keep", "Cast", _wide(builder, scope), to=FLOAT)
        drop = graph.add(f"{scope}/drop", "Sub", graph.constant(f"{scope}/one", 1.0), keep)
        return _with_bias(builder, scope, graph.add(f"{scope}/added", "Mul", drop, fill), bias)
    allowed = _allowed(builder, scope)
    if writing.added:
        zero = graph.constant(f"{scope}/zero", 0.0)
        return _with_bias(builder, scope, graph.add(f"{scope}/added", "Where", allowed, zero, fill), bias)
    if writing.mask.startswith("fill"):
        return Masking(scope, allowed, graph.add(f"{scope}/forbidden", "Not", allowed), bias)
    return Masking(scope, allowed, bias=bias)


def masked(builder: Builder, scope: str, scores: str, masking: Masking | None) -> str:
    """Scores with what isn't seen taken out."""
    graph = builder.graph
    if masking is None:
        return scores
    if masking.bias:
        scores = graph.add(f"{scope}/biased", "Add", scores, masking.bias)
    fill = f"{masking.scope}/fill"
    if masking.forbidden:
        return graph.add(f"{scope}/masked", "Where", masking.forbidden, fill, scores)
    if masking.allowed:
        return graph.add(f"{scope}/masked", "Where", masking.allowed, scores, fill)
    return scores


def _with_bias(builder: Builder, scope: str, added: str, bias: str) -> Masking:
    if not bias:
        return Masking(scope, bias=added)
    return Masking(scope, bias=builder.graph.add(f"{scope}/both", "Add", bias, added))


def _wide(builder: Builder, scope: str) -> str:
    return builder.graph.add(f"{scope}/wide", "Unsqueeze", "attention_mask", axes=[1, 2])


def _allowed(builder: Builder, scope: str) -> str:
    spec, writing, graph = builder.spec, builder.writing, builder.graph
    held = ""
    if spec.causal:
        if writing.constant:
            held = graph.constant(f"{scope}/seen", seen(spec)[None, None])
        else:
            held = _computed(builder, scope)
    if not spec.padded:
        return held
    known = graph.add(f"{scope}/known", "Cast", _wide(builder, scope), to=BOOL)
    return graph.add(f"{scope}/allowed", "And", held, known) if held else known


def _computed(builder: Builder, scope: str) -> str:
    """What's seen, by comparing places."""
    spec, graph = builder.spec, builder.graph
    rows, columns = _places(builder, scope)
    found = graph.add(f"{scope}/causal", "LessOrEqual", columns, rows)
    if spec.mask == "window":
        distance = graph.add(f"{scope}/behind", "Sub", rows, columns)
        size = graph.constant(f"{scope}/window_size", np.int64(spec.window))
        found = graph.add(f"{scope}/seen", "And", found, graph.add(f"{scope}/window", "Less", distance, size))
    return found


def _places(builder: Builder, scope: str) -> tuple[str, str]:
    """Of queries [tokens, 1], of keys [past + tokens]."""
    spec, graph = builder.spec, builder.graph
    size = graph.add(f"{scope}/size", "Shape", "input_ids")
    count = graph.add(f"{scope}/count", "Gather", size, graph.constant(f"{scope}/1", np.int64(1)), axis=0)
    past = graph.constant(f"{scope}/past", np.int64(spec.past))
    zero, one = graph.constant(f"{scope}/0", np.int64(0)), graph.constant(f"{scope}/step", np.int64(1))
    length = graph.add(f"{scope}/length", "Add", count, past)
    columns = graph.add(f"{scope}/columns", "Range", zero, length, one)
    rows = graph.add(f"{scope}/rows", "Range", zero, count, one)
    rows = graph.add(f"{scope}/shifted", "Add", rows, graph.constant(f"{scope}/shift", np.int64(spec.past)))
    return graph.add(f"{scope}/column", "Unsqueeze", rows, axes=[1]), columns


def _distances(builder: Builder, scope: str) -> str:
    """ALiBi's bias: [1, heads, tokens, past + tokens]."""
    spec, writing, graph = builder.spec, builder.writing, builder.graph
    distance = -np.abs(
        np.arange(spec.past + spec.tokens)[None] - np.arange(spec.past, spec.past + spec.tokens)[:, None]
    )
    distance = distance.astype(np.float32)[None, None]
    steep = slopes(spec)[None, :, None, None]
    if writing.constant:
        return graph.constant(f"{scope}/alibi", distance * steep)
    inputs = graph.constant(f"{scope}/distance", distance), graph.constant(f"{scope}/slopes", steep)
    return graph.add(f"{scope}/alibi", "Mul", *inputs)
