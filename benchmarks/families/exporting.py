"""Networks and graphs as files, by the libraries' own exporters and tools."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx

from benchmarks.common.making import convert
from benchmarks.common.target import side_of
from benchmarks.families.architecture import Architecture, Array
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.files.whole import sha256_of

__all__ = ["INT8", "ROUTES", "SOURCES", "TOOLS", "export", "format_of", "model_of", "source_of", "tflite_of_onnx"]

ROUTES = {
    "torch": ("dynamo", "script", "tflite"),
    "keras": ("keras-tflite", "keras-int8", "keras-onnx"),
}
"""By framework: PyTorch's two exporters, and on to TFLite by the suite's own route; from Keras."""

INT8 = "keras-int8"

SOURCES = {"dynamo": "pt2", "script": "pt2", "tflite": "onnx"} | dict.fromkeys(ROUTES["keras"], "keras")
"""What the source of each route is."""

_FORMATS = {"dynamo": "onnx", "script": "onnx", "keras-onnx": "onnx"}
_OPSETS = {"dynamo": 18, "script": 17, "tflite": 17, "keras-onnx": 17}
_TO_TFLITE = ("onnx-keras", "keras-tflite")
_CALIBRATION = 32


def format_of(route: str) -> str:
    """Of a route's targets."""
    return _FORMATS.get(route, "tflite")


def model_of(path: Path) -> Model:
    """A file as the suite takes it."""
    framework = {".pt2": "torch", ".keras": "keras"}.get(path.suffix, path.suffix[1:])
    return Model(framework, str(path), sha256_of(path))


def source_of(chosen: Architecture, route: str, network: Any, samples: Mapping[str, Array], folder: Path) -> Path:
    """Write what a route starts from.

    Args:
        chosen: The architecture.
        route: One of `ROUTES`.
        network: Without a fault.
        samples: Of its inputs.
        folder: Receives the file.
    """
    kind = SOURCES[route]
    if kind == "keras":
        path = folder / "source.keras"
        network.save(path)
        return path
    if kind == "onnx":
        return _onnx(chosen, network, samples, folder / "source.onnx", "script", _OPSETS[route])
    import torch

    path = folder / "source.pt2"
    names = list(samples)
    batch = {0: torch.export.Dim("batch")} if chosen.open_batch else {}
    program = torch.export.export(network, _examples(chosen, samples), dynamic_shapes=tuple(batch for _ in names))
    torch.export.save(program, path)
    return path


def export(
    chosen: Architecture,
    route: str,
    network: Any,
    samples: Mapping[str, Array],
    path: Path,
    *,
    opset: int = 0,
    calibration: Callable[[Any], Any] | None = None,
) -> Path:
    """Write a network as the target of a route.

    Args:
        chosen: The architecture.
        route: One of `ROUTES`.
        network: As it's exported.
        samples: Of its inputs; they calibrate a quantization.
        path: Of the file, without a suffix.
        opset: Of ONNX; 0: the route's own.
        calibration: What is done to samples that calibrate.
    """
    opset = opset or _OPSETS.get(route, 0)
    if route.startswith("keras"):  # whose layers' names begin with it: a count of all networks that were made
        network.name = chosen.name.replace("-", "_")
    if route == "keras-onnx":
        return _onnx_of_keras(network, path.with_suffix(".onnx"), opset)
    if route.startswith("keras"):
        given = [calibration(array) if calibration else array for array in samples.values()]
        network = network if chosen.open_batch else _with_batch_of_one(network)
        return _tflite_of_keras(network, given, path.with_suffix(".tflite"), int8=route == INT8)
    made = _onnx(chosen, network, samples, path.with_suffix(".onnx"), "script" if route == "tflite" else route, opset)
    return tflite_of_onnx(made) if route == "tflite" else made


def tflite_of_onnx(path: Path) -> Path:
    """An ONNX file on to TFLite, by the suite's own route."""
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        side: dict[str, Any] = side_of(model_of(path))
        for name in _TO_TFLITE:
            folder = Path(scratch) / name
            folder.mkdir()
            side = convert(folder, side=side, converter=name, options={})["side"]
        return Path(shutil.move(side["model"]["path"], path.with_suffix(".tflite")))


def _examples(chosen: Architecture, samples: Mapping[str, Array]) -> tuple[Any, ...]:
    import torch

    return tuple(torch.from_numpy(array[: 2 if chosen.open_batch else 1]) for array in samples.values())


def _onnx(
    chosen: Architecture, network: Any, samples: Mapping[str, Array], path: Path, exporter: str, opset: int
) -> Path:
    import torch

    names = list(samples)
    more: dict[str, Any] = {"dynamo": exporter == "dynamo", "opset_version": opset, "input_names": names}
    if chosen.open_batch and exporter == "dynamo":
        more["dynamic_shapes"] = tuple({0: torch.export.Dim("batch")} for _ in names)
    elif chosen.open_batch:
        with torch.no_grad():
            answers = network(*_examples(chosen, samples))
        count = 1 if isinstance(answers, torch.Tensor) else len(answers)
        more["output_names"] = [f"output_{place}" for place in range(count)]
        more["dynamic_axes"] = {name: {0: "batch"} for name in (*names, *more["output_names"])}
    # The dynamo exporter changes what it's given.
    torch.onnx.export(copy.deepcopy(network), _examples(chosen, samples), str(path), **more)
    model = onnx.load(path)  # with its numbers, that the dynamo exporter may have put beside it
    onnx.save(model, path)
    path.with_name(f"{path.name}.data").unlink(missing_ok=True)
    return path


def _onnx_of_keras(network: Any, path: Path, opset: int) -> Path:
    import tensorflow as tf
    import tf2onnx

    signature = [tf.TensorSpec(item.shape, item.dtype, name=item.name) for item in network.inputs]
    tf2onnx.convert.from_keras(network, signature, opset=opset, output_path=str(path))
    return path


def _with_batch_of_one(network: Any) -> Any:
    """Loops over time only become operators of TFLite where the batch is known."""
    import keras

    given = [keras.Input(batch_shape=(1, *item.shape[1:]), name=item.name) for item in network.inputs]
    return keras.Model(given, network(given))


def _tflite_of_keras(network: Any, samples: list[Array], path: Path, *, int8: bool) -> Path:
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_keras_model(network)
    if int8:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: (
            [array[place : place + 1] for array in samples] for place in range(min(_CALIBRATION, len(samples[0])))
        )
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    path.write_bytes(converter.convert())
    return path


# --- tools ------------------------------------------------------------------------------------------------


def _onnxsim(model: onnx.ModelProto, _: Path) -> onnx.ModelProto:
    import onnxsim

    return onnxsim.simplify(model)[0]


def _onnxslim(model: onnx.ModelProto, _: Path) -> onnx.ModelProto:
    import onnxslim

    return onnxslim.slim(model)


def _runtime(model: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath, options.log_severity_level = str(path), 3
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(path)


TOOLS: dict[str, Callable[[onnx.ModelProto, Path], onnx.ModelProto]] = {
    "onnxsim": _onnxsim,
    "onnxslim": _onnxslim,
    "runtime": _runtime,
}
"""What people run over an ONNX file."""
