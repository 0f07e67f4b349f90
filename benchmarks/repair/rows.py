"""What became of a case of repair."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.common.cases import INTENDED
from benchmarks.common.rows import CaseRow
from benchmarks.repair.scoring import Score, score
from conrepair.verdicts.evaluate.verdict import Verdict

__all__ = ["Row"]


@dataclass(frozen=True)
class Row(CaseRow):
    """See `CaseRow`; a repair that failed leaves the target as it was."""

    @property
    def counts(self) -> bool:
        """Whether a repair was asked for, and nothing is wrong but what was injected."""
        return self.status in {"measured", "failed"} and self.case.group != INTENDED and not self.off

    @property
    def agrees(self) -> bool | None:
        """The same; and repair ends well where nothing is left, which `compare` says of what was delivered, too."""
        agrees = super().agrees
        if not agrees or self.verdicts["compare"] == "right":
            return agrees
        well = self.result["exit"] == 0
        delivered = self.result.get("delivered")
        if delivered is not None and Verdict(delivered).is_right != well:
            return False
        return not well or self.score.outcome == "repaired"

    @property
    def score(self) -> Score:
        """What was measured anew says it."""
        if self.status != "measured":
            return Score("failed", honest=True)
        return score(self.result, faulty=bool(self.case.count))
