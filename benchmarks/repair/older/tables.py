"""What became of the older tool's conversions, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.repair.older.cases import CASES, RIGHT
from benchmarks.repair.older.rows import OlderRow

__all__ = ["report_older", "share"]

_TITLES = ("case", "photos", "classes", "differ", "found", "recipe", "edits", "then differ", "left", "s")
_PUBLISHED = {case.name for case in CASES if case.published}
_PREPARED = {case.name: case.recipe == RIGHT for case in CASES}


def report_older(rows: Sequence[OlderRow]) -> str:
    """A table of the conversions that the older tool has results of, one of the others, and one of faulty ones."""
    prepared = [row for row in rows if row.name in _PREPARED]
    published = [row for row in prepared if row.name in _PUBLISHED]
    others = [row for row in prepared if row.name not in _PUBLISHED]
    parts = [_table(part, rows) for part, rows in (("published", published), ("not published", others)) if rows]
    if prepared:
        right = sum(_PREPARED[row.name] for row in prepared)
        parts.append(
            f"In {right} of these {len(prepared)} cases nothing is wrong, and the other {len(prepared) - right} have "
            "the same fault of preprocessing, whose repair is the source's own recipe."
        )
    if faulty := [row for row in rows if row.name not in _PREPARED]:
        parts.append(_faulty(faulty))
    return "\n\n".join(parts)


def _faulty(rows: Sequence[OlderRow]) -> str:
    """What became of targets with a fault that was put in."""
    titles = ("case", "injected", "photos", "differ", "found", "edits", "then differ", "left")
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for row in rows:
        injected = f"failed: {row.words}" if row.status == "failed" else row.injected
        before = row.name, injected, str(row.photos), share(row.before), ", ".join(row.found)
        after = "; ".join(row.edits), share(row.after), ", ".join(row.left)
        lines.append(f"| {' | '.join((*before, *after))} |")
    found = [row for row in rows if row.status == "measured" and row.found]
    repaired = sum(row.after == 0 and not row.left for row in found)
    count = sum(row.status == "measured" for row in rows)
    sums = f"Of {count} targets with a fault {len(found)} are said to have one. In {repaired} of them none is left"
    return "\n".join([*lines, "", f"{sums}, and no photo is answered otherwise."])


def _table(part: str, rows: Sequence[OlderRow]) -> str:
    recipes = list(dict.fromkeys(row.recipe for row in rows if row.recipe))
    lines = [f"| {' | '.join(_TITLES)} |", f"|{'---|' * len(_TITLES)}", *(_line(row, recipes) for row in rows)]
    equal = sum(row.after == 0 for row in rows)
    words = [f"Recipe {place}: {'; '.join(recipe)}." for place, recipe in enumerate(recipes, 1)]
    sums = f"{equal} of {len(rows)} {part} cases end with no photo answered otherwise."
    return "\n".join([*lines, "", *words, sums])


def _line(row: OlderRow, recipes: Sequence[tuple[str, ...]]) -> str:
    if row.status == "failed":
        return f"| {row.name} | failed: {row.words} |{' |' * (len(_TITLES) - 2)}"
    cells = (
        row.name,
        str(row.photos),
        str(row.classes),
        share(row.before),
        ", ".join(row.found),
        str(recipes.index(row.recipe) + 1) if row.recipe else "",
        "; ".join(row.edits),
        share(row.after),
        ", ".join(row.left),
        f"{row.seconds:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def share(value: float | None) -> str:
    """A share in percent; nothing where there's none."""
    return "" if value is None else f"{100 * value:.2f} %"
