"""What became of the older tool's conversions, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.repair.older.cases import CASES
from benchmarks.repair.older.rows import OlderRow

__all__ = ["report_older", "share"]

_TITLES = ("case", "photos", "classes", "differ", "found", "recipe", "edits", "then differ", "left", "s")
_PUBLISHED = {case.name for case in CASES if case.published}


def report_older(rows: Sequence[OlderRow]) -> str:
    """A table of the conversions that the older tool has results of, and one of the others."""
    published = [row for row in rows if row.name in _PUBLISHED]
    others = [row for row in rows if row.name not in _PUBLISHED]
    tables = (_table(part, rows) for part, rows in (("published", published), ("not published", others)) if rows)
    return "\n\n".join(tables)


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
