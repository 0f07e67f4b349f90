"""TFLite models in the LiteRT interpreter, with XNNPACK as it's deployed, or without."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from conrepair.formats.backends.base import Backend, Switch
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable

_WITHOUT = {"XNNPACK": "builtin", "OptimizedKernels": "reference"}  # what runs instead; the last has neither
_LINE = "Interpreter(path, experimental_op_resolver_type=OpResolverType.{})"


class TfliteBackend(Backend):
    """See `conrepair.formats.backends.base.Backend`."""

    settings = MappingProxyType({"builtin": {"kernels": "builtin"}, "": {}})

    def check(self, options: Mapping[str, Any]) -> None:
        """The configuration's types say all."""

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        """TFLite alone."""
        return "tflite"

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Load with the kernels of option `kernels` (default: delegate), and `threads` (default: one a core)."""
        from conrepair.formats.tflite.load.framework import TfliteRunnable

        kernels, threads = str(options.get("kernels", "delegate")), options.get("threads")
        return TfliteRunnable(model, kernels=kernels, threads=threads)

    def switches(self, options: Mapping[str, Any], load: Callable[[Mapping[str, Any]], Runnable]) -> list[Switch]:
        """The delegate, then the kernels that aren't plain loops."""
        found = [
            Switch("XNNPACK", "option", _LINE.format("BUILTIN_WITHOUT_DEFAULT_DELEGATES")),
            Switch("OptimizedKernels", "arithmetic", _LINE.format("BUILTIN_REF")),
        ]
        return found[("delegate", "builtin", "reference").index(options.get("kernels", "delegate")) :]

    def without(self, options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """By the kernels that run instead; the plain loops have no delegate either."""
        left = [kernels for name, kernels in _WITHOUT.items() if name in names]
        return {**options, "kernels": left[-1]} if left else dict(options)


BACKEND = TfliteBackend()
