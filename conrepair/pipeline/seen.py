"""What a look at models comes to."""

from __future__ import annotations

from dataclasses import dataclass

from conrepair.evaluate.compare import Comparison
from conrepair.pipeline.evaluation import Execution
from conrepair.pipeline.subject import Subject
from conrepair.report.result import Row

__all__ = ["Looked"]


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What models were seen to do.

    Attributes:
        subjects: The models, with what was found out about them.
        executed: What ran.
        rows: One for each of these, with the layers at fault where that was asked.
        pairs: Comparisons of each source's runs with one another.
        notes: What a person should know.
    """

    subjects: tuple[Subject, ...]
    executed: tuple[Execution, ...]
    rows: tuple[Row, ...]
    pairs: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()
