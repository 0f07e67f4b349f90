"""Formats of models: their names, and the suffixes of their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from conrepair.ground.runtime.words import meant

RECORDED = "recorded"
"""In place of a framework: outputs that were computed elsewhere, and no model."""

FormatName = Literal["torch", "keras", "tensorflow", "tflite", "onnx"]
_ALIASES = {"pytorch": "torch", "tf": "tensorflow", "savedmodel": "tensorflow"}

BY_SUFFIX: Mapping[str, str] = {
    ".onnx": "onnx",
    ".pt2": "torch",
    ".pt": "torch",
    ".pth": "torch",
    ".ts": "torch",
    ".keras": "keras",
    ".h5": "keras",
    ".hdf5": "keras",
    ".pb": "tensorflow",
    ".tflite": "tflite",
    ".lite": "tflite",
}
"""The framework that each belongs to."""


def framework_needs(framework: str) -> frozenset[str]:
    """The libraries that a job imports for a framework, so that a worker that has them gets it.

    Keras stands on TensorFlow.
    """
    return frozenset() if framework == RECORDED else frozenset({"tensorflow" if framework == "keras" else framework})


def format_name(text: str) -> str:
    """The name of a format as a person may write it: in any case, or by an alias."""
    return _ALIASES.get(text.lower(), text.lower())


def unknown_format(name: str) -> str | None:
    """Why a format's name isn't one, with the closest as a suggestion; None where it is.

    Args:
        name: From `format_name`.
    """
    known = get_args(FormatName)
    if name in known:
        return None
    hint = meant(name, [*known, *_ALIASES], f"known: {', '.join(known)}")
    return f"unknown format '{name}'{hint}"


def other_formats(texts: Iterable[str]) -> tuple[str, ...]:
    """Formats that an ONNX model is converted to, each once.

    Args:
        texts: As a person writes them.

    Raises:
        ValueError: if one is unknown.
    """
    names = tuple(dict.fromkeys(map(format_name, texts)))
    for name in names:
        if problem := unknown_format(name):
            raise ValueError(problem)
    return tuple(name for name in names if name != "onnx")
