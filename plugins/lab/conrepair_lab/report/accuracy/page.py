"""What accuracy tables come to: accuracy.md with causes, special values and refusals, accuracy.json, accuracy.svg."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from rich.table import Table

from conrepair.application.report.csv_text import plain
from conrepair.application.report.encode import encode
from conrepair.application.report.verdict_table import markdown_table
from conrepair.ground.runtime.words import percent
from conrepair_lab.accuracy.forms import NONE_KNOWN
from conrepair_lab.accuracy.measured import WRONG, Measured

_LEFT, _TOP, _WIDE, _HIGH = 190, 130, 58, 17
_MOST = 24.0  # bits of float32
_STYLE = "text{font:11px system-ui,sans-serif;fill:#222}.refused{fill:#eee}"


def accuracy_plot(results: Sequence[Measured]) -> str:
    """Draw a self-contained SVG, every field of which tells its figures when pointed at.

    Args:
        results: Of all systems and element types.
    """
    head, found = columns(results), lines(results)
    width, height = _LEFT + _WIDE * len(head) + 90, _TOP + _HIGH * len(found) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">',
        "<title>Largest errors of operators, in units in the last place</title>",
        f'<style>{_STYLE}</style><rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for place, (system, dtype) in enumerate(head):
        x = _LEFT + _WIDE * (place + 0.6)
        parts.append(
            f'<text transform="translate({x:.0f} {_TOP - 8}) rotate(-50)">{escape(f"{system} {dtype}")}</text>'
        )
    for row, (operator, measured) in enumerate(found):
        y = _TOP + _HIGH * row
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(operator)}</text>')
        for place, one in enumerate(measured):
            parts += _field(one, _LEFT + _WIDE * place, y)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _field(one: Measured | None, x: int, y: int) -> Iterator[str]:
    if one is None:
        return
    lost = 1.0 if one.missing else min(math.log2(max(one.ulps, 1.0)), _MOST) / _MOST
    shade = 'class="refused"' if one.refused else f'fill="hsl({55 - 55 * lost:.0f} 85% {94 - 44 * lost:.0f}%)"'
    told = one.refused or f"{word(one)} ulps, {percent(one.relative)}, at input {one.at}. {one.region} {one.form}"
    size = f'width="{_WIDE - 1}" height="{_HIGH - 1}"'
    yield f'<rect x="{x}" y="{y}" {size} {shade}><title>{escape(told)}</title></rect>'
    yield f'<text x="{x + _WIDE / 2:.0f}" y="{y + 12}" text-anchor="middle">{word(one)}</text>'


_LARGE = 1e4
_TOLD = 10  # causes in a terminal
_Column = tuple[str, str]


@dataclass(frozen=True)
class Cause:
    """An unstable form of an operator, and who has it.

    Attributes:
        worst: The largest error that it makes.
        columns: System and element type of all that have it.
    """

    worst: Measured
    columns: tuple[_Column, ...]


def columns(results: Sequence[Measured]) -> list[_Column]:
    """Systems and element types, in order."""
    return list(dict.fromkeys((one.system, one.dtype) for one in results))


def lines(results: Sequence[Measured]) -> list[tuple[str, list[Measured | None]]]:
    """Each operator with what was measured of it, by column; None where nothing was."""
    places, head = {(one.operator, one.system, one.dtype): one for one in results}, columns(results)
    return [
        (operator, [places.get((operator, *column)) for column in head])
        for operator in dict.fromkeys(one.operator for one in results)
    ]


def causes(results: Sequence[Measured]) -> list[Cause]:
    """What is above 16 units, by operator and form, the worst first."""
    groups: dict[tuple[str, str], list[Measured]] = {}
    for one in results:
        if one.faulty:
            groups.setdefault((one.operator, one.form), []).append(one)
    found = [
        Cause(max(group, key=lambda one: one.ulps), tuple((one.system, one.dtype) for one in group))
        for group in groups.values()
    ]
    return sorted(found, key=lambda cause: (-min(cause.worst.relative, 1.0), cause.worst.operator))


def word(one: Measured | None) -> str:
    """An error in units in the last place, in a few letters."""
    if one is None:
        return ""
    if one.refused:
        return "-"
    digits = f"{one.ulps:.1f}" if one.ulps < 100 else f"{one.ulps:.0f}" if one.ulps < _LARGE else f"{one.ulps:.0e}"
    return f"{digits}, inf" if one.missing else digits


def terminal_table(results: Sequence[Measured]) -> Table:
    """Largest errors in units in the last place, those with lost digits in red."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("operator", no_wrap=True)
    for system, dtype in columns(results):
        table.add_column(f"{system}\n{dtype}", justify="right")
    for operator, found in lines(results):
        words = [f"[red]{word(one)}[/]" if one is not None and one.faulty else word(one) for one in found]
        table.add_row(operator, *words)
    return table


def cause_lines(results: Sequence[Measured]) -> Iterator[str]:
    """The causes of the largest errors, for a terminal."""
    found = causes(results)
    for cause in found[:_TOLD]:
        worst = cause.worst
        size = f"up to {word(worst)} ulps ({percent(worst.relative)})" if worst.above else "NaN or infinity"
        where = worst.region if worst.above else worst.missing_region
        at = f" at input {worst.at}" if worst.at else ""
        yield f"{worst.operator} in {_listed(cause.columns)}: {size}{at}; range: {where}; cause: {worst.form}"
    if len(found) > _TOLD:
        yield f"and {len(found) - _TOLD} more (-o FOLDER keeps all)"


def json_text(results: Sequence[Measured]) -> str:
    """accuracy.json: a list of all that was measured."""
    return json.dumps([encode(one) for one in results], indent=1) + "\n"


_INTRODUCTION = f"""Every operator is computed by every system and compared with its value in float64, at some 250,000
inputs (of two-byte types at all there are); sums at sizes around those of blocks and rows, with five sorts of terms.
The table has the largest error in units in the last place (ulps) of the right value; for sums, of the sum of the
terms' magnitudes, so that cancellation, which no kernel can avoid, isn't counted. 0.5 ulps is the best possible, up
to 4 are usual. Above {WRONG:.0f} the table of causes has the formula whose errors, computed in the element type by
NumPy, have the same size at the same inputs. So the formula is likely: the system's code wasn't read."""


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
        f"{operators} operators, {len(systems)} systems, {len(found)} causes of errors above {WRONG:.0f} ulps, "
        f"{len(named)} of them with the formula.",
        "",
        *_INTRODUCTION.splitlines(),
        "",
        f"## Causes of errors above {WRONG:.0f} ulps",
        "",
        *markdown_table(
            ["operator", "formula", "systems", "ulps", "relative error", "at input", "inputs"], [*map(_cause, found)]
        ),
        "",
        "## Largest error by system",
        "",
        "In units in the last place (ulps); `-`: refused; `inf`: NaN or infinity where a number is right.",
        "",
        *_table(results),
    ]
    parts += [
        "",
        "## Special values",
        "",
        *_specials(results),
        "",
        "## Operators that systems refuse",
        "",
        *_refusals(results),
    ]
    if seconds:
        parts += ["", "Seconds: " + ", ".join(f"{name} {value:.0f}" for name, value in seconds.items()) + "."]
    return "\n".join(parts) + "\n"


def _cause(cause: Cause) -> list[str]:
    worst = cause.worst
    cells = [worst.operator, worst.form, _listed(cause.columns), word(worst), percent(worst.relative), worst.at]
    where = [worst.region] if worst.above else []
    where += [f"NaN or infinity: {worst.missing_region}"] if worst.missing else []
    return [plain(cell) for cell in (*cells, "; ".join(where))]


def _listed(places: Sequence[_Column]) -> str:
    """Systems, with the element types that aren't float32."""
    return ", ".join(dict.fromkeys(system if dtype == "float32" else f"{system} {dtype}" for system, dtype in places))


def _table(results: Sequence[Measured]) -> list[str]:
    rows = []
    for operator, found in lines(results):
        cells = [f"**{word(one)}**" if one is not None and one.faulty else word(one) for one in found]
        rows.append([plain(operator), *cells])
    return markdown_table(["operator", *(_listed([column]) for column in columns(results))], rows)


def _specials(results: Sequence[Measured]) -> list[str]:
    """By operator and words, who has them."""
    found: dict[tuple[str, str], list[_Column]] = {}
    for one in results:
        for words in one.specials:
            found.setdefault((one.operator, words), []).append((one.system, one.dtype))
    return markdown_table(
        ["operator", "result", "systems"],
        [[plain(operator), plain(words), plain(_listed(who))] for (operator, words), who in found.items()],
    )


def _refusals(results: Sequence[Measured]) -> list[str]:
    return [
        f"- {_listed([column])}: {', '.join(plain(one.operator) for one in refused)}"
        for column in columns(results)
        if (refused := [one for one in results if one.refused and (one.system, one.dtype) == column])
    ] or ["Nothing."]
