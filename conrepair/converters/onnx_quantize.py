"""ONNX to ONNX in int8 by ONNX Runtime: weights alone, or activations, too, which is calibrated."""

from __future__ import annotations

import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import CALIBRATION, Converter, Option, calibration_samples
from conrepair.converters.onnx_file import FILE, is_large
from conrepair.data.calibration import CalibrationFeeds
from conrepair.frameworks.model import Model
from conrepair.runtime.errors import DataError

__all__ = ["DYNAMIC", "STATIC"]


# int8 weights; activations are quantized while running.


def _convert_dynamically(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import onnx
    import onnx_ir
    from onnxruntime.quantization import QuantType, quantize_dynamic

    from conrepair.onnx_passes.initializers import give_own_weights

    graph = onnx_ir.from_proto(onnx.load(model.path))  # of a path it would write a file beside it
    give_own_weights(graph)
    proto = onnx_ir.to_proto(graph)
    # It transposes weights and leaves their recorded shapes as they were, so that its own inference stops. It
    # infers what it needs anew.
    del proto.graph.value_info[:]
    quantize_dynamic(
        proto,
        folder / FILE,
        per_channel=options["per_channel"],
        weight_type={"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}[options["weights"]],
        use_external_data_format=is_large(proto),
    )
    return FILE


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
    methods = {
        "minmax": CalibrationMethod.MinMax,
        "entropy": CalibrationMethod.Entropy,
        "percentile": CalibrationMethod.Percentile,
    }
    samples = iter(feeds)
    proto = _prepared(model, folder) if options["prepare"] else onnx.load(model.path)
    quantize_static(
        proto,
        folder / FILE,
        types.SimpleNamespace(get_next=lambda: next(samples, None)),  # None is the end
        per_channel=options["per_channel"],
        reduce_range=options["reduce_range"],
        activation_type=kinds[options["activations"]],
        weight_type=kinds[options["weights"]],
        calibrate_method=methods[options["method"]],
        use_external_data_format=is_large(proto),
        extra_options={"CalibPercentile": options["percentile"]},
    )
    return FILE


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
