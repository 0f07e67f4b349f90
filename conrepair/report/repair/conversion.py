"""What was done about a conversion that failed, in words."""

from __future__ import annotations

from conrepair.repairs.conversion.result import Mending, Stop
from conrepair.runtime.words import shortened

__all__ = ["NOT_COMPARED", "conversion_lines"]

NOT_COMPARED = "converted, not compared"
_NODES, _ERROR, _NAME, _REASON = 4, 160, 60, 300


def conversion_lines(done: Mending) -> list[str]:
    """What stopped the conversion, and what repaired it.

    Args:
        done: Of a conversion.
    """
    lines = [_stop(stop) for stop in done.stops]
    found = done.mended
    if found is not None:
        lines.append(f"repaired: {found.words}: {found.outcome}")
        return lines
    if done.hindered:
        return [*lines, f"not repaired: other ways can't be tried: {done.hindered}"]
    ways = f"{len(done.tried)} other ways were tried" if done.tried else "there is no other way to try"
    lines.append(f"not repaired: {ways}" + ("" if done.in_time else "; the time was up before all were"))
    unproven = [item.outcome for item in done.tried if item.outcome.startswith(NOT_COMPARED)]
    if unproven:
        reason = shortened(unproven[0].removeprefix(f"{NOT_COMPARED}: "), _REASON)
        lines.append(f"{len(unproven)} of them convert, but nothing says that they do so rightly: {reason}")
    return lines


def _stop(stop: Stop) -> str:
    error = shortened(" ".join(stop.error.split()), _ERROR)
    if not stop.operators:
        return f"{stop.converter} fails: {error}" + (f" ({stop.note})" if stop.note else "")
    pairs = [
        f"{operator} `{shortened(name, _NAME)}`" for operator, name in zip(stop.operators, stop.nodes, strict=True)
    ]
    listing = ", ".join(pairs[:_NODES]) + (f" and {len(pairs) - _NODES} more" if len(pairs) > _NODES else "")
    least = "" if stop.exact else "at most "
    size = f"{least}{len(pairs)} of {stop.of} nodes, {stop.tries} tries in {stop.seconds:.1f} s"
    return f"{stop.converter} stops at {listing} ({size}): {error}"
