"""Suffixes of model files."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["BY_SUFFIX"]

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
