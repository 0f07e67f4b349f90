"""What a campaign came to, as a value and in lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.words import counted, shortened
from conrepair_lab.fuzz.finding import Finding

_TOLD, _LETTERS = 20, 160
_VERDICTS = {
    "ill-conditioned": "ill-conditioned: outputs are far apart, within rounding error",
    "unjudged": "not judged: no two implementations agree on the right output",
    "near": "dropped: hardly beyond rounding error on the worst of 200 inputs that were searched",
    "gone": "not seen a second time",
    "double": "of a finding that is listed already",
    "filtered": "left out by your own functions",
    "waits": "put off: another one of the same round was like it",
    "lost": "lost: looking into it ended the process",
}
_COUNTED = {"unjudged": "not judged", "alike": "like another system"}


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
        screened: By system and setting, how many changed patterns were compared with what's computed without
            optimizations.
        never: By system and setting, optimizations that did nothing in any pattern, where that was asked.
        waiting: How many suspicions nobody has looked into.
    """

    findings: tuple[Finding, ...]
    counts: Mapping[str, Mapping[str, int]]
    seconds: Mapping[str, float]
    refusals: Mapping[str, Sequence[tuple[str, int]]]
    seen_in: Mapping[str, int]
    suspicions: Mapping[str, int]
    seed: int
    over: bool
    screened: Mapping[str, int] = field(default_factory=dict)
    never: Mapping[str, Sequence[str]] = field(default_factory=dict)
    waiting: int = 0

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
            and not any(any(verdicts.values()) for verdicts in (self.screened, *self.counts.values()))
        )

    @property
    def still(self) -> str:
        """How many suspicions nobody has looked into, as the end of a sentence."""
        return f", and {counted(self.waiting, 'suspicion')} not looked into" if self.waiting else ""

    @property
    def dropped(self) -> dict[str, int]:
        """How many suspicions made no finding, by the reason in words."""
        return {words: self.suspicions[verdict] for verdict, words in _VERDICTS.items() if verdict in self.suspicions}

    def lines(self, where: str) -> Iterator[str]:
        """What a terminal shows.

        Args:
            where: The campaign's folder.
        """
        known = len(self.findings) - len(self.fresh)
        yield f"{where}: {counted(len(self.fresh), 'new finding')}" + (f", and {known} known" if known else "")
        for finding in self.fresh[:_TOLD]:
            yield f"  {finding.title}"
            yield f"    {shortened(finding.suspicion.message, _LETTERS)}"
        if len(self.fresh) > _TOLD:
            yield f"  and {len(self.fresh) - _TOLD} more (findings.html)"
        for name, verdicts in self.counts.items():
            told = ", ".join(f"{count} {_COUNTED.get(verdict, verdict)}" for verdict, count in verdicts.items())
            tried = counted(sum(verdicts.values()), "network")
            yield f"{name}: {tried} in {self.seconds.get(name, 0.0):.1f} s: {told or 'none tried'}"
        for name, count in self.screened.items():
            yield f"{name}: {counted(count, 'changed pattern')} compared with results without optimizations"
            if names := self.never.get(name):
                yield f"  optimizations that changed none of the patterns: {', '.join(names)}"
        yield from (f"{counted(count, 'suspicion')} {words}" for words, count in self.dropped.items())
        if self._untried:
            yield "nothing was tried: the time was up while networks were made. Give more time (--seconds)"
        elif not self.over:
            yield f"the time was up before all were tried{self.still}: the same command continues"
