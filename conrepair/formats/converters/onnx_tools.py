"""ONNX to ONNX by tools that change a model: they simplify it, bring it to another opset, to float16, or to int8."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conrepair.formats.converters.base import CALIBRATION, Converter, Option, calibration_samples, parts_without
from conrepair.formats.models.model import Model
from conrepair.ground.data.feeds import CalibrationFeeds
from conrepair.ground.runtime.errors import ConversionError, DataError

_FILE = "model.onnx"
_DATA = "model.onnx.data"
_LIMIT = 1 << 30  # bytes of weights kept inside the file; protobuf itself ends at 2 GiB


def _is_large(proto: Any) -> bool:
    """Whether the weights belong into a file of their own."""
    return bool(sum(tensor.ByteSize() for tensor in proto.graph.initializer) > _LIMIT)


# Tools that give the changed model, which is written with its weights beside it when they are large.


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
        if _is_large(changed):
            onnx.save(changed, folder / _FILE, save_as_external_data=True, location=_DATA)
        else:
            onnx.save(changed, folder / _FILE)
        return _FILE

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


# int8 weights by ONNX Runtime; activations are quantized while running.


def _convert_dynamically(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import onnx
    import onnx_ir
    from onnxruntime.quantization import QuantType, quantize_dynamic

    from conrepair.ground.onnx_graphs.initializers import give_own_weights

    graph = onnx_ir.from_proto(onnx.load(model.path))  # of a path it would write a file beside it
    give_own_weights(graph)
    proto = onnx_ir.to_proto(graph)
    # It transposes weights and leaves their recorded shapes as they were, so that its own inference stops. It
    # infers what it needs anew.
    del proto.graph.value_info[:]
    quantize_dynamic(
        proto,
        folder / _FILE,
        per_channel=options["per_channel"],
        weight_type={"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}[options["weights"]],
        use_external_data_format=_is_large(proto),
    )
    return _FILE


DYNAMIC = Converter(
    name="onnx-quantize-dynamic",
    source="onnx",
    target="onnx",
    distributions=("onnxruntime", "onnx"),
    convert=_convert_dynamically,
    options={
        "per_channel": Option(False, "a scale for each channel of a weight"),
        "weights": Option("int8", "type of the weights", ("int8", "uint8")),
    },
    automatic=False,
    intent=lambda _: "int8 weights",
)


# QuantizeLinear and DequantizeLinear around operators.


def _convert_statically(
    model: Model, folder: Path, options: Mapping[str, Any], feeds: CalibrationFeeds | None = None
) -> str:
    if feeds is None:
        raise DataError(
            "onnx-quantize-static needs data to calibrate with: activations get the ranges that it shows."
        )
    import onnx
    from onnxruntime.quantization import CalibrationMethod, QuantType, quantize_static

    kinds = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}
    methods = {method.name.lower(): method for method in CalibrationMethod}
    samples = iter(feeds)
    proto = _prepared(model, folder) if options["prepare"] else onnx.load(model.path)
    quantize_static(
        proto,
        folder / _FILE,
        types.SimpleNamespace(get_next=lambda: next(samples, None)),  # None is the end
        per_channel=options["per_channel"],
        reduce_range=options["reduce_range"],
        activation_type=kinds[options["activations"]],
        weight_type=kinds[options["weights"]],
        calibrate_method=methods[options["method"]],
        use_external_data_format=_is_large(proto),
        extra_options={"CalibPercentile": options["percentile"]},
    )
    return _FILE


def _prepared(model: Model, folder: Path) -> Any:
    """The graph as ONNX Runtime's documentation wants it quantized: BatchNorms folded, constants computed."""
    import onnx
    from onnxruntime.quantization import quant_pre_process

    path = folder / "prepared.onnx"
    # From the file: a loaded model would lose its small constants to a file that nothing finds again.
    quant_pre_process(model.path, path, skip_symbolic_shape=True)
    proto = onnx.load(path)
    path.unlink()
    return proto


STATIC = Converter(
    name="onnx-quantize-static",
    source="onnx",
    target="onnx",
    distributions=("onnxruntime", "onnx"),
    convert=_convert_statically,
    options={
        "prepare": Option(True, "let ONNX Runtime simplify the graph first (folds BatchNorm)"),
        "per_channel": Option(True, "a scale for each channel of a weight"),
        "activations": Option("uint8", "type of the activations", ("int8", "uint8")),
        "weights": Option("int8", "type of the weights", ("int8", "uint8")),
        "reduce_range": Option(False, "seven bits for weights, for CPUs whose eight-bit products saturate"),
        "method": Option(
            "minmax",
            "how activations get their range; entropy and percentile keep them all in memory meanwhile",
            ("minmax", "entropy", "percentile"),
        ),
        "percentile": Option(99.999, "share of values that method=percentile covers", least=50, most=100),
        **CALIBRATION,
    },
    automatic=False,
    intent=lambda _: "int8",
    calibrates=calibration_samples,
)
