"""In a worker: one right target."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.generated import case_of
from benchmarks.common.located import located, located_sides, saved, unfit
from benchmarks.common.otherwise import rewritten
from benchmarks.common.target import Data, UnfitError, made_target, measured
from benchmarks.rightness.making import feeds_of, written

__all__ = ["run"]


def run(folder: Path, **payload: Any) -> dict[str, Any]:
    """Carry out a case.

    Args:
        payload: "case"; "kept" (a folder for networks).
        folder: For files; they're removed.

    Returns:
        "status" ("measured", or that of `UnfitError`) and "words"; for a measured one also what `located` says.
    """
    return measured(_measured, payload, folder)


def _measured(payload: dict[str, Any], scratch: Path) -> dict[str, Any]:
    case, kept = case_of(payload), Path(payload["kept"])
    with unfit("no model"):
        source = written(case.model, case.source, kept)
    given = feeds_of(case.model)
    if not isinstance(given, dict):
        held = {tensor.name for tensor in source.graph.initializer}
        names = [value.name for value in source.graph.input if value.name not in held]
        given = dict(zip(names, given, strict=True))
    about = {"injected": [], "about": {}}
    if case.route:
        return about | _converted(payload["case"], saved(source, scratch / "base.onnx"), given, scratch)
    with unfit("not injected"):
        target = written(case.model, case.base, kept)
        if case.rewriting:
            generator = np.random.default_rng(zlib.crc32(case.name.encode()))
            target = rewritten(case.rewriting, target, generator, scratch)
    return about | located(source, target, given, scratch, faulty=False, exact=False)


def _converted(case: dict[str, Any], side: dict[str, Any], feeds: dict[str, Any], scratch: Path) -> dict[str, Any]:
    path = scratch / "given.npz"
    np.savez(path, **feeds)
    data = Data(str(path))
    made = made_target(case | {"source": side, "base": side}, data, scratch)
    if made.off:
        raise UnfitError("unverified", made.off)
    return {"effect": None, "rounding": None} | located_sides(side, made.side, data)
