"""Texts of others in Markdown that people also read as it is: nothing in them is markup."""

from __future__ import annotations

import re

from conrepair.runtime.words import printable

__all__ = ["plain"]

_MARKUP = re.compile(r"[\\`*\[\]<>~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def plain(text: str) -> str:
    """A text in one line, with what Markdown acts on behind a backslash.

    Args:
        text: A name, or what a tool says.
    """
    return _MARKUP.sub(r"\\\g<0>", printable(text))
