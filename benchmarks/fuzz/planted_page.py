"""The page about planted faults that are made smaller: rows, and the tables that are made of them."""

from __future__ import annotations

import collections
import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.faults.catalogue import faults
from conrepair_lab.fuzz.looking import ALIKE, ILL, RIGHT, SUSPECT, UNJUDGED
from conrepair_lab.fuzz.suspicion import REFUSED

__all__ = ["BOUND", "BOUNDS", "ROUNDING", "ROUNDINGS", "SHARE", "SHARES", "Compared", "Row", "page"]

SHARES = tuple(16.0**-power for power in range(4))
ROUNDINGS = (4.0, 16.0, 64.0, 256.0, 1024.0)
BOUNDS = (1.5, 4.0, 16.0, 64.0)
SHARE, ROUNDING, BOUND = "share", "rounding", "bound"
"""What a fault is scaled by."""


@dataclass(frozen=True)
class Row:
    """What came of a fault at one size.

    Attributes:
        index: Of the network.
        fault: Its name.
        by: `SHARE`, `ROUNDING` or `BOUND`.
        size: In that.
        inside: Whether the network was changed, rather than its answers.
        known: Whether ONNX's reference computes exact values of the network.
        verdict: Of the judge; "" where the answers are the right ones again.
        roundings: Largest error, by the rounding seen.
        loose: The bound, by the rounding seen, where the error is largest.
    """

    index: int
    fault: str
    by: str
    size: float
    inside: bool
    known: bool
    verdict: str
    roundings: float
    loose: float


@dataclass(frozen=True)
class Compared:
    """What came of a right network.

    Attributes:
        index: Of it.
        system: That ran it.
        verdict: Of the judge.
        words: About what's suspect.
    """

    index: int
    system: str
    verdict: str
    words: str


def _told(rows: Sequence[Row]) -> str:
    rows = [row for row in rows if row.verdict]
    if not rows:
        return "- | - | - | - | - | -"
    verdicts = collections.Counter(row.verdict for row in rows)
    missed = [row for row in rows if row.verdict in {RIGHT, ILL, ALIKE}]
    unbounded = sum(not np.isfinite(row.loose) for row in missed)
    bounded = [row.loose for row in missed if np.isfinite(row.loose)]
    loose = f"{statistics.median(bounded):.3g}" if bounded else "-"
    judged = [row.verdict == SUSPECT for row in rows if row.known and row.verdict != UNJUDGED]
    return (
        f"{_part(verdicts[SUSPECT], len(rows))} | {_part(sum(judged), len(judged))} | {verdicts[UNJUDGED]} | "
        f"{unbounded} | {len(bounded)} | {loose}"
    )


def _part(told: int, count: int) -> str:
    return f"{told} of {count} ({told / count:.1%})" if count else "-"


_HEAD = (
    "| {} | told | of those judged by exact values | unjudged | no finite bound there | within the bound "
    "| that bound, in roundings (median) |\n|---|---|---|---|---|---|---|"
)


def page(rows: Sequence[Row], beside: Sequence[Compared], ended: int, made: str) -> str:
    """The page.

    Args:
        rows: Of faults.
        beside: Of right networks.
        ended: Networks that ended a process.
        made: By what.
    """
    kinds = collections.Counter(dict.fromkeys((row.index for row in rows), 0))
    by_fault = collections.Counter(fault for _, fault in {(row.index, row.fault) for row in rows})
    lines = [
        "# Planted faults, scaled down",
        "",
        made,
        "",
        f"{len(kinds)} networks with a fault each, of {len(by_fault)} of the {len(faults())} kinds of "
        "[the catalogue](../../benchmarks/faults), which are planted evenly as far as they fit. *Told* is what the "
        "judge of a campaign calls suspect. Answers that rounding makes the right ones again aren't counted, nor "
        "sizes that a fault doesn't reach. *Rounding* is the largest error of right answers for an output (ONNX "
        "Runtime's with and without optimizations, and of ONNX's reference in the network's own types), and half an "
        "ulp of its largest number at least: the bound has no part in it.",
        "",
        "## By the rounding seen",
        "",
        "The largest error of an answer is so many times the rounding seen.",
        "",
        _HEAD.format("times"),
    ]
    lines += [f"| {size:g} | {_told(_of(rows, ROUNDING, size))} |" for size in ROUNDINGS]
    lines += ["", "## By shares of the fault", "", "Where it's in real weights or attributes the network has that "
              "share of it, else the answers have.", "", _HEAD.format("share")]  # fmt: skip
    lines += [f"| 1/{round(1 / size)} | {_told(_of(rows, SHARE, size))} |" for size in SHARES]
    lines += ["", "The same by the error that the answers then have, in roundings seen:", "", _HEAD.format("error")]
    ends = (0.0, *ROUNDINGS, np.inf)
    for low, high in itertools.pairwise(ends):
        some = [row for row in rows if row.by == SHARE and low <= row.roundings < high]
        name = f"{low:g} to {high:g}" if np.isfinite(high) else f"{low:g} and more"
        lines.append(f"| {name} | {_told(some)} |")
    lines += ["", "## By the bound", "", "The largest error is so many times its element's bound, which the judge "
              "goes by: these must all be told, but for its allowance of an ulp of the answer's type.", "",
              _HEAD.format("bounds")]  # fmt: skip
    lines += [f"| {size:g} | {_told(_of(rows, BOUND, size))} |" for size in BOUNDS]
    lines += ["", "## Right networks", ""]
    lines += [
        "| system | compared | right | ill-conditioned | alike | unjudged | refused | suspect |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for system in dict.fromkeys(item.system for item in beside):
        verdicts = collections.Counter(item.verdict for item in beside if item.system == system)
        cells = [verdicts.total(), *(verdicts[name] for name in (RIGHT, ILL, ALIKE, UNJUDGED, REFUSED, SUSPECT))]
        lines.append(f"| {system} | {' | '.join(map(str, cells))} |")
    lines += [
        "",
        f"Networks that ended the process: {ended}. Nobody has looked yet which suspects are false alarms: kernels "
        "that are known to be beyond their bound ([accuracy](accuracy.md)) are among them.",
        "",
    ]
    lines += [f"- network {item.index}, {item.system}: {item.words}" for item in beside if item.verdict == SUSPECT]
    lines += ["", "## Faults", "", "| fault | planted | told at 64 roundings | at 256 |", "|---|---|---|---|"]
    for fault, count in sorted(by_fault.items()):
        mine = [row for row in rows if row.fault == fault]
        shown = (_share(_of(mine, ROUNDING, size)) for size in (64.0, 256.0))
        lines.append(f"| {fault} | {count} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _share(rows: Sequence[Row]) -> str:
    rows = [row for row in rows if row.verdict]
    return f"{sum(row.verdict == SUSPECT for row in rows)} of {len(rows)}"


def _of(rows: Sequence[Row], by: str, size: float) -> list[Row]:
    return [row for row in rows if row.by == by and row.size == size]
