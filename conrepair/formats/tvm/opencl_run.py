"""Follow the plans of `opencl_kernels` with pyopencl, on any OpenCL device."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.formats.tvm.opencl_bridge import PLANS, PROGRAM
from conrepair.ground.runtime.errors import DeviceError
from conrepair.ground.runtime.libraries import missing_text

SETTING = "POCL_LLVM_CPU_NAME"
_UNKNOWN = b"generic"
_VERSION = "PoCL 3.0"
_STRUCT = 1024  # bytes of the description in which the name is looked for; it's at 640
_POINTER = ctypes.sizeof(ctypes.c_void_p)
_LONGEST = 64
# As PoCL 3.0 chooses its library of functions, whose vectors must be passed as kernels pass theirs.
_NAMES = (("avx512f", "skylake-avx512"), ("avx2", "haswell"), ("avx", "sandybridge"), ("sse4_1", "penryn"))


def _is_unknown_processor(text: str) -> bool:
    """Whether a compiler's output says that the processor's name means nothing to it."""
    return "unknown target CPU" in text


def processor() -> str:
    """A name that LLVM has known for long, of a processor that this one can stand for; the user's, where it's set."""
    flags: set[str] = set()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        flags = set(next((line for line in lines if line.startswith("flags")), "").split())
    return os.environ.get(SETTING) or next((name for flag, name in _NAMES if flag in flags), "x86-64")


def name_processor(device: Any) -> bool:
    """Have PoCL 3.0 compile for `processor()` from now on.

    Args:
        device: Of pyopencl.

    Returns:
        Whether that was possible: only where the description is what it's known to be.
    """
    if _VERSION not in device.platform.version:
        return False
    place = _place_of_pocl(int(device.int_ptr))
    if place is None:
        return False
    library = ctypes.CDLL(None)
    library.strdup.restype = ctypes.c_void_p  # PoCL's to free
    ctypes.c_void_p.from_address(place).value = library.strdup(processor().encode())
    return True


def _place_of_pocl(address: int) -> int | None:
    """Where the pointer to the name is, behind that to the triple; read without touching what isn't there."""
    with contextlib.suppress(OSError), Path("/proc/self/mem").open("rb", buffering=0) as memory:
        fields = os.pread(memory.fileno(), _STRUCT, address)
        texts = [
            _text(memory.fileno(), fields[place : place + _POINTER]) for place in range(0, len(fields), _POINTER)
        ]
        for number, (triple, name) in enumerate(itertools.pairwise(texts), 1):
            if b"-linux-" in triple and name == _UNKNOWN:
                return address + number * _POINTER
    return None


def _text(memory: int, pointer: bytes) -> bytes:
    """What a pointer points to, as a string of C; empty where it doesn't."""
    with contextlib.suppress(OSError, OverflowError):
        text, end, _ = os.pread(memory, _LONGEST, int.from_bytes(pointer, "little")).partition(b"\0")
        return text if end else b""
    return b""


# Its caches are databases in the user's folders, which confined workers can't write. Read when pyopencl is imported.
os.environ.setdefault("PYOPENCL_NO_CACHE", "1")

_TRIVIAL = "__kernel void nothing(__global float *values) { values[0] = 1.0f; }"


@functools.cache
def find_device() -> Any:
    """The OpenCL device to run on: the first GPU, else the first of any kind, that can compile a kernel.

    Raises:
        DeviceError: if there's none, or no pyopencl.
    """
    try:
        import pyopencl

        devices = [device for platform in pyopencl.get_platforms() for device in platform.get_devices()]
    except ImportError as error:
        raise DeviceError(missing_text("pyopencl")) from error
    except pyopencl.Error as error:  # no platform is an error of the loader's
        devices, reason = [], f": {error}"
    else:
        reason = ""
    if not devices:
        raise DeviceError(
            f"no OpenCL device{reason}, so nothing was built. Install a driver, or pyopencl[pocl] for the CPU."
        )
    refused = []
    for device in sorted(devices, key=lambda device: not device.type & pyopencl.device_type.GPU):
        problem = _problem(device)
        if _is_unknown_processor(problem) and name_processor(device):
            problem = _problem(device)
        if not problem:
            return device
        setting = f" ({SETTING}={processor()} tells newer PoCL another one)" if _is_unknown_processor(problem) else ""
        refused.append(f"{device.name}: {problem}{setting}")
    raise DeviceError(
        f"the drivers of all OpenCL devices here fail to compile an empty kernel ({'; '.join(refused)}), so nothing "
        "was built. Install another driver."
    )


def _problem(device: Any) -> str:
    """Why a device can't compile a kernel; empty where it can."""
    import pyopencl

    try:
        pyopencl.Program(pyopencl.Context([device]), _TRIVIAL).build()
    except (pyopencl.Error, RuntimeError) as error:
        return _reason(str(error))
    return ""


def _reason(text: str) -> str:
    """The line of a compiler's output that says what's wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("error")), lines[0] if lines else "no reason given")


def register_kernels(folder: Path) -> None:
    """Make the functions that a build calls out to: TVM finds them by name.

    Args:
        folder: Of the build.

    Raises:
        DeviceError: if there's no OpenCL device.
        pyopencl.Error: if the device refuses the program.
    """
    import pyopencl
    import tvm

    context = pyopencl.Context([find_device()])
    queue = pyopencl.CommandQueue(context)
    content = json.loads((folder / PLANS).read_text(encoding="utf-8"))
    program = pyopencl.Program(context, (folder / PROGRAM).read_text(encoding="utf-8")).build()
    for name, plan in content["functions"].items():
        function = _function(context, queue, program, plan)
        tvm.register_global_func(content["prefix"] + name, function, override=True)


def _function(context: Any, queue: Any, program: Any, plan: dict[str, Any]) -> Callable[..., None]:
    import pyopencl as cl

    kernels = [cl.Kernel(program, launch["kernel"]) for launch in plan["launches"]]
    flags = cl.mem_flags

    def run(*tensors: Any) -> None:
        """The last tensors are the results, the others are read."""
        arrays = [np.from_dlpack(tensor) for tensor in tensors]
        read, results = arrays[: len(arrays) - plan["results"]], arrays[len(arrays) - plan["results"] :]
        buffers = [cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=_bytes(item)) for item in read]
        buffers += [cl.Buffer(context, flags.READ_WRITE, size=max(1, item.nbytes)) for item in results]
        scratch = [cl.Buffer(context, flags.READ_WRITE, size=max(1, size)) for size in plan["scratch"]]
        for kernel, launch in zip(kernels, plan["launches"], strict=True):
            places = [_place(argument, buffers, scratch) for argument in launch["arguments"]]
            threads = tuple(launch["threads"])
            sizes = tuple(groups * count for groups, count in zip(launch["groups"], threads, strict=True))
            kernel(queue, sizes, threads, *places)
        for array, buffer in zip(results, buffers[len(read) :], strict=True):
            if array.nbytes:
                cl.enqueue_copy(queue, _bytes(array), buffer)
        queue.finish()

    return run


def _place(argument: dict[str, Any], buffers: list[Any], scratch: list[Any]) -> Any:
    if "buffer" in argument:
        return buffers[argument["buffer"]]
    if "scratch" in argument:
        return scratch[argument["scratch"]]
    return np.dtype(argument["dtype"]).type(argument["value"])


def _bytes(array: Any) -> Any:
    """An array's memory as bytes; an empty one has one of somebody else's, as OpenCL has no empty buffers."""
    return np.zeros(1, np.uint8) if not array.nbytes else array.reshape(-1).view(np.uint8)
