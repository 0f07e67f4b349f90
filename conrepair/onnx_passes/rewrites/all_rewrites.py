"""The rewrites there are, those that change least first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import onnx_ir

from conrepair.onnx_passes.rewrites.defaults import defaults
from conrepair.onnx_passes.rewrites.depth_to_space import depth_to_space
from conrepair.onnx_passes.rewrites.one_hot import one_hot
from conrepair.onnx_passes.rewrites.pools import global_pool, lp_pool, pool_padding
from conrepair.onnx_passes.rewrites.products import affine, flatten, gemm
from conrepair.runtime.errors import ConfigError
from conrepair.runtime.words import meant

__all__ = ["REWRITES", "Rewrite", "rewrites_named"]

Rewrite = Callable[[onnx_ir.Model], None]
"""Changes a model in place, whose shapes are inferred, where it applies."""

REWRITES: Mapping[str, Rewrite] = {
    "defaults": defaults,
    "flatten": flatten,
    "gemm": gemm,
    "global-pool": global_pool,
    "pool-padding": pool_padding,
    "depth-to-space": depth_to_space,
    "one-hot": one_hot,
    "lp-pool": lp_pool,
    "affine": affine,
}


def rewrites_named(names: Iterable[str]) -> list[tuple[str, Rewrite]]:
    """The rewrites of those names, in the order of `REWRITES`.

    Raises:
        ConfigError: if one is unknown; suggests the closest.
    """
    wanted = set(names)
    for name in sorted(wanted - set(REWRITES)):
        hint = meant(name, REWRITES, f"known: {', '.join(REWRITES)}")
        raise ConfigError(f"there is no rewrite '{name}'{hint}")
    return [(name, rewrite) for name, rewrite in REWRITES.items() if name in wanted]
