"""Values that programs stumble over."""

from __future__ import annotations

import random
from typing import Any

__all__ = ["odd_json", "odd_text", "odd_whole", "shuffled_json"]

_WHOLE = (0, 1, -1, 2, 7, 127, 255, 256, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**63 - 1, -(2**63), 2**64, 10**18)
_TEXT = (
    "", " ", ".", "..", "/", "a/b", "../x", "/dev/null", "/dev/zero", "x" * 300, "x" * 5000, "a\0b", "\ud800",
    "é", "²", "٣", "😀", "\x1b[31mred", "a\nb", "-", "--", "--help", "=", ":", ",", ",,", "=,:", "NaN", "nan",
    "inf", "-inf", "1e999", "1e12", "0x10", "1_0", "9" * 5000, "-1", "0", "True", "null", "{}", "[", "%s%n", "$HOME",
    "`id`", "*", "[a-", "(?P<", "\\", "'", '"',
)  # fmt: skip


def odd_whole(draw: random.Random) -> int:
    """A whole number at an edge of some type."""
    return draw.choice(_WHOLE)


def odd_text(draw: random.Random) -> str:
    """A text that is no name, no path, no number, or one of a strange sort."""
    return draw.choice(_TEXT)


def odd_json(draw: random.Random) -> Any:
    """A value of JSON."""
    kind = draw.randrange(9)
    if kind < 3:
        return odd_text(draw)
    if kind < 5:
        return odd_whole(draw)
    if kind == 5:
        return draw.choice([None, True, False, 0.5, -0.0, 1e308, 5e-324, 10**40])
    if kind == 6:
        return draw.choice([[], {}, [[]], [None], {"": None}, [0] * 1000, {"name": "x"}])
    if kind == 7:
        return [odd_json(draw) for _ in range(draw.randrange(4))]
    return {odd_text(draw): odd_json(draw) for _ in range(draw.randrange(4))}


def shuffled_json(value: Any, draw: random.Random) -> Any:
    """The same with one place changed: another value, a key or an item gone, twice, or renamed.

    Args:
        value: Of JSON; it's left as it is.
        draw: Decides where and how.
    """
    if not isinstance(value, dict | list) or not value:
        return _like(value, draw) if draw.random() < 0.6 else odd_json(draw)
    if draw.random() < 0.06:
        return odd_json(draw)
    if isinstance(value, list):
        items, place = list(value), draw.randrange(len(value))
        deed = draw.randrange(8)
        if deed == 0:
            del items[place]
        elif deed == 1:
            items.insert(place, items[place])
        else:
            items[place] = shuffled_json(items[place], draw)
        return items
    key = draw.choice(list(value))
    deed = draw.randrange(10)
    if deed == 0:
        return {name: item for name, item in value.items() if name != key}
    if deed == 1:
        return {odd_text(draw) if name == key else name: item for name, item in value.items()}
    if deed == 2:
        return value | {odd_text(draw): odd_json(draw)}
    return value | {key: shuffled_json(value[key], draw)}


def _like(value: Any, draw: random.Random) -> Any:
    """Another value of the same type, near or far."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice([value + 1, value - 1, 0, 3, -value, 10 * value, odd_whole(draw)])
    if isinstance(value, float):
        return draw.choice([0.0, 1.0, -value, 1e-30, 1e30, 0.5, 3])
    if isinstance(value, str):
        return draw.choice([value.upper(), value[:-1], f"{value}x", f"{value}/{value}", odd_text(draw)])
    return odd_json(draw)
