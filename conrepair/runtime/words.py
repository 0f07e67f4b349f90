"""Names and numbers as a person reads them."""

from __future__ import annotations

import math

__all__ = ["number", "printable", "shortened"]


def printable(text: str) -> str:
    r"""Characters that a terminal or an XML parser acts on, as escapes (`\x1b`): names come from files."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def shortened(text: str, length: int) -> str:
    """Printable, and cut in the middle: the ends of a layer's name tell more than what's between.

    Args:
        text: Any.
        length: That it may have, at least 3.
    """
    text = printable(text)
    if len(text) <= length:
        return text
    head = (length - 1) // 3
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"


def number(value: float) -> str:
    """Two digits; "infinite" and "not a number" in words."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "infinite"
    return f"{value:.2g}"
