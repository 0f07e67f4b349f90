"""What was localized, and on what: what a report needs beside the result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from conrepair.frameworks.model import Model
from conrepair.report.result import AuditResult, Row

__all__ = ["About", "about_step", "has_overlay"]


@dataclass(frozen=True, kw_only=True)
class About:
    """The circumstances of a localization.

    Attributes:
        source: The model that is right.
        target: The model in question; where that's a build, what was compiled.
        data: What was fed, in words.
    """

    source: Model
    target: Model
    data: str = ""


def has_overlay(model: Model) -> bool:
    """Whether Model Explorer opens a model, so that there are colours for it."""
    return model.framework in {"onnx", "tflite"} or (model.framework == "torch" and Path(model.path).suffix == ".pt2")


def about_step(row: Row, result: AuditResult, place: int = -1) -> About:
    """The circumstances of a localization: what was compared, and on what.

    Args:
        row: Of the target.
        result: The run that it belongs to.
        place: Of the step; default: the last one.
    """
    compared = row.localized.steps[place].compared
    return About(source=compared.source, target=compared.target, data=result.datasets.get(row.reference, ""))
