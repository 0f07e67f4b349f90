"""Curves as SVG, small ones side by side: shares over numbers of networks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

__all__ = ["Curve", "curves_svg"]

Curve = Sequence[tuple[int, float]]
"""Numbers of networks, and shares from 0 to 1."""

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP, _FOOT = 250, 170, 46, 64, 56, 44
_COLOURS = ("#1b7a3d", "#3b6fb6", "#d7301f")
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.small{font-size:10px;fill:#555}.title{font-weight:600}"
    ".grid{stroke:#ddd}.curve{fill:none;stroke-width:2}.branches{stroke-dasharray:5 3}"
)


def curves_svg(title: str, charts: Mapping[str, Mapping[str, tuple[Curve, Curve]]]) -> str:
    """Draw charts.

    Args:
        title: Of all of them.
        charts: By their titles; of each, by whose they are, the curves of lines and of branches.
    """
    width = _LEFT + len(charts) * (_WIDTH + _GAP)
    height = _TOP + _HEIGHT + _FOOT
    whose = list(dict.fromkeys(name for chart in charts.values() for name in chart))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *_legend(whose),
    ]
    for place, (name, chart) in enumerate(charts.items()):
        parts += _chart(name, chart, whose, _LEFT + place * (_WIDTH + _GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(whose: Sequence[str]) -> Iterator[str]:
    x = _LEFT
    for name, colour in zip(whose, _COLOURS, strict=False):
        yield f'<path d="M{x} 18h24" class="curve" stroke="{colour}"/><text x="{x + 30}" y="22">{escape(name)}</text>'
        x += 50 + 7 * len(name)
    yield f'<path d="M{x} 18h24" class="curve branches" stroke="#555"/><text x="{x + 30}" y="22">of branches</text>'


def _chart(name: str, chart: Mapping[str, tuple[Curve, Curve]], whose: Sequence[str], left: int) -> Iterator[str]:
    every = [point for curves in chart.values() for curve in curves for point in curve]
    most = max((number for number, _ in every), default=0) or 1
    yield f'<text x="{left}" y="{_TOP - 14}" class="title">{escape(name)}</text>'
    for tenths in range(0, 11, 2):
        y = _TOP + _HEIGHT * (1 - tenths / 10)
        yield f'<path d="M{left} {y:.1f}h{_WIDTH}" class="grid"/>'
        yield f'<text x="{left - 5}" y="{y + 3:.1f}" class="small" text-anchor="end">{10 * tenths} %</text>'
    for number in sorted({number for number, _ in every}):
        x = left + _WIDTH * number / most
        yield f'<text x="{x:.1f}" y="{_TOP + _HEIGHT + 14}" class="small" text-anchor="middle">{number}</text>'
    middle = left + _WIDTH / 2
    yield f'<text x="{middle}" y="{_TOP + _HEIGHT + 32}" class="small" text-anchor="middle">networks</text>'
    for own, colour in zip(whose, _COLOURS, strict=False):
        for curve, style in zip(chart.get(own, ()), ("curve", "curve branches"), strict=False):
            points = (f"{left + _WIDTH * x / most:.1f} {_TOP + _HEIGHT * (1 - y):.1f}" for x, y in curve)
            yield f'<path d="M{"L".join(points)}" class="{style}" stroke="{colour}"/>'
