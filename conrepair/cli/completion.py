"""Completion of verbs, options and files in a shell, made of the parser by shtab."""

from __future__ import annotations

import shtab

from conrepair.cli.parser import Parser, Verbs

__all__ = ["completion"]

_FILES = frozenset({"SOURCE", "MODEL", "CONFIG", "FILE", "PATH", "PATCH", "RECIPE", "OUTPUT"})


def completion(parser: Parser, shell: str) -> str:
    """The script that a shell reads at its start.

    Args:
        parser: Of the whole command line; descriptions of its verbs are changed.
        shell: bash, zsh or fish.
    """
    (verbs,) = (action for action in parser._actions if isinstance(action, Verbs))
    for shown in verbs._choices_actions:
        verbs.choices[shown.dest].description = shown.help  # one line, where the help has several
    for verb in verbs.choices.values():
        for action in verb._actions:
            # A pair's second model is a TARGET, and so is what TVM's option --target generates code for.
            if action.metavar in _FILES or (action.metavar == "TARGET" and not action.option_strings):
                vars(action)["complete"] = shtab.FILE
            elif action.metavar == "FOLDER":
                vars(action)["complete"] = shtab.DIRECTORY
    return shtab.complete(parser, shell)
