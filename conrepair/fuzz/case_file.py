"""A case's network as the file that systems are given."""

from __future__ import annotations

from pathlib import Path

from conrepair.cases.case import Case
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Model

__all__ = ["case_file"]


def case_file(case: Case, folder: Path) -> Model:
    """Write a case's network.

    Args:
        case: Which.
        folder: Exists.
    """
    path = folder / "model.onnx"
    path.write_bytes(case.network)
    return Model("onnx", str(path), model_sha256(path))
