"""Names and numbers as a person reads them."""

from __future__ import annotations

import difflib
import itertools
import math
import re
import sys
from collections.abc import Container, Iterable, Mapping

_MOST_DIGITS = 8  # of float32
_LEAST_SHARE = 1e-6  # smaller ones are told as below 0.0001 %
_MANY = 10.0  # from here on times, not per cent
_NAME = 48  # letters of a name that a person takes in


def free_name(name: str, taken: Container[str], mark: str) -> str:
    """A name that isn't taken: the given one, or that with a number behind it, from 2 on.

    Args:
        name: The wished one.
        taken: The others.
        mark: Stands in front of the number.
    """
    numbered = (f"{name}{mark}{number}" for number in itertools.count(2))
    return name if name not in taken else next(item for item in numbered if item not in taken)


def printable(text: str) -> str:
    r"""Characters that a terminal or an XML parser acts on, as escapes (`\x1b`): names come from files."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def harmless(text: str) -> str:
    """The same for what has lines: their ends and tabs stay."""
    return (
        text if text.isprintable() else "".join(letter if letter in "\n\t" else printable(letter) for letter in text)
    )


def complain(text: str) -> None:
    """Write to standard error."""
    sys.stderr.write(f"{harmless(text)}\n")


def lines_of(error: BaseException) -> list[str]:
    """What an error says, line by line; its type where it says nothing."""
    lines = (line.strip() for line in str(error).splitlines())
    return [line for line in lines if line] or [type(error).__name__]


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


def quoted(text: str, length: int = _NAME, names: Mapping[str, str] | None = None) -> str:
    """A sentence with the long names in it cut in the middle, and all else whole: the fact is never cut.

    Args:
        text: Names in it have no spaces.
        length: That a name may have.
        names: What to call some of them instead.
    """
    if names and (there := [name for name in names if name in text]):
        known = re.compile("|".join(re.escape(name) for name in sorted(there, key=len, reverse=True)))
        text = known.sub(lambda found: names[found[0]], text)
    long = re.compile(rf"[^\s`'\"()]{{{length + 1},}}")
    return long.sub(lambda found: shortened(found[0], length), printable(text))


def meant(name: str, known: Iterable[str], otherwise: str = "", *, most: int = 1) -> str:
    """What follows behind a name that doesn't exist: "; did you mean 'O3'?".

    Args:
        name: As it was given.
        known: Names that exist.
        otherwise: What to say where none of them is like it; "" for nothing.
        most: Names that the question may have.
    """
    close = difflib.get_close_matches(name, list(known), n=most)
    words = f"did you mean {' or '.join(map(repr, close))}?" if close else otherwise
    return words and f"; {words}"


def number(value: float) -> str:
    """Two digits; "infinite" and "not a number" in words."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "infinite"
    return f"{value:.2g}"


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 build", "1,200 builds"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def percent(share: float) -> str:
    """A share or a relative error as all texts for people tell it, with two digits: "0.47 %", "16 %", "1,500 times".

    Args:
        share: 1 is 100 %. Files for programs have the number itself.
    """
    if math.isnan(share):
        return "not a number"
    if math.isinf(share):
        return "infinite" if share > 0 else "-infinite"
    size = abs(share)
    if 0 < size < _LEAST_SHARE:
        return "below 0.0001 %"
    sign = "-" if share < 0 else ""
    rounded = float(f"{size:.1e}")
    if rounded >= _MANY:
        return f"{sign}{rounded:,.0f} times"
    digits = max(0, 1 - math.floor(math.log10(rounded * 100))) if rounded else 0
    return f"{sign}{rounded * 100:.{digits}f} %"


def times(ratio: float) -> str:
    """How many times larger, with two digits: "1.5 times", "16,000,000 times".

    Args:
        ratio: Not below zero.
    """
    return percent(ratio) if not ratio < _MANY else f"{ratio:.2g} times"


def telling(value: float, neutral: float = 1.0, digits: int = 3) -> str:
    """As many digits as it takes to tell a number from what would say nothing: a factor of 1.0002 isn't 1.

    Args:
        value: A factor, a cosine.
        neutral: What it would be where nothing differs.
        digits: At least.
    """
    texts = (f"{value:.{places}g}" for places in range(digits, _MOST_DIGITS + 1))
    return next((text for text in texts if float(text) != neutral), f"{neutral:g}")


def are_numbered(names: Iterable[str]) -> bool:
    """Whether names differ by a number at their end alone, which is an order: output_0 and output_1.

    Args:
        names: Any.
    """
    return len({re.sub(r"[_:]?\d*$", "", name) for name in names}) <= 1


def natural_order(names: Iterable[str]) -> list[str]:
    """Names with their numbers in order: output_2 before output_10."""

    def key(name: str) -> list[int | str]:
        return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]

    return sorted(names, key=key)
