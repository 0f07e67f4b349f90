"""Completion of verbs, options and files in a shell, made of the parser by shtab."""

from __future__ import annotations

import argparse

import shtab

from conrepair.application.cli.main import command_line
from conrepair.application.cli.parser import Parser, Verbs, path_kind
from conrepair.ground.runtime.shown.progress import say

_COMPLETED = {"file": shtab.FILE, "folder": shtab.DIRECTORY}


def script_of(parser: Parser, shell: str) -> str:
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
            if kind := path_kind(action):
                vars(action)["complete"] = _COMPLETED[kind]
    return shtab.complete(parser, shell)


def completion(options: argparse.Namespace) -> int:
    """What the verb does; the exit code."""
    say(script_of(command_line(), options.shell))
    return 0
