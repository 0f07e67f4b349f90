"""ONNX to ONNX by tools that change a loaded model: they simplify it, bring it to another opset, or to float16."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option, parts_without
from conrepair.converters.onnx_file import save_onnx
from conrepair.frameworks.model import Model
from conrepair.runtime.errors import ConversionError

__all__ = ["FLOAT16", "ONNXOPTIMIZER", "ONNXSIM", "ONNXSLIM", "VERSION"]


def _slim(proto: Any, options: Mapping[str, Any]) -> Any:
    import onnxslim

    off = parts_without("onnx-onnxslim", options["without"], _patterns())
    # It counts modified nodes in a copy of its own; the loaded model keeps our file out of its reach.
    return onnxslim.slim(proto, no_shape_infer=not options["infer_shapes"], skip_fusion_patterns=off or None)


def _patterns() -> list[str]:
    """What onnxslim fuses, and what it leaves out, by its own names."""
    from onnxslim.core.pattern.registry import DEFAULT_FUSION_PATTERNS

    return list(DEFAULT_FUSION_PATTERNS)


def _optimized(proto: Any, options: Mapping[str, Any]) -> Any:
    import onnxoptimizer

    passes = _passes()
    off = parts_without("onnx-onnxoptimizer", options["without"], passes)
    return onnxoptimizer.optimize(proto, [name for name in passes if name not in off])


def _passes() -> list[str]:
    """Those that onnxoptimizer runs where it isn't told otherwise."""
    import onnxoptimizer

    return list(onnxoptimizer.get_fuse_and_elimination_passes())


def _simplified(proto: Any, options: Mapping[str, Any]) -> Any:
    import onnxsim

    # Its own check compares random inputs; ours is the audit.
    simplified, _ = onnxsim.simplify(
        proto,
        check_n=0,
        skip_fuse_bn=not options["fuse_batch_norm"],
        skip_constant_folding=not options["fold_constants"],
        skip_shape_inference=not options["infer_shapes"],
        include_subgraph=options["branches"],
    )
    return simplified


def _in_opset(proto: Any, options: Mapping[str, Any]) -> Any:
    from onnx import version_converter

    return version_converter.convert_version(proto, options["opset"])


def _half(proto: Any, options: Mapping[str, Any]) -> Any:
    import onnx_ir
    from onnxruntime.transformers.float16 import convert_float_to_float16

    # It puts its casts at the end of the graph; ONNX wants every node behind those that it reads.
    graph = onnx_ir.from_proto(convert_float_to_float16(proto, keep_io_types=options["keep_io"]))
    graph.graph.sort()
    return onnx_ir.to_proto(graph)


def _converter(
    name: str,
    distributions: tuple[str, ...],
    change: Callable[[Any, Mapping[str, Any]], Any],
    options: Mapping[str, Option],
    **more: Any,
) -> Converter:
    """A converter of a loaded model, used where it's named.

    Args:
        name: The converter's.
        distributions: Packages that take part, the tool first.
        change: Gets the model and options, and returns the changed model; None where the tool made none.
        options: By name.
        more: Of `Converter`.
    """

    def convert(model: Model, folder: Path, given: Mapping[str, Any]) -> str:
        import onnx

        changed = change(onnx.load(model.path), given)
        if changed is None:
            raise ConversionError(f"{distributions[0]} made nothing of {model.path}, and says no reason.")
        return save_onnx(changed, folder)

    return Converter(name, "onnx", "onnx", distributions, convert, options, automatic=False, **more)


ONNXSLIM = _converter(
    "onnx-onnxslim",
    ("onnxslim", "onnx"),
    _slim,
    {
        "infer_shapes": Option(True, "write inferred shapes into the graph"),
        "without": Option("", "patterns that are left as they are, separated by commas"),
    },
    parts=_patterns,
)
ONNXOPTIMIZER = _converter(
    "onnx-onnxoptimizer",
    ("onnxoptimizer", "onnx"),
    _optimized,
    {"without": Option("", "passes that are left out, separated by commas")},
    parts=_passes,
)
ONNXSIM = _converter(
    "onnx-onnxsim",
    ("onnxsim", "onnx"),
    _simplified,
    {
        "fuse_batch_norm": Option(True, "fold BatchNormalization into convolutions"),
        "fold_constants": Option(True, "compute constant parts"),
        "infer_shapes": Option(True, "infer shapes"),
        "branches": Option(False, "simplify branches and loops, too", alternatives=(False, True)),
    },
)
VERSION = _converter(
    "onnx-version-converter",
    ("onnx",),
    _in_opset,
    {"opset": Option(21, "ONNX opset to reach, up or down", least=1, alternatives=(21, 22, 23, 18))},
)
FLOAT16 = _converter(
    "onnx-float16",
    ("onnxruntime", "onnx", "onnx-ir"),
    _half,
    {"keep_io": Option(True, "inputs and outputs stay float32")},
    intent=lambda _: "float16",
)
