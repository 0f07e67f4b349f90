"""What was localized, and on what, and what to call joined layers: what a report needs beside the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conrepair.frameworks.model import Model
from conrepair.localization.result import Localization, LocatedFault
from conrepair.report.result import AuditResult, Row


@dataclass(frozen=True, kw_only=True)
class About:
    """The circumstances of a localization.

    Attributes:
        source: The model that is right.
        target: The model in question; where that's a build, what was compiled.
        data: What was fed, in words.
        whole: Whether outputs were compared on all inputs; where layers say enough, they aren't.
    """

    source: Model
    target: Model
    data: str = ""
    whole: bool = True


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
    compared, data = row.localized.steps[place].compared, result.datasets.get(row.reference, "")
    return About(source=compared.source, target=compared.target, data=data, whole=row.comparison is not None)


FUSED = 48
"""Letters that a name has at most which is told as it is, where the source has another one."""

_MOST = 100  # faults, the guiltiest first: sentences name no more


def names_of_fault(fault: LocatedFault) -> Mapping[str, str]:
    """The source's name for the first of the target's layers, where that one's is too long to be read."""
    if not fault.source_layers or not fault.target_layers:
        return {}
    ours, theirs = fault.source_layers[0], fault.target_layers[0]
    return {theirs: ours} if len(theirs) > FUSED and len(ours) < len(theirs) else {}


def names_of(result: Localization) -> Mapping[str, str]:
    """The same of the faults that a sentence may name."""
    found: dict[str, str] = {}
    for fault in (*result.faults[:_MOST], *result.latent[:_MOST]):
        found |= names_of_fault(fault)
    return found
