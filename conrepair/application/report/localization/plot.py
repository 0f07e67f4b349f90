"""error.svg: introduced and full-run error along the network, against the noise floor.

Written by hand: it needs lines, dots and text, and no library that draws is among our dependencies.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from conrepair.application.report.localization.advice import names_of, names_of_fault
from conrepair.diagnosis.localization.result import LayerRow, Localization, LocatedFault
from conrepair.ground.runtime.words import percent, printable, quoted, shortened

_LOWEST, _HIGHEST = 1e-12, 1e6  # what's beyond is drawn at the edge: it's as good as nothing, or as bad as it gets
_FEWEST_DECADES, _MOST_LABELS = 3, 8


@dataclass(frozen=True)
class _ErrorAxis:
    """Maps errors to heights.

    Attributes:
        low: Exponent at the lower edge.
        high: Exponent at the upper edge.
        top: Pixels from above of the upper edge.
        bottom: The same of the lower edge.
        zero: Whether the lower edge stands for 0.
        infinite: Whether the upper edge stands for what's no number.
    """

    low: int
    high: int
    top: float
    bottom: float
    zero: bool
    infinite: bool

    def at(self, error: float) -> float:
        """Pixels from above."""
        if not math.isfinite(error):
            return self.top
        if error <= 0:
            return self.bottom
        share = (math.log10(error) - self.low) / (self.high - self.low)
        return self.bottom - min(max(share, 0.0), 1.0) * (self.bottom - self.top)

    def labels(self) -> list[tuple[float, str]]:
        """Pixels from above and text of each line of the grid, from the lower edge up."""
        inner = range(self.low + self.zero, self.high - self.infinite + 1)
        found = [(self.at(10.0**exponent), f"1e{exponent}") for exponent in inner[:: 1 + len(inner) // _MOST_LABELS]]
        below = [(self.bottom, "0")] if self.zero else []
        above = [(self.top, "infinite")] if self.infinite else []
        return [*below, *found, *above]


def error_axis(errors: Collection[float], top: float, bottom: float) -> _ErrorAxis:
    """An axis that shows all errors.

    Args:
        errors: 0 or more, infinite, or not a number.
        top: Pixels from above of the upper edge.
        bottom: The same of the lower edge.
    """
    shown = [min(max(error, _LOWEST), _HIGHEST) for error in errors if math.isfinite(error) and error > 0] or [1e-7]
    low, high = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)))
    high = max(high, low + _FEWEST_DECADES)
    zero, infinite = any(error == 0 for error in errors), not all(map(math.isfinite, errors))
    return _ErrorAxis(low - zero, high + infinite, top, bottom, zero, infinite)


def spread(wanted: Sequence[float], apart: float, last: float) -> list[float]:
    """Push places apart, as little to the right as it takes, and back where that leads over the edge.

    Args:
        wanted: Ascending.
        apart: What must be between two.
        last: The edge.
    """
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + apart) if places else place)
    edge = last
    for index in range(len(places) - 1, -1, -1):
        places[index] = min(places[index], edge)
        edge = places[index] - apart
    return places


_LEFT, _RIGHT, _TOP, _HEIGHT = 84.0, 24.0, 84.0, 360.0
_NAMES_HEIGHT, _LINE = 150.0, 18.0
_NARROWEST, _WIDEST = 760.0, 1600.0
_NAMED_FAULTS, _NAMED_LAYERS, _NAME_LENGTH = 12, 60, 26
_TITLE_LETTER, _LETTER = 9.0, 7.0  # pixels of a letter, on the safe side
_MARK = 18.0  # pixels that a fault's number needs
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.small{font-size:10px;fill:#555}"
    ".title{font-size:15px;font-weight:600}"
    ".grid{stroke:#ddd}.floor{fill:#9e9e9e;fill-opacity:.25;stroke:#9e9e9e;stroke-width:1}"
    ".full{fill:none;stroke:#3b6fb6;stroke-width:1.5}.introduced{fill:#1b7a3d}"
    ".guilty{fill:#d7301f}.lead{fill:none;stroke:#d7301f;stroke-dasharray:2 3;stroke-opacity:.6}"
    ".mark{font-size:11px;fill:#fff;font-weight:600}"
)


def error_plot(result: Localization) -> str:
    """Draw a result.

    Args:
        result: Its layers are drawn in the source's order.

    Returns:
        A self-contained SVG; every dot tells its layer and figures when pointed at.
    """
    rows = sorted(result.layers, key=lambda row: row.order)
    width = min(max(_NARROWEST, _LEFT + _RIGHT + 16.0 * len(rows)), _WIDEST)
    errors = [value for row in rows for value in (row.introduced_error, row.full_run_error, row.noise_floor)]
    room = width - _LEFT - _RIGHT
    names = names_of(result)
    title = wrap(quoted(f"{result.verdict.value}: {result.reason}", names=names), int(room / _TITLE_LETTER))
    top = _TOP + _LINE * (len(title) - 1)
    axis = error_axis(errors, top, top + _HEIGHT)
    across = _Across(len(rows), _LEFT + 8, width - _RIGHT)
    named = list(result.faults[:_NAMED_FAULTS])
    listed = [line for entry in _listed(result, named) for line in wrap(entry, int(room / _LETTER))]
    height = axis.bottom + _NAMES_HEIGHT + _LINE * (len(listed) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>Relative error along the network: {_safe(result.verdict.value)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
        *_lines(title, 24, 'class="title"'),
        *_legend(top - 40),
        *_grid(axis, width),
        *_curves(rows, axis, across),
        *_dots(rows, axis, across),
        *_names(rows, axis, across),
        *_marks(named, rows, axis, across),
        *_lines(listed, axis.bottom + _NAMES_HEIGHT + _LINE),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class _Across:
    """Where each layer stands from left to right."""

    def __init__(self, count: int, left: float, right: float) -> None:
        self._left, self._step = left, (right - left) / max(count, 1)
        self.right = right
        self.radius = min(max(self._step / 3, 1.5), 4.0)

    def at(self, place: int) -> float:
        return self._left + (place + 0.5) * self._step


def _safe(text: str) -> str:
    return escape(printable(text))


def _text(x: float, y: float, text: str, attributes: str = "", *, length: int = 200) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(shortened(text, length))}</text>'


def _legend(y: float) -> Iterator[str]:
    yield f'<circle cx="{_LEFT + 5}" cy="{y - 4}" r="4" class="introduced"/>'
    yield _text(_LEFT + 14, y, "added by it")
    yield f'<circle cx="{_LEFT + 99}" cy="{y - 4}" r="4" class="guilty"/>'
    yield _text(_LEFT + 108, y, "faulty layer")
    yield f'<path d="M{_LEFT + 230} {y - 4}h22" class="full"/>'
    yield _text(_LEFT + 258, y, "in all")
    yield f'<rect x="{_LEFT + 320}" y="{y - 10}" width="22" height="10" class="floor"/>'
    yield _text(_LEFT + 348, y, "rounding error")


def _grid(axis: _ErrorAxis, width: float) -> Iterator[str]:
    for y, label in axis.labels():
        yield f'<path d="M{_LEFT} {y:.1f}H{width - _RIGHT}" class="grid"/>'
        yield _text(_LEFT - 6, y + 4, label, 'text-anchor="end" class="small"')
    middle = (axis.top + axis.bottom) / 2
    turned = f'transform="rotate(-90 14 {middle:.0f})" text-anchor="middle"'
    yield _text(14, middle, "relative L2 error", turned)


def _curves(rows: Sequence[LayerRow], axis: _ErrorAxis, across: _Across) -> Iterator[str]:
    if not rows:
        return
    floors = " ".join(f"L{across.at(place):.1f} {axis.at(row.noise_floor):.1f}" for place, row in enumerate(rows))
    first, last = across.at(0), across.at(len(rows) - 1)
    yield f'<path d="M{first:.1f} {axis.bottom:.1f} {floors} L{last:.1f} {axis.bottom:.1f}Z" class="floor"/>'
    full = "L".join(f"{across.at(place):.1f} {axis.at(row.full_run_error):.1f}" for place, row in enumerate(rows))
    yield f'<path d="M{full}" class="full"/>'


def _dots(rows: Sequence[LayerRow], axis: _ErrorAxis, across: _Across) -> Iterator[str]:
    for place in sorted(range(len(rows)), key=lambda place: rows[place].guilty):  # guilty ones on top
        row = rows[place]
        radius = max(across.radius, 4.0) if row.guilty else across.radius
        yield (
            f'<circle cx="{across.at(place):.1f}" cy="{axis.at(row.introduced_error):.1f}" r="{radius:.1f}" '
            f'class="{"guilty" if row.guilty else "introduced"}"><title>{_safe(_tooltip(row))}</title></circle>'
        )


def _tooltip(row: LayerRow) -> str:
    return (
        f"{row.source_layer} ({row.source_operator}) / {row.target_layer} ({row.target_operator}): "
        f"adds {percent(row.introduced_error)} itself, {percent(row.full_run_error)} in all, "
        f"rounding error {percent(row.noise_floor)}"
    )


def _names(rows: Sequence[LayerRow], axis: _ErrorAxis, across: _Across) -> Iterator[str]:
    """As many as can be read."""
    step = -(-len(rows) // _NAMED_LAYERS) if rows else 1
    y = axis.bottom + 14
    for place in range(0, len(rows), step):
        x = across.at(place)
        turned = f'transform="rotate(-60 {x:.1f} {y:.1f})" text-anchor="end" class="small"'
        yield _text(x, y, rows[place].source_layer, turned, length=_NAME_LENGTH)


def _marks(
    named: Sequence[LocatedFault], rows: Sequence[LayerRow], axis: _ErrorAxis, across: _Across
) -> Iterator[str]:
    """A fault's number above its dot, pushed aside where two would lie on each other."""
    tensors = {(row.source_tensor, row.target_tensor): place for place, row in enumerate(rows)}
    found = [(tensors.get((fault.source_tensor, fault.target_tensor)), rank) for rank, fault in enumerate(named, 1)]
    order = sorted((place, rank) for place, rank in found if place is not None)
    marks = spread([across.at(place) for place, _ in order], _MARK, across.right)
    for (place, rank), mark in zip(order, marks, strict=True):
        x, dot = across.at(place), axis.at(rows[place].introduced_error)
        yield f'<path d="M{x:.1f} {dot:.1f}V{axis.top - 6:.1f}L{mark:.1f} {axis.top - 12:.1f}" class="lead"/>'
        yield f'<circle cx="{mark:.1f}" cy="{axis.top - 18:.1f}" r="8" class="guilty"/>'
        yield _text(mark, axis.top - 14, str(rank), 'text-anchor="middle" class="mark"')


def _listed(result: Localization, named: Sequence[LocatedFault]) -> Iterator[str]:
    for rank, fault in enumerate(named, 1):
        layer = (fault.target_layers or fault.source_layers or (fault.target_tensor,))[0]
        errors = f"adds {percent(fault.introduced_error)} itself, rounding error {percent(fault.noise_floor)}"
        yield quoted(f"{rank}. {layer}: {fault.kind.value}, {errors}", names=names_of_fault(fault))
    more = len(result.faults) - len(named)
    if more:
        yield f"and {more} more, see result.json"


def _lines(lines: Sequence[str], y: float, attributes: str = "") -> Iterator[str]:
    """Below one another."""
    for place, line in enumerate(lines):
        yield _text(_LEFT, y + _LINE * place, line, attributes, length=len(line) + 1)
