"""What PyTorch works out anew for every file that it reads or exports, worked out once: it's the same each time."""

from __future__ import annotations

import copy
import functools
import sys
import typing
from types import SimpleNamespace
from typing import Any

__all__ = ["remember"]


def remember() -> None:
    """Remember what fields exported programs have, and which functions of ONNX stand for operators.

    Modules that aren't imported yet are left alone.
    """
    reading = sys.modules.get("torch._export.serde.serialize")
    if reading is not None and reading.typing is typing:
        hints = functools.cache(functools.partial(typing.get_type_hints, globalns=vars(reading.schema)))
        reading.typing = SimpleNamespace(**vars(typing) | {"get_type_hints": lambda one, **_: hints(one)})
    exporting = sys.modules.get("torch.onnx._internal.exporter._registration")
    if exporting is not None and not hasattr(exporting.ONNXRegistry, "filled"):
        exporting.ONNXRegistry.filled = functools.cache(exporting.ONNXRegistry.from_torchlib)
        exporting.ONNXRegistry.from_torchlib = classmethod(_copied)


def _copied(registry: Any, **version: int) -> Any:
    """A registry that an export can add to."""
    own = copy.copy(registry.filled(**version))
    own.functions = {target: list(functions) for target, functions in own.functions.items()}
    return own
