"""The benchmark's answer as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.common.bounds import at_most
from benchmarks.common.judged import listed
from benchmarks.common.rows import disagreements
from benchmarks.repair.rows import Row
from benchmarks.systematic.cases import EVERYWHERE, ONCE

__all__ = ["findings_of", "named_places", "places_of", "report", "ruled_places"]

_OF_EFFECT = 1e-5  # relative L2 of an output
_SIDES = ("target_layers", "source_layers")
_HEADER = (
    "network", "fault", "format", "places", "of effect", "named", "by one rule", "rules", "findings", "astray",
    "effect", "outcome", "edits", "error left", "seconds", "once: named", "findings", "outcome", "seconds",
)  # fmt: skip
_OUTCOMES = ("repaired", "partly", "left", "worse", "failed")
_SUMS = (
    *("cases", "all places named", "by one rule", "not, at most", "places of effect", "named", "findings"),
    *(*_OUTCOMES, "not repaired, at most", "seconds"),
)


def places_of(row: Row) -> list[dict[str, Any]]:
    """The places where a fault alone changes an output by more than rounding."""
    return [item for item in row.result["injected"] if item["effect"] is None or item["effect"] > _OF_EFFECT]


def named_places(row: Row) -> int:
    """How many of those some finding names."""
    return sum(any(_meet(place, found) for found in row.result["found"]) for place in places_of(row))


def ruled_places(row: Row) -> int:
    """How many of those the largest rule names: all of them where they are found to be one fault."""
    found = row.result["found"]
    rules = [
        [item for item in found if set(rule["layers"]) & set(item["target_layers"])] for rule in row.result["rules"]
    ]
    counts = (sum(any(_meet(place, item) for item in items) for place in places_of(row)) for items in rules)
    return max(counts, default=0)


def findings_of(row: Row) -> tuple[int, int]:
    """How many findings there are, and how many of them name no place."""
    found = row.result["found"]
    return len(found), sum(not any(_meet(place, item) for place in row.result["injected"]) for item in found)


def report(rows: Sequence[Row]) -> str:
    """What became of each fault everywhere, beside the same in one place; then sums.

    "of effect": places where the fault alone changes outputs by more than 1e-5; "named": those of them that some
    finding names; "by one rule": how many of them the largest rule names; "findings": how many there are,
    "astray" how many of them name no place; "error left": relative L2 of the outputs on unseen samples;
    "seconds": of localization and of repair; "at most": the 97.5 % bound of the share.
    """
    keys = {(row.case.model, row.case.faults[0], row.case.format, row.case.group): row for row in rows}
    lines = [f"| {' | '.join(_HEADER)} |", f"|---|---|---|{'---:|' * (len(_HEADER) - 3)}"]
    for key in sorted({key[:3] for key in keys}):
        cells = [*key, *_everywhere(keys.get((*key, EVERYWHERE))), *_once(keys.get((*key, ONCE)))]
        lines.append(f"| {' | '.join(cells)} |")
    parts = ["\n".join(lines) + "\n", "\n".join(_sums(rows)) + "\n", disagreements(rows)]
    parts += listed("Failed", [row for row in rows if row.status == "failed"])
    return "\n".join(parts)


def _meet(place: dict[str, list[str]], found: dict[str, list[str]]) -> bool:
    return any(set(place[side]) & set(found[side]) for side in _SIDES)


def _seconds(row: Row) -> float:
    return float(row.result["localize_seconds"] + row.result["repair_seconds"])


def _error(row: Row) -> str:
    after = row.result["after"]
    error = (after or row.result["before"])["error"]
    return "infinite" if error is None else f"{error:.0e}"


def _everywhere(row: Row | None) -> list[str]:
    if row is None or row.status != "measured":
        return [*[""] * 8, "" if row is None else row.status, "", "", ""]
    findings, astray = findings_of(row)
    effect = row.result["effect"]
    return [
        str(len(row.result["injected"])),
        str(len(places_of(row))),
        str(named_places(row)),
        str(ruled_places(row)),
        str(len(row.result["rules"])),
        str(findings),
        str(astray),
        "infinite" if effect is None else f"{effect:.0e}",
        row.score.outcome,
        str(len(row.result.get("edits", []))),
        _error(row),
        f"{_seconds(row):.0f}",
    ]


def _once(row: Row | None) -> list[str]:
    if row is None or row.status != "measured":
        return ["", "", "" if row is None else row.status, ""]
    return [str(named_places(row)), str(findings_of(row)[0]), row.score.outcome, f"{_seconds(row):.0f}"]


def _sums(rows: Sequence[Row]) -> Iterator[str]:
    yield f"|  | {' | '.join(_SUMS)} |"
    yield f"|---|{'---:|' * len(_SUMS)}"
    groups = {group: [row for row in rows if row.case.group == group] for group in (EVERYWHERE, ONCE)}
    formats = sorted({row.case.format for row in groups[EVERYWHERE]})
    for name in formats if len(formats) > 1 else ():
        groups[f"{EVERYWHERE}, {name}"] = [row for row in groups[EVERYWHERE] if row.case.format == name]
    yield from (_sum(name, [row for row in group if row.counts]) for name, group in groups.items() if group)


def _sum(name: str, asked: Sequence[Row]) -> str:
    done = [row for row in asked if row.status == "measured"]
    places = [len(places_of(row)) for row in done]
    named = [named_places(row) for row in done]
    outcomes = [row.score.outcome for row in asked]
    several = [row for row in done if len(places_of(row)) > 1]
    ruled = sum(ruled_places(row) == len(places_of(row)) for row in several)
    cells = [
        len(asked),
        sum(one == two for one, two in zip(places, named, strict=True)),
        f"{ruled} of {len(several)}",
        at_most(len(several) - ruled, len(several)),
        sum(places),
        sum(named),
        sum(findings_of(row)[0] for row in done),
        *(outcomes.count(outcome) for outcome in _OUTCOMES),
        at_most(len(asked) - outcomes.count("repaired"), len(asked)),
        f"{statistics.median(map(_seconds, done)):.0f}" if done else "",
    ]
    return f"| {name} | {' | '.join(map(str, cells))} |"
