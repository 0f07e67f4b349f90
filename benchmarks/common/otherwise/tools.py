"""Files written otherwise by tools, and by conrepair's own passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.version_converter
import onnx_ir

from benchmarks.common.rewriting import REWRITINGS
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.files.whole import sha256_of

__all__ = ["TOOLS"]

Tool = Callable[[onnx.ModelProto, np.random.Generator, Path], onnx.ModelProto]

_OPSETS = (13, 15, 18, 20, 21)


def _converter(name: str) -> Tool:
    def run(model: onnx.ModelProto, _: np.random.Generator, scratch: Path) -> onnx.ModelProto:
        folder = scratch / name
        folder.mkdir()
        path = folder / "given.onnx"
        onnx.save(model, path)
        step = converter(name)
        return onnx.load(folder / step.convert(Model("onnx", str(path), sha256_of(path)), folder, step.complete({})))

    return run


def _runtime(level: str) -> Tool:
    def run(model: onnx.ModelProto, _: np.random.Generator, scratch: Path) -> onnx.ModelProto:
        import onnxruntime

        path = scratch / f"{level}.onnx"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
        options.optimized_model_filepath, options.log_severity_level = str(path), 3
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(path)

    return run


def _another_opset(model: onnx.ModelProto, generator: np.random.Generator, _: Path) -> onnx.ModelProto:
    now = next(item.version for item in model.opset_import if item.domain in {"", "ai.onnx"})
    others = [opset for opset in _OPSETS if opset != now]
    return onnx.version_converter.convert_version(model, others[int(generator.integers(len(others)))])


def _passed(name: str) -> Tool:
    def run(model: onnx.ModelProto, generator: np.random.Generator, _: Path) -> onnx.ModelProto:
        return onnx_ir.to_proto(REWRITINGS[name](onnx_ir.from_proto(model), generator))

    return run


TOOLS: dict[str, Tool] = {
    "onnxsim": _converter("onnx-onnxsim"),
    "onnxslim": _converter("onnx-onnxslim"),
    "normalised": _converter("onnx-normalise"),
    "runtime-basic": _runtime("BASIC"),
    "runtime-extended": _runtime("EXTENDED"),
    "another-opset": _another_opset,
    **{name.replace(" ", "-"): _passed(name) for name in REWRITINGS},
}
