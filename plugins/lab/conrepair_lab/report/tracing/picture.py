"""The relative error behind each kernel of a run, as an SVG: a row a tensor, both sides in it, small ones left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape

from conrepair.ground.runtime.words import shortened
from conrepair_lab.tracing.propagation import KernelError
from conrepair_lab.tracing.result import Traced

_ROW, _LEFT, _WIDTH, _TOP, _RIGHT = 18, 260, 420, 58, 250
_LEAST, _MOST = -8, 0  # powers of ten
_NAME = 36
_CHANGES = {
    "generated": ("#c0392b", "adds an error"),
    "differs": ("#8e44ad", "differs from the other side"),
    "amplified": ("#d68910", "amplifies the error"),
    "damped": ("#2471a3", "reduces the error"),
    "cancelled": ("#2471a3", "cancels the error"),
}
"""The colour and the words of what kernels do to an error."""

_PLAIN = ("#7f8c8d", "")


def kernels_svg(traced: Traced) -> str:
    """Draw it.

    Args:
        traced: With the kernels of one side at least.

    Returns:
        "" where there are none.
    """
    found = traced.kernels
    rows = list(dict.fromkeys(item.tensor for item in (*found.against, *found.setting)))
    if not rows:
        return ""
    height = _TOP + _ROW * len(rows) + 10
    places = {tensor: _TOP + _ROW * place + _ROW / 2 for place, tensor in enumerate(rows)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + _RIGHT} {height}" '
        f'font-family="sans-serif" font-size="11">',
        f"<title>{escape(f'{traced.setting.name} beside {traced.against.name}')}</title>",
        *_scale(height),
        _text(
            _LEFT,
            14,
            f"relative error behind each kernel: {traced.against.name} (hollow), {traced.setting.name} (filled)",
            "start",
        ),
        *(_text(_LEFT - 8, y + 4, shortened(tensor, _NAME), "end") for tensor, y in places.items()),
        *_marks(found.against, places, filled=False),
        *_marks(found.setting, places, filled=True),
        *_told((*found.setting, *found.against), places),
        "</svg>",
    ]
    return "\n".join(parts)


def _x(error: float) -> float:
    power = _LEAST if error <= 0 else min(max(math.log10(error), _LEAST), _MOST) if math.isfinite(error) else _MOST
    return _LEFT + _WIDTH * (power - _LEAST) / (_MOST - _LEAST)


def _scale(height: float) -> Iterator[str]:
    for power in range(_LEAST, _MOST + 1, 2):
        x = _x(10.0**power)
        yield f'<line x1="{x:g}" y1="{_TOP - 6}" x2="{x:g}" y2="{height}" stroke="#d5d8dc"/>'
        yield _text(x, _TOP - 12, f"{100 * 10.0**power:.{max(-power - 2, 0)}f} %", "middle")


def _marks(found: Iterable[KernelError], places: dict[str, float], *, filled: bool) -> Iterator[str]:
    for item in found:
        colour, _ = _CHANGES.get(item.change, _PLAIN)
        fill = colour if filled else "none"
        y = places[item.tensor]
        yield (
            f'<line x1="{_x(item.incoming):g}" y1="{y:g}" x2="{_x(item.outgoing):g}" y2="{y:g}" stroke="{colour}" '
            f'stroke-dasharray="{"none" if filled else "2 2"}"/>'
            f'<circle cx="{_x(item.outgoing):g}" cy="{y:g}" r="4" fill="{fill}" stroke="{colour}"/>'
        )


def _told(found: Iterable[KernelError], places: dict[str, float]) -> Iterator[str]:
    told = set()
    for item in found:
        if item.change in _CHANGES and item.tensor not in told:
            told.add(item.tensor)
            words = f"{_CHANGES[item.change][1]}: {shortened(', '.join(item.operators or item.kernel), _NAME)}"
            yield _text(_LEFT + _WIDTH + 10, places[item.tensor] + 4, words, "start")


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'
