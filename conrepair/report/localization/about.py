"""What was localized, and how: what a report needs beside the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conrepair.frameworks.model import Model
from conrepair.localize.options import Options
from conrepair.report.result import AuditResult, Row

__all__ = ["About", "about_row"]


@dataclass(frozen=True)
class About:
    """The circumstances of a localization.

    Attributes:
        source: The model that is right.
        target: The model in question.
        options: As they were used.
        versions: Of the libraries that results depend on.
        data: What was fed, in words.
        seed: Of what was drawn; None where nothing was.
    """

    source: Model
    target: Model
    options: Options
    versions: Mapping[str, str] = field(default_factory=dict)
    data: str = ""
    seed: int | None = None


def about_row(reference: Row, row: Row, result: AuditResult) -> About | None:
    """The circumstances of a row's localization; None where there is none.

    Args:
        reference: Of the source.
        row: Of the target.
        result: The audit that they belong to.
    """
    if row.localization is None or reference.artifact is None or row.artifact is None:
        return None
    seed = result.config.get("dataset", {}).get("synthetic")
    return About(
        reference.artifact,
        row.artifact,
        row.localization.options,
        result.versions,
        result.datasets.get(reference.model, ""),
        seed["seed"] if seed else None,
    )
