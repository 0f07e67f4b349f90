"""Options as Python calls them: messages speak of --data, which is `data=` there."""

from __future__ import annotations

import re

_FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*)\b(?! on the command line)(?: (\d+\b|[\w=]+,[\w,:]*\w))?")
_ARGUMENTS: dict[str, str] = {}


def declare_flag(flag: str, argument: str) -> None:
    """Say how Python calls an option of a shell; what was said first stays.

    Args:
        flag: As it's typed.
        argument: "data=", or with its value "trust=True".
    """
    _ARGUMENTS.setdefault(flag, argument)


def in_python(text: str) -> str:
    """A text in which options are called as from Python: `data=` for --data, `trust=True` for --trust.

    Args:
        text: Of an error, or what helps further.
    """
    return _FLAG.sub(
        lambda found: f"{_ARGUMENTS[found[1]]}{found[2] or ''}" if found[1] in _ARGUMENTS else found[0], text
    )
