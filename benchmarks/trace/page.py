"""The page of what tracing finds, of rows that are kept: `python -m benchmarks.trace.page FOLDER`."""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.trace.kept import Kept
from benchmarks.trace.networks import OPERATORS
from benchmarks.trace.search import METHODS, PAIRS, PLAIN, TENTH
from conrepair.formats.models.runnable import Array

__all__ = ["found", "page", "ratio"]

_PAGE = Path("docs/measured/trace-search.md")
_DRAWS, _SEED = 2000, 1
Row = Mapping[str, Any]
Finds = Callable[[Row], bool]

_COUNTS: Mapping[str, Finds] = {
    "raw above 1e-2": lambda row: row["largest"] > 1e-2,
    "raw above 1e-3": lambda row: row["largest"] > 1e-3,
    "above the bound": lambda row: (row["over"] or 0) > 1,
}
_RAW, _, _ABOVE = _COUNTS
_SEARCH = f"""
## Methods of searching at equal budgets

Generated networks have ten nodes of {len(OPERATORS)} numeric operators; the real ones are small architectures.
Each search makes 1,000 evaluations of both sides, guided by the largest relative error; {TENTH} makes a tenth
of them, half of which look at one side alone. *plain* methods search inputs from -5 to 5 as they are; the others, in
our space of magnitudes, scales and spreads. Raw counts are TracNe's: the largest |t - p| / (|t| + 1e-8) of an
evaluation. Above the bound: a side is further from exact values than rounding explains (16 units in the last place
for each function), on one of the eight inputs with the highest scores. Against *exact*, as a trace does with a
quarter of its evaluations, searches are guided by that, and any of 250 inputs counts.

The whole is 60 generated networks and four real ones for each pair, five seeds; what was run stands with each pair.
Numbers are of networks, seeds on average, with bootstrap intervals (95 %) over networks.
"""
_FAULTS = """
## Known faults

Each fault lies between two linear layers of a network with inputs from -5 to 5; reached is one that the search of
`conrepair trace` brings to light within 60 s and 1,000 evaluations, judged wrong, with the guilty side named (*both*
where the same system without optimizations has it, too). `naive`: a pass rebuilt by us that writes an unstable form.
FastMath's exp is found where it becomes infinite too early; behind a layer its 68 units in the last place at -72 are
less than one rounding of its argument explains.
"""
_RATES = """
## Evaluations a second

MEGA's search, and a plain loop over the inputs that it made, which runs the same two sides and scores them; the
processor's time, medians of networks, the best of five rounds. Wanted: a ratio of 0.9.

Candidates aren't evaluated side by side. On two cores, two threads with sides of their own make no more evaluations a
second on a small network (2,700 either way: most of one is Python), and 1.3 times as many (1.2 to 1.6, on a busy
machine) on MobileNetV3 in ONNX Runtime, whose 1,000 take 3 s. To open TVM's two builds of that a second time takes
28 s, a search of it 14 s.
"""


def found(rows: Sequence[Row], methods: Sequence[str], finds: Finds) -> Array:
    """By network, the share of seeds with which any of some methods finds something."""
    seen: dict[tuple[str, str], dict[int, bool]] = defaultdict(dict)
    for row in rows:
        if row["method"] in methods:
            seeds = seen[row["pair"], row["network"]]
            seeds[row["seed"]] = seeds.get(row["seed"], False) or finds(row)
    return np.array([np.mean([*seeds.values()]) for seeds in seen.values()])


def ratio(one: Array, other: Array) -> str:
    """How many times as many networks, with a bootstrap interval (95 %) over networks."""
    draws = np.random.default_rng(_SEED).integers(len(one), size=(_DRAWS, len(one)))
    with np.errstate(all="ignore"):
        sampled = one[draws].sum(axis=1) / other[draws].sum(axis=1)
        whole = one.sum() / other.sum()
    low, high = np.quantile(np.nan_to_num(sampled, nan=1.0, posinf=np.inf), [0.025, 0.975], method="nearest")
    return f"{whole:.2f} [{low:.2f}, {high:.2f}]"


def _number(shares: Array) -> str:
    draws = np.random.default_rng(_SEED).integers(len(shares), size=(_DRAWS, len(shares)))
    low, high = np.quantile(shares[draws].sum(axis=1), [0.025, 0.975])
    return f"{shares.sum():.1f} [{low:.1f}, {high:.1f}]"


def _searches(rows: Sequence[Row]) -> Iterator[str]:
    for pair in PAIRS:
        own = [row for row in rows if row["pair"] == pair]
        taken = [row for row in own if "method" in row]
        if not taken:
            continue
        names = {row["network"]: row["sort"] for row in taken}
        sorts = [sum(sort == name for sort in names.values()) for name in ("generated", "real")]
        yield f"\n### {PAIRS[pair][0]} against {PAIRS[pair][1]}\n"
        yield (
            f"{sorts[0]} generated networks, {sorts[1]} real ones, {len({row['seed'] for row in taken})} seeds; "
            f"{sum('refused' in row for row in own)} others weren't taken by one of the sides.\n"
        )
        yield f"| method | {' | '.join(_COUNTS)} | CPU seconds of a search |\n|---|---|---|---|---|"
        for method in (*METHODS, TENTH, *(f"plain {name}" for name in PLAIN)):
            cells = [_number(found(taken, [method], finds)) for finds in _COUNTS.values()]
            seconds = statistics.median(row["seconds"] for row in taken if row["method"] == method)
            yield f"| {method} | {' | '.join(cells)} | {seconds:.1f} |"


def _wanted(rows: Sequence[Row]) -> Iterator[str]:
    exact = [row for row in rows if row["pair"].endswith("-exact")]
    pairs = [row for row in rows if row not in exact]
    raw, above = _COUNTS[_RAW], _COUNTS[_ABOVE]
    mega, both = found(pairs, ["mega"], raw), ["differential", "annealing"]
    others = [name for name in METHODS if name != "mega"]
    best = max(others, key=lambda name: found(exact, [name], above).sum())
    compared: list[tuple[str, Array, Array, str, str]] = [
        ("raw: mega by differential or annealing", mega, found(pairs, both, raw), "3", "5.6 (MCMC and DE)"),
        ("these in plain inputs", mega, found(pairs, [f"plain {name}" for name in both], raw), "3", ""),
        ("raw: mega by random", mega, found(pairs, ["random"], raw), "2", "2.5 (28 against 11)"),
        ("random in plain inputs", mega, found(pairs, ["plain random"], raw), "2", ""),
        ("raw: conditioning with a tenth by mega", found(pairs, [TENTH], raw), mega, "1", ""),
    ]
    if exact:
        ours, theirs = (found(exact, [name], above) for name in ("mega", best))
        compared.append((f"above the bound, against exact: mega by {best}, the best other", ours, theirs, "1.5", ""))
    yield "| networks with a finding, all pairs | times as many [95 %] | wanted | TracNe's paper |\n|---|---|---|---|"
    for words, one, other, wanted, paper in compared:
        yield f"| {words} | {ratio(one, other)} | {wanted} | {paper} |"


def _faults(rows: Sequence[Row]) -> Iterator[str]:
    names = list(dict.fromkeys(row["fault"] for row in rows))
    reached = sum(row["reached"] for row in rows)
    yield f"{reached} of {len(rows)} ({reached / len(rows):.0%}) reached; wanted: 80 %.\n"
    yield "| fault | reached | judged | worst error in bounds | seconds of the search |\n|---|---|---|---|---|"
    for name in names:
        own = [row for row in rows if row["fault"] == name]
        judged = ", ".join(dict.fromkeys(f"{row['kind']} {row['blamed']}".strip() for row in own))
        over, seconds = (statistics.median(row[key] for row in own) for key in ("over", "searched"))
        count = f"{sum(row['reached'] for row in own)} of {len(own)}"
        yield f"| {name} | {count} | {judged} | {over:.2g} | {seconds:.1f} |"


def _rates(rows: Sequence[Row]) -> Iterator[str]:
    yield "| pair | networks | evaluations a second, search | loop | ratio | its ends |\n|---|---|---|---|---|---|"
    for pair, sort in dict.fromkeys((row["pair"], row["sort"]) for row in rows):
        own = [row for row in rows if (row["pair"], row["sort"]) == (pair, sort) and "ratio" in row]
        if own:
            cells = [f"{statistics.median(row[key] for row in own):.0f}" for key in ("search", "loop")]
            ends = sorted(row["ratio"] for row in own)
            cells += [f"{statistics.median(ends):.2f}", f"{ends[0]:.2f} to {ends[-1]:.2f}"]
            yield f"| {pair} | {len(own)} {sort} | {' | '.join(cells)} |"


def page(folder: Path) -> str:
    """All sections of which there are rows.

    Args:
        folder: In which `search`, `known_faults` and `rate` kept reporting seeds' rows.
    """
    searches, about = _read(folder.glob("search-reporting-*.jsonl"))
    parts = ["# What searches of deviations find\n", *about]
    if searches:
        taken = [row for row in searches if "method" in row]
        parts += [_SEARCH, *_wanted(taken), *_searches(searches)]
    for words, name, lines in (
        (_FAULTS, "known-faults-90001.jsonl", _faults),
        (_RATES, "rate-reporting.jsonl", _rates),
    ):
        rows, own = _read(folder.glob(name))
        if rows:
            parts += [words, *own, "", *lines(rows)]
    return "\n".join(parts).rstrip() + "\n"


def _read(paths: Iterator[Path]) -> tuple[list[Row], list[str]]:
    files = [Kept(path) for path in sorted(paths)]
    return [row for kept in files for row in kept.rows], [f"- {line}" for kept in files for line in kept.about]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=_PAGE)
    asked = parser.parse_args()
    asked.output.write_text(page(asked.folder), encoding="utf-8")


if __name__ == "__main__":
    main()
