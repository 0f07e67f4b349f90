"""Find a framework by name; import it only then."""

from __future__ import annotations

import importlib
from typing import cast

from conrepair.formats.models.formats import RECORDED
from conrepair.formats.models.runnable import Framework

FLOAT64_SECOND_OPINION = frozenset({"torch", "keras"})
"""Frameworks whose second opinion is float64; the others' is another set of float32 kernels."""

_CHANNELS_LAST = frozenset({"keras", "tensorflow", "tflite"})
_FROM_CHANNELS_LAST = frozenset({"tf2onnx", "keras2onnx", "tflite2onnx"})

FRAMEWORKS = ("torch", "keras", "tensorflow", "tflite", "onnx")


def framework(name: str) -> Framework:
    """Return the framework of that name.

    Args:
        name: One of `FRAMEWORKS`, or `RECORDED`, which has no models to load.
    """
    if name not in {*FRAMEWORKS, RECORDED}:
        raise ValueError(f"unknown framework {name!r}; known: {', '.join(FRAMEWORKS)}")
    place = "conrepair.formats.models.recorded" if name == RECORDED else f"conrepair.formats.{name}.load.framework"
    return cast(Framework, importlib.import_module(place).FRAMEWORK)


def channels_of(name: str, producer: str = "") -> str:
    """Where a format has the channels of a picture: "first" or "last", "kept" as they lay, "" where nothing says it.

    Args:
        name: One of `FRAMEWORKS`.
        producer: Of an ONNX file: converters from formats that have them last keep inputs and outputs as they lie,
            unless they're asked for others; of one that nobody has signed it isn't known.
    """
    if name == RECORDED:
        return ""
    if name == "onnx" and producer.partition(" ")[0] in {"", *_FROM_CHANNELS_LAST}:
        return "kept"
    return "last" if name in _CHANNELS_LAST else "first"
