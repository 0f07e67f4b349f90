"""What `doctor` asks in a worker about GPUs: which of them drivers and libraries reach there, and why not."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from conrepair.ground.runtime.gpu_devices import gpu_devices
from conrepair.ground.runtime.words import lines_of

_DRIVERS = ("libcuda.so.1", "nvcuda.dll")
_KINDS = ("cuda", "rocm", "opencl", "vulkan", "metal")
_OWN_PROCESSOR = {"CPUExecutionProvider", "AzureExecutionProvider"}  # the latter asks a service, for whoever named it
_NAME = 256  # bytes

Answer = tuple[str, str]
"""A state of a finding ("works", "missing", "fails") and what was seen."""


def probe_gpu(folder: Path, name: str) -> Answer:
    """Ask one of them.

    Args:
        folder: Receives what has to be a file.
        name: A key of `GPU_PROBES`.
    """
    return GPU_PROBES[name](folder)


def _driver(_: Path) -> Answer:
    """NVIDIA's, by the interface that all libraries start it by."""
    name = _DRIVERS[sys.platform == "win32"]
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return "missing", f"no NVIDIA driver here ({name} isn't found)"
    if code := library.cuInit(0):
        text = ctypes.c_char_p()
        library.cuGetErrorString(code, ctypes.byref(text))
        return "fails", f"cuInit gives {code}: {(text.value or b'unknown').decode()}"
    count = ctypes.c_int()
    library.cuDeviceGetCount(ctypes.byref(count))
    names = []
    for number in range(count.value):
        words = ctypes.create_string_buffer(_NAME)
        library.cuDeviceGetName(words, _NAME, number)
        names.append(words.value.decode(errors="replace"))
    return ("works", ", ".join(names)) if names else ("missing", "the driver has no device")


def _tvm(_: Path) -> Answer:
    import tvm

    reached: list[str] = []
    not_reached: list[str] = []
    for kind in _KINDS:
        if tvm.get_global_func(f"device_api.{kind}", allow_missing=True) is None:
            continue
        device = tvm.device(kind, 0)
        (reached if device.exist else not_reached).append(f"{kind} ({device.device_name})" if device.exist else kind)
    if not reached and not not_reached:
        if broken := list(_broken_runtimes(Path(tvm.__file__).parent / "lib")):
            return "missing", f"what this TVM has for GPUs can't be loaded: {'; '.join(broken)}"
        return "missing", f"this TVM is built for CPUs only: no runtime of {', '.join(_KINDS)}"
    if not reached:
        state = "fails" if gpu_devices() else "missing"
        return state, f"no device of {', '.join(not_reached)} is reached, which this TVM has runtimes of"
    return "works", ", ".join(reached)


def _broken_runtimes(folder: Path) -> Iterator[str]:
    """Why runtimes that lie beside TVM's libraries aren't loaded: TVM says nothing of them."""
    for kind in _KINDS:
        for file in folder.glob(f"*tvm_runtime_{kind}.*"):
            try:
                ctypes.CDLL(str(file))
            except OSError as error:
                yield f"{kind} ({error})"


def _opencl(_: Path) -> Answer:
    import pyopencl

    from conrepair.formats.tvm.opencl_run import find_device

    device = find_device()
    if device.type & pyopencl.device_type.GPU:
        return "works", f"{device.name}, through pyopencl"
    return "missing", f"no GPU among OpenCL's devices; kernels run on {device.name}"


def _torch(_: Path) -> Answer:
    import torch

    if torch.version.cuda is None and torch.version.hip is None:
        return "missing", f"this PyTorch ({torch.__version__}) is built without CUDA and ROCm"
    if not torch.cuda.is_available():
        try:
            torch.zeros(1, device="cuda")
        except (RuntimeError, AssertionError) as error:
            return "missing", lines_of(error)[0]
        return "missing", "no device"
    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    result = float(torch.ones(3, device="cuda").sum())
    return "works", f"{', '.join(names)} (1+1+1={result:g})"


def _onnxruntime(folder: Path) -> Answer:
    import onnx
    import onnxruntime

    providers = [name for name in onnxruntime.get_available_providers() if name not in _OWN_PROCESSOR]
    if not providers:
        return "missing", f"this ONNX Runtime ({onnxruntime.__version__}) is built for CPUs only"
    path = folder / "probe.onnx"
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> probe (float[3] x) => (float[3] y) { y = Add (x, x) }'
    )
    onnx.save(model, path)
    reached: list[str] = []
    not_reached: list[str] = []
    for name in providers:
        try:
            session = onnxruntime.InferenceSession(str(path), providers=[name])
            reason = "" if name in session.get_providers() else "it's left for the processor"
        # What a provider raises is its own.
        except Exception as error:  # noqa: BLE001
            reason = lines_of(error)[0]
        (not_reached if reason else reached).append(f"{name}: {reason}" if reason else name)
    words = "; ".join([*reached, *not_reached])
    return "works" if reached else "missing", words


GPU_PROBES: Mapping[str, Callable[[Path], Answer]] = {
    "driver": _driver,
    "tvm": _tvm,
    "opencl": _opencl,
    "torch": _torch,
    "onnxruntime": _onnxruntime,
}
"""By the name of what reaches for a GPU."""
