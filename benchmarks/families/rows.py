"""What became of a case."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.common.rows import FAILED, CaseRow
from benchmarks.common.target import AGREE
from benchmarks.families.cases import FAULTY
from benchmarks.localization.scoring import Score, score

__all__ = ["FamilyRow"]

_AS_CONVERTED = 2.0  # times the error of the target without the fault
_ROUNDING = 1e-5


@dataclass(frozen=True)
class FamilyRow(CaseRow):
    """See `CaseRow`."""

    @property
    def faulty(self) -> bool:
        """Whether the target has a fault."""
        return self.case.group == FAULTY

    @property
    def counts(self) -> bool:
        """Whether the verbs were asked."""
        return self.status in {"measured", FAILED}

    @property
    def passed(self) -> bool:
        """Whether a verb calls a faulty target right."""
        return self.counts and self.faulty and "right" in self.verdicts.values()

    @property
    def accused(self) -> bool:
        """Whether a verb calls a right target faulty, or changes it."""
        return self.counts and not self.faulty and ("faulty" in self.verdicts.values() or bool(self._edits))

    @property
    def doubted(self) -> bool:
        """Whether a verb doesn't know."""
        return self.counts and "undecided" in self.verdicts.values()

    @property
    def failed(self) -> bool:
        """Whether a verb ended with an error."""
        return self.counts and (self.status == FAILED or FAILED in self.verdicts.values())

    @property
    def _edits(self) -> list[str]:
        return list(self.result.get("repair", {}).get("edits", ()))

    @property
    def score(self) -> Score | None:
        """Of what localization names."""
        if not self.faulty or self.status != "measured":
            return None
        return score(self.result["injected"], self.result.get("localize", {}).get("found", []))

    @property
    def named(self) -> bool:
        """Whether the first layer that's named is one at fault."""
        return bool(self.score and self.score.first)

    @property
    def repaired(self) -> bool:
        """Whether the file that was written answers as the source does, on samples that no verb has seen."""
        return self._after <= max(AGREE, _AS_CONVERTED * self.result.get("rounding", 0.0))

    @property
    def to_rounding(self) -> bool:
        """Whether as well as the target without the fault."""
        return self._after <= max(_ROUNDING, _AS_CONVERTED * self.result.get("rounding", 0.0))

    @property
    def _after(self) -> float:
        after = self.result.get("after")
        return float("inf") if after is None else float(after)

    @property
    def oversold(self) -> bool:
        """Whether the exit code of repair says that all is well where it isn't."""
        asked = self.result.get("repair", {}).get("exit")
        return self.faulty and self.status == "measured" and asked == 0 and not self.repaired

    @property
    def seconds(self) -> float:
        """Of all verbs."""
        return float(sum(self.result.get("seconds", {}).values()))

    @property
    def badness(self) -> int:
        """How bad it is, to list the worst first."""
        marks = (
            (8, self.passed or self.accused),
            (7, self.oversold),
            (6, self.agrees is False),
            (5, self.failed),
            (4, self.doubted),
            (3, self.faulty and not self.named),
            (2, self.faulty and not self.repaired),
            (1, self.faulty and not (self.score and self.score.kind)),
        )
        return sum(1 << mark for mark, holds in marks if self.counts and holds)
