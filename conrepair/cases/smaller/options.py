"""Options of systems left to their defaults."""

from __future__ import annotations

import functools

from conrepair.cases.draft import Change, Draft, Way

__all__ = ["OPTIONS"]


def _left_out(draft: Draft) -> list[Change]:
    return [
        functools.partial(_leave_out, system=system, name=name)
        for system, named in draft.options.items()
        for name in named
    ]


def _leave_out(draft: Draft, system: str, name: str) -> None:
    del draft.options[system][name]
    if not draft.options[system]:
        del draft.options[system]


OPTIONS = Way("options", (_left_out,))
