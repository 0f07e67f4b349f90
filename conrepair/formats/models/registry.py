"""Find a framework by the name of its format; import it only then."""

from __future__ import annotations

import importlib
from typing import Any

from conrepair.formats.models.formats import FORMATS, RECORDED, Format
from conrepair.formats.models.model import Description, Model

_FROM_CHANNELS_LAST = frozenset({"tf2onnx", "keras2onnx", "tflite2onnx"})


def framework(name: str) -> Format:
    """Return the framework of that name; ours are `conrepair.formats.{name}.load.framework`.

    Args:
        name: Of a format, or `RECORDED`, which has no models to load.
    """
    if name == RECORDED:
        recorded: Any = importlib.import_module("conrepair.formats.models.recorded")
        found: Format = recorded.FRAMEWORK
        return found
    try:
        return FORMATS[name]
    except KeyError:
        raise ValueError(f"unknown framework {name!r}; known: {', '.join(FORMATS)}") from None


def describe(model: Model) -> Description:
    """Say what a model consists of; its framework loads it for that.

    Args:
        model: Of any format.

    Raises:
        ModelLoadError: if it can't be loaded.
    """
    return framework(model.framework).describe(model)


def channels_of(name: str, producer: str = "") -> str:
    """Where a format has the channels of a picture: "first" or "last", "kept" as they lay, "" where nothing says it.

    Args:
        name: Of a format, or `RECORDED`.
        producer: Of an ONNX file: converters from formats that have them last keep inputs and outputs as they lie,
            unless they're asked for others; of one that nobody has signed it isn't known.
    """
    if name == RECORDED:
        return ""
    if name == "onnx" and producer.partition(" ")[0] in {"", *_FROM_CHANNELS_LAST}:
        return "kept"
    return FORMATS[name].channels
