"""Targets: a file, its build, its conversions, answers that were recorded."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.common.plain_graph import Array
from conrepair import api
from conrepair.verdicts.truth.bound import Analysis

__all__ = ["Targets"]

_SETTINGS = {"tvm-O0": "O0", "tvm-O3": "O3"}
_CONVERSIONS: dict[str, dict[str, Any]] = {
    "normalised": {"to": "onnx", "via": ["onnx-normalise"]},
    "float16": {"to": "onnx", "via": ["onnx-float16"]},
    "torch": {"to": "torch", "via": ["onnx2torch"]},
    "keras": {"to": "keras", "via": ["onnx-keras"]},
    "tflite": {"to": "tflite", "via": ["onnx-keras", "keras-tflite"]},
    "tflite-int8": {
        "to": "tflite",
        "via": ["onnx-keras", "keras-tflite"],
        "options": {"keras-tflite": {"quantize": "int8"}},
    },
    "tflite-dynamic": {
        "to": "tflite",
        "via": ["onnx-keras", "keras-tflite"],
        "options": {"keras-tflite": {"quantize": "dynamic"}},
    },
}
_ENDS = {"onnx": ".onnx", "torch": ".pt2", "keras": ".keras", "tflite": ".tflite"}
_RECORDED = "recorded.npz"


class Targets:
    """Makes them, each once for all that share the folder."""

    def __init__(self, folder: Path) -> None:
        """Take where they go."""
        self._folder = folder

    def made(self, way: str, model: Path, data: Path, feeds: Mapping[str, Array]) -> Path:
        """A target.

        Args:
            way: How it's made: "file" is the model itself.
            model: An ONNX file.
            data: The feeds' file.
            feeds: By input.

        Raises:
            Exception: whatever converters, compilers and quantizers raise.
        """
        if way == "file":
            return model
        needs = b"" if way in _SETTINGS or way in _CONVERSIONS else data.read_bytes()
        key = hashlib.sha256(way.encode() + model.read_bytes() + needs).hexdigest()
        folder = self._folder / key[:16]
        known = folder / "path"
        if not known.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            known.write_text(str(self._make(way, model, data, feeds, folder)), encoding="utf-8")
        return Path(known.read_text(encoding="utf-8"))

    def _make(self, way: str, model: Path, data: Path, feeds: Mapping[str, Array], folder: Path) -> Path:
        if way in _SETTINGS:
            count = len(next(iter(feeds.values())))
            api.build(
                model, setting=_SETTINGS[way], output=folder / "build", batch_size=count, threads=1, in_process=True
            )
            return folder / "build"
        if way in _CONVERSIONS:
            asked = _CONVERSIONS[way]
            path = folder / f"model{_ENDS[asked['to']]}"
            fed = {"data": data} if "options" in asked else {}
            api.convert(model, **asked, **fed, output=path, check=False, mend=False, in_process=True)
            return path
        if way == "optimized":
            return _optimized(model, folder / "optimized.onnx")
        if way == "qdq":
            return _quantized(model, feeds, folder / "quantized.onnx")
        recorded = {"recorded": _exact_answers, "recorded optimized": _optimized_answers}[way]
        np.savez(folder / _RECORDED, **recorded(model, feeds))
        return folder / _RECORDED


def _optimized_answers(model: Path, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """What ONNX Runtime gives with all its optimizations."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(model), _options(all_of_them=True), providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def _exact_answers(model: Path, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """What it computes in float64, rounded to its own types."""
    proto = onnx.load(model)
    truth = Analysis(proto).truth(feeds)
    types = {
        item.name: onnx.helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type)
        for item in proto.graph.output
    }
    with np.errstate(all="ignore"):
        return {name: truth[name].astype(kind) for name, kind in types.items()}


def _optimized(model: Path, path: Path) -> Path:
    """What ONNX Runtime's extended optimizations write."""
    import onnxruntime

    options = _options(all_of_them=False)
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return path


def _options(*, all_of_them: bool) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if all_of_them else levels.ORT_ENABLE_EXTENDED
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    return options


def _quantized(model: Path, feeds: Mapping[str, Array], path: Path) -> Path:
    """In eight bits by ONNX Runtime's quantizer, calibrated on the feeds."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._left = iter([dict(feeds)])

        def get_next(self) -> Any:
            return next(self._left, None)

    quantize_static(str(model), str(path), Reader(), per_channel=True, weight_type=QuantType.QInt8)
    return path
