"""What was localized, and how: what a report needs beside the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conrepair.frameworks.model import Model
from conrepair.localize.options import Options

__all__ = ["About"]


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
