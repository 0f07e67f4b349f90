"""Other ways to write an ONNX file, at places that a seed chooses; none of them is a fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from benchmarks.common.otherwise import convolutions, moves, pieces, products, units
from benchmarks.common.otherwise.tools import TOOLS
from benchmarks.common.otherwise.work import Change, Work
from benchmarks.common.unfit import UnfitError

__all__ = ["OF_PICTURES", "OTHERWISE", "rewritten"]

_CHANGES: dict[str, Change] = {
    **pieces.CHANGES,
    **convolutions.CHANGES,
    **products.CHANGES,
    **moves.CHANGES,
    **units.CHANGES,
}
_MIXED = "mixed"
_PARTS = (2, 5, 12)  # of mixed ones, at most

OTHERWISE = (*TOOLS, *_CHANGES, *(f"{_MIXED}-{number}" for number in range(len(_PARTS))))
"""Names."""

OF_PICTURES = (
    *(
        "hard-swish-in-pieces",
        "hard-sigmoid-in-pieces",
        "leaky-relu-by-max-or-prelu",
        "batch-norm-by-product-and-sum",
    ),
    *("global-pool-by-mean", "batch-norm-folded", "batch-norm-unfolded", "bias-apart", "output-channels-apart"),
    *("input-channels-apart", "groups-apart", "series-as-pictures", "pointwise-by-product", "pads-in-convolutions"),
    *("hidden-channels-in-another-order", "hidden-channels-equalized", "pads-before-convolutions"),
    *("clip-by-min-and-max", "gemm-apart", "concat-in-turn", "flatten-or-reshape", "identities-gone"),
)
"""Those that have no place in a network of attention."""


def rewritten(name: str, model: onnx.ModelProto, generator: np.random.Generator, scratch: Path) -> onnx.ModelProto:
    """A model written otherwise.

    Args:
        name: One of `OTHERWISE`.
        model: It stays as it is.
        generator: For places and numbers.
        scratch: For files.

    Raises:
        UnfitError: where it has nothing to be written so, or a tool can't.
    """
    given = onnx.ModelProto()
    given.CopyFrom(model)
    if name in TOOLS:
        try:
            return TOOLS[name](given, generator, scratch)
        # Whatever a tool raises, it can't write this model.
        except Exception as error:
            raise UnfitError("no model", f"{name}: {type(error).__name__}: {error}"[:300]) from error
    try:
        work = Work(given, generator)
    except ValueError as error:
        raise UnfitError("no place", str(error)) from error
    if name.startswith(_MIXED):
        return _mixed(given, work, generator, _PARTS[int(name.rpartition("-")[2])])
    if not _CHANGES[name](work):
        raise UnfitError("no place")
    return work.graph.model()


def _mixed(given: onnx.ModelProto, work: Work, generator: np.random.Generator, parts: int) -> onnx.ModelProto:
    """Several in turn."""
    done = 0
    for name in generator.permutation(list(_CHANGES)):
        if _CHANGES[name](work):
            given = work.graph.model()
            work = Work(given, generator)
            done += 1
        if done == parts:
            break
    if not done:
        raise UnfitError("no place")
    return given
