"""What a campaign came to, as a value and in lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.words import shortened
from conrepair.laboratory.fuzz.finding import Finding

_TOLD, _LETTERS = 20, 160
_VERDICTS = {
    "ill-conditioned": "ill-conditioned: far apart, and both as right as may be",
    "unjudged": "not judged: no two implementations agree on what's right",
    "near": "hardly beyond what rounding explains, on the worst inputs that 200 evaluations found",
    "gone": "not seen a second time",
    "double": "doubles of findings",
    "filtered": "left out by functions of one's own",
    "waits": "like others of their round, which were looked into",
    "lost": "lost: looking into them ended a process",
}


@dataclass(frozen=True)
class Summary:
    """What a campaign came to.

    Attributes:
        findings: By name, those that are known behind the others.
        counts: By system and setting, how many networks got which verdict.
        seconds: By system and setting, how long that took.
        refusals: By system and setting, the most frequent words with which networks were refused, and how often.
        seen_in: By finding, how many networks showed it, of those that were looked into.
        suspicions: How many suspicions came to what.
        seed: Of the networks.
        over: Whether all that was asked for was done; False where time was up.
    """

    findings: tuple[Finding, ...]
    counts: Mapping[str, Mapping[str, int]]
    seconds: Mapping[str, float]
    refusals: Mapping[str, Sequence[tuple[str, int]]]
    seen_in: Mapping[str, int]
    suspicions: Mapping[str, int]
    seed: int
    over: bool

    @property
    def fresh(self) -> tuple[Finding, ...]:
        """Findings that aren't known."""
        return tuple(item for item in self.findings if not item.known)

    @property
    def exit_code(self) -> int:
        """1 where something was found that isn't known; 4 where the time was up before anything was tried."""
        if self._untried:
            return int(ExitCode.EXECUTION)
        return int(ExitCode.DIFFERENT if self.fresh else ExitCode.EQUIVALENT)

    @property
    def _untried(self) -> bool:
        """Whether nobody knows anything: time was up while networks were made."""
        return (
            not self.over
            and not self.findings
            and not any(any(verdicts.values()) for verdicts in self.counts.values())
        )

    def lines(self, where: str) -> Iterator[str]:
        """What a terminal shows.

        Args:
            where: The campaign's folder.
        """
        known = len(self.findings) - len(self.fresh)
        yield f"{where}: {len(self.fresh)} findings" + (f", and {known} that are known" if known else "")
        for finding in self.fresh[:_TOLD]:
            yield f"  {finding.title}"
            yield f"    {shortened(finding.suspicion.message, _LETTERS)}"
        if len(self.fresh) > _TOLD:
            yield f"  and {len(self.fresh) - _TOLD} more (findings.html)"
        for name, verdicts in self.counts.items():
            told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
            yield f"{name}: {told}, in {self.seconds.get(name, 0.0):.1f} s"
        for verdict, count in self.suspicions.items():
            if words := _VERDICTS.get(verdict):
                yield f"suspicions {words}: {count}"
        if self._untried:
            yield "nothing was tried: time was up while networks were made. Give more (--seconds)"
        elif not self.over:
            yield "time was up: the same command continues"
