"""TFLite to ONNX by tf2onnx."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conrepair.formats.converters.base import Converter, Option
from conrepair.formats.converters.tf2onnx_shared import collecting_often, save
from conrepair.formats.models.model import Model


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    import onnx_ir
    import tf2onnx

    from conrepair.formats.tflite.load.framework import TfliteRunnable

    with collecting_often():
        proto, _ = tf2onnx.convert.from_tflite(model.path, opset=options["opset"])
    # tf2onnx names and orders inputs and outputs like the tensors; the signature tells what belongs together.
    runnable = TfliteRunnable(model)
    graph = onnx_ir.from_proto(proto)
    for values, specs in ((graph.graph.inputs, runnable.inputs), (graph.graph.outputs, runnable.outputs)):
        for value in values:
            value.name = runnable.tensor_names.get(str(value.name), value.name)
        order = {spec.name: place for place, spec in enumerate(specs)}
        values[:] = sorted(values, key=lambda value: order.get(str(value.name), len(order)))
    _write_out_gelu(graph)
    return save(onnx_ir.to_proto(graph), folder)


def _write_out_gelu(model: Any) -> None:
    """Replace TFLite's GELU, which tf2onnx doesn't know, in place; TensorFlow's converter makes it of every GELU."""
    import onnx_ir

    from conrepair.ground.equations.matching import Match
    from conrepair.ground.equations.operators import EQUATIONS, TANH_GELU
    from conrepair.ground.equations.writing import written

    for node in list(model.graph):
        if node.op_type == "TFL_GELU":
            approximate = "approximate" in node.attributes and node.attributes["approximate"].as_int()
            node.outputs[0].dtype = onnx_ir.DataType.FLOAT  # in which the kernel computes
            equation = TANH_GELU if approximate else EQUATIONS["Gelu"]
            written(equation, Match({"x": node.inputs[0]}, {}, (node,)), model.opset_imports[""])


CONVERTER = Converter(
    name="tflite-onnx-tf2onnx",
    source="tflite",
    target="onnx",
    distributions=("tf2onnx", "tensorflow", "onnx", "onnx-ir"),
    convert=_convert,
    options={"opset": Option(15, "ONNX opset (up to 18)", alternatives=(15, 13, 18))},
)
