"""accuracy.svg: a field for each operator and system, the darker, the more digits are lost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from conrepair.accuracy.measured import Measured
from conrepair.report.accuracy.table import by_place, columns, word

__all__ = ["accuracy_plot"]

_LEFT, _TOP, _WIDE, _HIGH = 190, 130, 58, 17
_MOST = 24.0  # bits of float32
_STYLE = "text{font:11px system-ui,sans-serif;fill:#222}.refused{fill:#eee}"


def accuracy_plot(results: Sequence[Measured]) -> str:
    """Draw a self-contained SVG, every field of which tells its figures when pointed at.

    Args:
        results: Of all systems and element types.
    """
    head, operators = columns(results), list(dict.fromkeys(one.operator for one in results))
    width, height = _LEFT + _WIDE * len(head) + 90, _TOP + _HIGH * len(operators) + 10
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
    places = by_place(results)
    for row, operator in enumerate(operators):
        y = _TOP + _HIGH * row
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(operator)}</text>')
        for place, column in enumerate(head):
            parts += _field(places.get((operator, column)), _LEFT + _WIDE * place, y)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _field(one: Measured | None, x: int, y: int) -> Iterator[str]:
    if one is None:
        return
    lost = 1.0 if one.missing else min(math.log2(max(one.ulps, 1.0)), _MOST) / _MOST
    shade = 'class="refused"' if one.refused else f'fill="hsl({55 - 55 * lost:.0f} 85% {94 - 44 * lost:.0f}%)"'
    told = one.refused or f"{one.ulps:.3g} units, {one.relative:.2g} relative, at {one.at}. {one.region} {one.form}"
    size = f'width="{_WIDE - 1}" height="{_HIGH - 1}"'
    yield f'<rect x="{x}" y="{y}" {size} {shade}><title>{escape(told)}</title></rect>'
    yield f'<text x="{x + _WIDE / 2:.0f}" y="{y + 12}" text-anchor="middle">{word(one)}</text>'
