"""Cases that can't be measured."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["UnfitError"]


@dataclass
class UnfitError(Exception):
    """The case can't be measured.

    Attributes:
        status: "no place" for the fault; "no effect" where it has one; "not injected": putting it in failed; "no
            model" came out of a converter; "unverified": what was meant to be correct isn't.
        words: More.
    """

    status: str
    words: str = ""
