"""What was localized, and how: what a report needs beside the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conrepair.frameworks.model import Model
from conrepair.localization.options import Options
from conrepair.report.result import AuditResult, LocalizedStep, Row

__all__ = ["About", "about_step"]


@dataclass(frozen=True, kw_only=True)
class About:
    """The circumstances of a localization.

    Attributes:
        source: The model that is right.
        target: The model in question; where that's a build, what was compiled.
        options: As they were used.
        versions: Of the libraries that results depend on.
        data: What was fed, in words.
        seed: Of what was drawn; None where nothing was.
        build: Folder of what was compiled of the target and compared; "" where the target itself was.
        build_sha256: Of that folder.
    """

    source: Model
    target: Model
    options: Options
    versions: Mapping[str, str] = field(default_factory=dict)
    data: str = ""
    seed: int | None = None
    build: str = ""
    build_sha256: str = ""


def about_step(step: LocalizedStep, row: Row, result: AuditResult) -> About:
    """The circumstances of a localization: what was compared, and on what.

    Args:
        step: Of the row.
        row: Of the target.
        result: The audit that it belongs to.
    """
    compared = step.compared
    return About(
        source=compared.source,
        target=compared.target,
        options=step.localization.options,
        versions=result.versions,
        data=result.datasets.get(row.reference, ""),
        seed=result.seeds.get(row.reference),
        build=compared.build,
        build_sha256=compared.build_sha256,
    )
