"""Two models that were looked into, for whoever goes on from there: a repair of the target."""

from __future__ import annotations

from dataclasses import dataclass, replace

from conrepair.localization.fed_model import FedModel
from conrepair.localization.localize import Found
from conrepair.localization.opening import OpenedNetwork
from conrepair.localization.options import Options
from conrepair.localization.reference import Reference

__all__ = ["Looked"]


@dataclass(frozen=True)
class Looked:
    """What was opened, and what it came to.

    Attributes:
        subjects: The source and the target.
        options: By which.
        opened: Both.
        reference: The source, with what it computes of the first batch.
        found: Of the target.
    """

    subjects: tuple[FedModel, FedModel]
    options: Options
    opened: tuple[OpenedNetwork, OpenedNetwork]
    reference: Reference
    found: Found

    def is_of(self, source: FedModel, target: FedModel, options: Options) -> bool:
        """Whether it's of these; photos are looked at only where recipes are searched.

        Args:
            source: The model that is right.
            target: The model in question.
            options: Samples, margins, intent.
        """
        ours = [replace(subject, photos=()) for subject in self.subjects]
        return options == self.options and ours == [replace(subject, photos=()) for subject in (source, target)]
