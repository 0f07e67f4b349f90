"""Inputs of networks of attention."""

from __future__ import annotations

import numpy as np

from benchmarks.attention.spec import Spec
from benchmarks.common.located import SAMPLES
from benchmarks.common.plain_graph import Array

__all__ = ["samples"]


def samples(spec: Spec, count: int = SAMPLES) -> dict[str, Array]:
    """Drawn by the network's seed; texts of several lengths, padded at their ends."""
    generator = np.random.default_rng([spec.seed, 3])
    feeds: dict[str, Array] = {"input_ids": generator.integers(0, spec.words, (count, spec.tokens))}
    if spec.padded:
        lengths = generator.integers(2, spec.tokens + 1, (count, 1))
        lengths[0] = spec.tokens // 2  # one at least is padded
        feeds["attention_mask"] = (np.arange(spec.tokens)[None] < lengths).astype(np.int64)
    if spec.past:
        shape = count, spec.kv_heads, spec.past, spec.width
        for block in range(spec.blocks):
            for name in "kv":
                feeds[f"past.{block}.{name}"] = generator.standard_normal(shape).astype(np.float32)
    return feeds
