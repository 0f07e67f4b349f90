"""What `doctor` runs in a worker: import a library, use it once, say its version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def probe(folder: Path, name: str) -> str:
    """Try one library.

    Args:
        folder: Not used.
        name: A key of `_PROBES`.

    Returns:
        Its version, and what was seen.
    """
    return _PROBES[name]()


def _torch() -> str:
    import torch

    result = float(torch.ones(3).sum())
    return f"{torch.__version__}, {torch.get_num_threads()} threads (1+1+1={result:g})"


def _torchvision() -> str:
    from conrepair.ground.runtime.torchvision import import_torchvision

    return str(import_torchvision().__version__)


def _tensorflow() -> str:
    import tensorflow as tf

    devices = ", ".join(device.device_type for device in tf.config.list_physical_devices())
    return f"{tf.__version__}, devices: {devices}"


def _keras() -> str:
    import keras

    return f"{keras.__version__} on {keras.backend.backend()}"


def _tflite() -> str:
    import importlib.metadata

    from ai_edge_litert.interpreter import Interpreter

    return f"ai-edge-litert {importlib.metadata.version('ai-edge-litert')} ({Interpreter.__name__})"


def _onnx() -> str:
    import onnx

    return f"{onnx.__version__}, writes IR version {onnx.IR_VERSION} and opset {onnx.defs.onnx_opset_version()}"


def _onnxruntime() -> str:
    import onnx
    import onnxruntime

    from conrepair.formats.onnx.load.readable import newest_read

    version, opset = newest_read()
    newer = (onnx.IR_VERSION, onnx.defs.onnx_opset_version()) != (version, opset)
    lowered = (
        " (what onnx writes by default is newer: conrepair runs it lowered, where it uses nothing newer)" * newer
    )
    providers = ", ".join(onnxruntime.get_available_providers())
    return f"{onnxruntime.__version__}, reads IR version {version} and opset {opset}{lowered}; {providers}"


def _tvm() -> str:
    import tvm

    return str(tvm.__version__)


def _opencl() -> str:
    from conrepair.formats.tvm.opencl_run import find_device

    return str(find_device().name)


_PROBES: dict[str, Callable[[], str]] = {
    "torch": _torch,
    "torchvision": _torchvision,
    "tensorflow": _tensorflow,
    "keras": _keras,
    "tflite": _tflite,
    "onnx": _onnx,
    "onnxruntime": _onnxruntime,
    "tvm": _tvm,
    "opencl": _opencl,
}
