"""accuracy.md: causes, the table, special values, refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conrepair.accuracy.forms import NONE_KNOWN
from conrepair.accuracy.measured import WRONG, Measured
from conrepair.report.accuracy.table import Cause, Column, by_place, causes, columns, word
from conrepair.report.csv_text import plain
from conrepair.report.verdict_table import markdown_table

__all__ = ["page"]

_INTRODUCTION = f"""Every operator is computed by every system, and compared with its value in float64 at some 250,000
inputs (of two-byte types at all there are), or for sums at sizes around those of blocks and rows of five sorts.
Errors are the largest, in units in the last place of the right value; where terms are summed, of the sum of their
magnitudes, so that cancelling, which no kernel can help, isn't counted. Half a unit is as good as can be, up to 4 are
usual; above {WRONG:.0f} there is a cause, which is named where the error curve of that form, computed in the element
type by NumPy, has the same size at the same inputs. What is so said is likely, not read in the system's code."""


def page(results: Sequence[Measured], made_by: str = "", seconds: Mapping[str, float] | None = None) -> str:
    """The page.

    Args:
        results: Of all systems and element types.
        made_by: A sentence on command, commit and date.
        seconds: How long each system took.
    """
    found = causes(results)
    named = [cause for cause in found if cause.worst.form != NONE_KNOWN]
    operators = len({one.operator for one in results})
    systems = list(dict.fromkeys(one.system for one in results))
    parts = ["# Accuracy of operators", ""]
    parts += [made_by, ""] if made_by else []
    parts += [
        f"{operators} operators, {len(systems)} systems, {len(found)} causes above {WRONG:.0f} units in the last "
        f"place, {len(named)} of them with their form.",
        "",
        *_INTRODUCTION.splitlines(),
        "",
        f"## Causes above {WRONG:.0f} units",
        "",
        *markdown_table(
            ["operator", "form", "systems", "units", "relative", "at", "where"], [_cause(cause) for cause in found]
        ),
        "",
        "## Largest error by system",
        "",
        "In units in the last place; `-`: refused; `inf`: for some inputs infinity or NaN where a number is right.",
        "",
        *_table(results),
    ]
    parts += ["", "## Special values", "", *_specials(results), "", "## Refused", "", *_refusals(results)]
    if seconds:
        parts += ["", "Seconds: " + ", ".join(f"{name} {value:.0f}" for name, value in seconds.items()) + "."]
    return "\n".join(parts) + "\n"


def _cause(cause: Cause) -> list[str]:
    worst = cause.worst
    cells = [worst.operator, worst.form, _listed(cause.columns), word(worst), f"{worst.relative:.1e}", worst.at]
    where = [worst.region] if worst.above else []
    where += [f"no number: {worst.missing_region}"] if worst.missing else []
    return [plain(cell) for cell in (*cells, "; ".join(where))]


def _listed(places: Sequence[Column]) -> str:
    """Systems, with the element types that aren't float32."""
    return ", ".join(dict.fromkeys(system if dtype == "float32" else f"{system} {dtype}" for system, dtype in places))


def _table(results: Sequence[Measured]) -> list[str]:
    places, head = by_place(results), columns(results)
    rows = []
    for operator in dict.fromkeys(one.operator for one in results):
        found = [places.get((operator, column)) for column in head]
        cells = [f"**{word(one)}**" if one is not None and one.faulty else word(one) for one in found]
        rows.append([plain(operator), *cells])
    return markdown_table(["operator", *(_listed([column]) for column in head)], rows)


def _specials(results: Sequence[Measured]) -> list[str]:
    """By operator and words, who has them."""
    found: dict[tuple[str, str], list[Column]] = {}
    for one in results:
        for words in one.specials:
            found.setdefault((one.operator, words), []).append((one.system, one.dtype))
    return markdown_table(
        ["operator", "what comes", "systems"],
        [[plain(operator), plain(words), plain(_listed(who))] for (operator, words), who in found.items()],
    )


def _refusals(results: Sequence[Measured]) -> list[str]:
    return [
        f"- {_listed([column])}: {', '.join(plain(one.operator) for one in refused)}"
        for column in columns(results)
        if (refused := [one for one in results if one.refused and (one.system, one.dtype) == column])
    ] or ["Nothing."]
