"""Tell the format of a model from its suffix and first bytes, without importing any framework."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

from conrepair.frameworks.formats import BY_SUFFIX
from conrepair.runtime.errors import ModelLoadError
from conrepair.runtime.path_text import path_problem

__all__ = ["FORMATS", "detect_framework", "detect_suffix", "hides_inputs", "is_torchscript"]

FORMATS = (
    ".onnx, .pt2 (torch.export), TorchScript (.pt, .pth, .ts), .keras, .h5, SavedModel folder, "
    "frozen graph (.pb), .tflite"
)


def detect_framework(path: Path) -> str:
    """Name the framework that a model file or folder belongs to.

    Args:
        path: A file, or a SavedModel folder.

    Raises:
        ModelLoadError: if it doesn't exist, is empty, or isn't recognised.
    """
    if problem := path_problem(str(path)):
        raise ModelLoadError(problem)
    if not path.exists():
        raise ModelLoadError(f"{path}: no such model file. Check the path.")
    if path.is_dir():
        if (path / "saved_model.pb").is_file():
            return "tensorflow"
        raise ModelLoadError(
            f"{path} is a folder without saved_model.pb, so it's no SavedModel. Give the folder that holds "
            "saved_model.pb, or a model file."
        )
    if not path.is_file():
        raise ModelLoadError(f"{path} is a device or a pipe. Copy the model into a file.")
    if path.stat().st_size == 0:
        raise ModelLoadError(f"{path} is empty. Export or copy the model again.")
    framework = BY_SUFFIX.get(path.suffix.lower())
    if framework is None:
        raise ModelLoadError(f"{path}: unknown model format '{path.suffix}'. Known: {FORMATS}.")
    return framework


def detect_suffix(path: Path) -> str:
    """Name the framework whose models have the suffix of `path`.

    Raises:
        KeyError: if no format has it.
    """
    return BY_SUFFIX[path.suffix.lower()]


def is_torchscript(path: Path) -> bool:
    """Whether a .pt/.pth file is a TorchScript archive (and not a pickled state dict, nor a damaged archive)."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any("/code/" in f"/{name}" for name in archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, OverflowError, struct.error):
        return False  # what reads it as a model says why it can't be


def hides_inputs(path: Path) -> bool:
    """Whether a file doesn't say what its inputs are: TorchScript."""
    return path.is_file() and path.suffix != ".pt2" and is_torchscript(path)
