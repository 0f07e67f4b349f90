"""Load exported PyTorch programs (.pt2) without running code that they might hold.

`torch.export.load` falls back to full unpickling for example inputs, for some weights and for opaque objects, so a
file from a stranger could run code. Here all of these are restricted to tensors and plain values.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch


def load_exported(path: Path, *, trust: bool = False) -> torch.export.ExportedProgram:
    """Load a .pt2 file.

    Args:
        path: The file.
        trust: Whether pickled objects in it may be rebuilt, which can run code.

    Raises:
        pickle.UnpicklingError: if it holds more than tensors and plain values, and isn't trusted.
        Exception: whatever torch raises for a damaged file.
    """
    with contextlib.nullcontext() if trust else _tensors_only():
        return torch.export.load(path)


@contextlib.contextmanager
def _tensors_only() -> Iterator[None]:
    """Make `torch.load` refuse objects, and plain unpickling fail, while the block runs."""
    archive: Any = importlib.import_module("torch.export.pt2_archive._package")
    full_load, pickle_module = torch.load, archive.pickle

    def load(*arguments: Any, **options: Any) -> Any:
        return full_load(*arguments, **(options | {"weights_only": True}))

    torch.load = load
    archive.pickle = SimpleNamespace(**vars(pickle_module) | {"loads": _refuse})
    try:
        yield
    finally:
        torch.load, archive.pickle = full_load, pickle_module


def _refuse(*_: Any, **__: Any) -> Any:
    import pickle

    raise pickle.UnpicklingError("the file holds a pickled object; weights_only loading refuses it")
