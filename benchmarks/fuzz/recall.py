"""How many known bugs of older releases a campaign finds in some minutes.

    python -m benchmarks.fuzz.recall [--seconds N] [--seed N] [--workers N] [--systems NAME,...] [--woven SHARE]
        [--nnsmith-python PYTHON] -o FOLDER

Each release is a system (`ort-all@1.20.1`); its bugs are those of `recall_bugs` that were seen in it. One counts as
found where a finding is of its kind and has its operators, and one more at the most. What the table can't say is
whether a finding of the same operators has the same cause: the findings of each bug are named, to be looked at.

With a Python that has NNSmith the networks are that one's, made in the campaign's time: of 5 operators (its default)
and 10 by turns, without those of a limited domain, with the inputs that it finds for them. All else is as with ours.
What it finds out once (which element types it can export) it has found out before.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fuzz.nnsmith_networks import NNSmithNetworks
from benchmarks.fuzz.recall_bugs import KNOWN, KnownBug
from benchmarks.generate.nnsmith_process import NNSmith
from conrepair_lab.campaigns.fuzz_networks import Source, rounds
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.runs.fuzzing import fuzz
from conrepair_lab.systems.registry import entry

_SYSTEMS = (
    "ort-all@1.20.1",
    "ort-all@1.27.0",
    "tvm-O2@0.25.0",
    "tvm-O2@0.26.0",
    "tvm-O2@0.27.0",
    "convert-onnxoptimizer@0.4.2",
)
_ALIKE = (
    {"numbers", "not finite", "differs", "chance", "layout"},  # memory that nobody wrote may look like any
    {"shape", "type", "outputs", "exception", "crash"},  # how a wrong shape shows depends on what reads it
)
_ALONE, _MANY = 100_000, 100_000
_REDUCTION = 20.0  # seconds


@dataclass(frozen=True)
class Row:
    """A release and how its campaign was asked for.

    Attributes:
        systems: Of the release.
        patterns: How likely they were put in; in words where another generator made the networks.
        tried: Networks that were tried, by all of its systems.
        findings: How many there are.
        found: By known bug, the names of findings.
    """

    systems: str
    patterns: str
    tried: int
    findings: int
    found: dict[str, list[str]]

    @property
    def bugs(self) -> int:
        """Known bugs that were found."""
        return sum(bool(names) for names in self.found.values())


def bugs_of(systems: Sequence[str]) -> list[KnownBug]:
    """Known bugs of the release that systems are of."""
    asked = entry(systems[0])
    distribution = asked.runs.blamed(asked.chosen, {})
    return [bug for bug in KNOWN if bug.distribution in distribution and asked.release in bug.wrong]


def matches(bug: KnownBug, kind: str, operators: Sequence[str]) -> bool:
    """Whether a finding is of a bug's kind and has its operators."""
    alike = next((kinds for kinds in _ALIKE if bug.kind in kinds), {bug.kind})
    return (
        kind in alike and set(bug.operators) <= set(operators) and len(set(operators)) <= len(set(bug.operators)) + 1
    )


def campaign(asked: Fuzz, patterns: str, folder: Path, source: Source = rounds) -> Row:
    """Run one, and hold its findings against what is known."""
    summary = fuzz(asked, folder, quiet=True, source=source)
    found = {
        bug.name: [item.name for item in summary.findings if matches(bug, item.suspicion.kind, item.operators)]
        for bug in bugs_of(asked.systems)
    }
    tried = sum(sum(counts.values()) for counts in summary.counts.values())
    return Row(",".join(asked.systems), patterns, tried, len(summary.findings), found)


def page(rows: Sequence[Row]) -> Iterator[str]:
    """A table of all, and which bugs were found."""
    yield "| release | patterns | networks | findings | known bugs found |"
    yield "|---|---|---|---|---|"
    for row in rows:
        share = f"{row.bugs} of {len(row.found)} ({row.bugs / max(len(row.found), 1):.0%})"
        yield f"| {row.systems} | {row.patterns} | {row.tried} | {row.findings} | {share} |"
    yield ""
    yield "| release | bug | findings |"
    yield "|---|---|---|"
    for systems in dict.fromkeys(row.systems for row in rows):
        own = [row for row in rows if row.systems == systems]
        for name in own[0].found:
            words = "; ".join(f"{row.patterns}: {', '.join(row.found[name]) or '-'}" for row in own)
            yield f"| {systems} | {name} | {words} |"


def main() -> None:
    """Run campaigns, and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="For each campaign.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--systems", action="append", help="Of one release; several times for several.")
    parser.add_argument("--woven", action="append", type=float, help="Share of patterns; several times for several.")
    parser.add_argument(
        "--nnsmith-python", type=Path, help="Of an environment with NNSmith, which makes the networks."
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="Folder of the campaigns.")
    options = parser.parse_args()
    rows = []

    def run(systems: str, woven: float, patterns: str, source: Source = rounds) -> None:
        asked = Fuzz(
            systems=systems.split(","),
            woven=woven,
            screen=3,
            special=True,
            seconds=options.seconds,
            seed=options.seed,
            workers=options.workers,
            alone=_ALONE,
            count=_MANY,
            reduction_seconds=_REDUCTION,
        )
        folder = options.output / f"{systems.partition(',')[0]}-{patterns}"
        rows.append(campaign(asked, patterns, folder, source))
        sys.stderr.write(f"{rows[-1]}\n")

    for systems in options.systems or _SYSTEMS:
        if options.nnsmith_python is not None:
            with NNSmith(options.nnsmith_python) as peer:
                run(systems, 0.0, "NNSmith", NNSmithNetworks(peer))
            continue
        for woven in options.woven or (0.0, 1.0):
            run(systems, woven, f"{woven:g}")
    print("\n".join(page(rows)))


if __name__ == "__main__":
    main()
