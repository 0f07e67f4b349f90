"""ONNX to ONNX with int8 weights by ONNX Runtime; activations are quantized while running."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.converters.base import Converter, Option
from conrepair.converters.onnx_file import FILE, is_large
from conrepair.frameworks.model import Model

__all__ = ["CONVERTER"]


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
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


CONVERTER = Converter(
    name="onnx-quantize-dynamic",
    source="onnx",
    target="onnx",
    distributions=("onnxruntime", "onnx"),
    convert=_convert,
    options={
        "per_channel": Option(False, "a scale for each channel of a weight"),
        "weights": Option("int8", "type of the weights", ("int8", "uint8")),
    },
    automatic=False,
    intent=lambda _: "int8 weights",
)
