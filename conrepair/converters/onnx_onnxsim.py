"""ONNX to simpler ONNX by onnxsim (constant folding, fusion of BatchNorm, removal of what does nothing)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.converters.onnx_file import save_onnx
from conrepair.frameworks.model import Model

__all__ = ["CONVERTER"]


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import onnx
    import onnxsim

    # Its own check compares random inputs; ours is the audit.
    simplified, _ = onnxsim.simplify(
        onnx.load(model.path),
        check_n=0,
        skip_fuse_bn=not options["fuse_batch_norm"],
        skip_constant_folding=not options["fold_constants"],
        skip_shape_inference=not options["infer_shapes"],
        include_subgraph=options["branches"],
    )
    return save_onnx(simplified, folder)


CONVERTER = Converter(
    name="onnx-onnxsim",
    source="onnx",
    target="onnx",
    distributions=("onnxsim", "onnx"),
    convert=_convert,
    options={
        "fuse_batch_norm": Option(True, "fold BatchNormalization into convolutions"),
        "fold_constants": Option(True, "compute constant parts"),
        "infer_shapes": Option(True, "infer shapes"),
        "branches": Option(False, "simplify branches and loops, too", alternatives=(False, True)),
    },
    automatic=False,
)
