"""ONNX models as they're deployed: ONNX Runtime with graph optimizations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from conrepair.formats.backends.base import CUDA, Backend, Switch, named_rightly, no_device
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.formats.onnx.load.optimizers import OPTIMIZERS

_CUDA, _PROCESSOR = "CUDAExecutionProvider", "CPUExecutionProvider"
_TF32 = "tf32"
_LINE = "onnxruntime.InferenceSession(path, {})"


def cuda_providers(*, tf32: bool) -> list[Any]:
    """Who runs operators on a GPU, and those that it has no kernels for on the processor.

    Args:
        tf32: Whether products may be computed in TF32, which is ONNX Runtime's default.
    """
    return [(_CUDA, {"use_tf32": int(tf32)}), _PROCESSOR]


class OnnxRuntimeBackend(Backend):
    """See `conrepair.formats.backends.base.Backend`."""

    settings = MappingProxyType({"disabled": {"optimization": "disabled"}, "": {}})

    def refuses(self, model: Model) -> str | None:
        """ONNX Runtime runs ONNX."""
        if model.framework == "onnx":
            return None
        return f"ONNX Runtime doesn't run {model.framework} models"

    def check(self, options: Mapping[str, Any]) -> None:
        """Optimizers must exist: ONNX Runtime ignores a wrong name without a word."""
        named_rightly("disabled_optimizers", options.get("disabled_optimizers", ()), OPTIMIZERS)

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        """ONNX alone, of all formats."""
        return "onnx"

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Load with the level of option `optimization` (default: all), `threads`, and no `disabled_optimizers`."""
        from conrepair.formats.onnx.load.framework import OnnxRunnable

        self.check(options)
        level, off = str(options.get("optimization", "all")), tuple(options.get("disabled_optimizers", ()))
        if options.get("device") != CUDA:
            return OnnxRunnable(model, level, off, threads=int(options.get("threads", 0)))
        import onnxruntime

        if _CUDA not in onnxruntime.get_available_providers():
            raise no_device("CUDA", "ONNX Runtime", f"it's built without {_CUDA}; the package onnxruntime-gpu has it")
        onnxruntime.preload_dlls()  # CUDA's libraries, where they come as packages of Python
        found = OnnxRunnable(model, level, off, cuda_providers(tf32=options.get("tf32", True)))
        if _CUDA not in found.providers:  # it takes the processor, with a word on standard error
            raise no_device("CUDA", "ONNX Runtime", f"{_CUDA} doesn't start")
        return found

    def switches(self, options: Mapping[str, Any], load: Callable[[Mapping[str, Any]], Runnable]) -> list[Switch]:
        """Optimizations by name, whatever the level: which of them a network gives something to do, nobody says."""
        off = options.get("disabled_optimizers", ())
        found = [
            Switch(name, "pass", _LINE.format(f"disabled_optimizers=[{name!r}]"))
            for name in OPTIMIZERS
            if name not in off and options.get("optimization", "all") != "disabled"
        ]
        if options.get("device") == CUDA and options.get("tf32", True):
            found.append(Switch(_TF32, "arithmetic", _LINE.format(f"providers={cuda_providers(tf32=False)}")))
        return found

    def without(self, options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """By `disabled_optimizers`, and `tf32`."""
        off = [*options.get("disabled_optimizers", ()), *(name for name in names if name != _TF32)]
        return {**options, "disabled_optimizers": off, **({_TF32: False} if _TF32 in names else {})}


BACKEND = OnnxRuntimeBackend()
