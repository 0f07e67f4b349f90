"""Tables for spreadsheets: a text in a cell stays a text, whatever a spreadsheet would make of it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from conrepair.ground.runtime.words import printable

# Texts of others in Markdown that people also read as it is: nothing in them is markup.

_MARKUP = re.compile(r"[\\`*\[\]<>~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def plain(text: str) -> str:
    """A text in one line, with what Markdown acts on behind a backslash.

    Args:
        text: A name, or what a tool says.
    """
    return _MARKUP.sub(r"\\\g<0>", printable(text))


_BREAKS = "\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029"
# Where a cell begins; for those who part lines at `;` or at tabs, or know no quotes, behind these, too.
_BEGIN = rf"(?:^|(?<=[;{_BREAKS}]))"
_UNSEEN = r'[\s"\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060\ufeff]*'
_FORMULA = re.compile(rf"{_BEGIN}(?={_UNSEEN}['=+@\-\uff1d\uff0b\uff20\uff0d])")
_MARKED = re.compile(rf"{_BEGIN}'")
_QUOTED = re.compile(r'[,;"]|^ | $')


def csv_text(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table as CSV (RFC 4180, but that lines end with a line feed).

    Texts that a spreadsheet would take for a formula have an apostrophe in front, as OWASP advises, and so have those
    that begin with one: `original_text` takes it away. Numbers stay numbers, negative ones too; what's true or false
    is `true` or `false`, and None an empty cell.

    Args:
        header: Names of the columns.
        rows: Their cells: texts, numbers, truth values, None.
    """
    return "".join(f"{','.join(map(_cell, row))}\n" for row in (header, *rows))


def original_text(cell: str) -> str:
    """A text as it was before `csv_text` wrote it.

    Args:
        cell: As a reader of CSV gives it.
    """
    return _MARKED.sub("", cell)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return str(value)
    text = _FORMULA.sub("'", value)
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if _QUOTED.search(text) or not text.isprintable() else text
