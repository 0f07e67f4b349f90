"""The page of the command line's reference: each verb's usage, examples and options, made of the parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from conrepair.application.cli.main import command_line
from conrepair.application.cli.parser import EXIT_CODES, Parser, Verbs


def page() -> str:
    """Markdown."""
    parser = command_line()
    (verbs,) = (action for action in parser._actions if isinstance(action, Verbs))
    parts = [
        "# The command line\n",
        f"{parser.description}\n",
        f"```text\n{EXIT_CODES}\n```\n",
        *(part for name, verb in verbs.choices.items() for part in _verb(name, verb)),
    ]
    return "\n".join(parts)


def _verb(name: str, parser: Parser) -> Iterator[str]:
    usage = (parser.usage or "").replace("\n       ", "\n")
    yield f"## {name}\n\n{parser.description}\n\n```sh\n{usage}\n```\n"
    yield "```sh\n" + "".join(f"{command}\n" for command in parser.examples) + "```\n"
    yield "| group | option | meaning |\n|---|---|---|"
    for group in parser._action_groups:
        for action in group._group_actions:
            meaning = (action.help or "") % (vars(action) | {"prog": parser.prog})
            yield f"| {group.title} | {_called(action)} | {meaning} |"
    yield ""


def _called(action: argparse.Action) -> str:
    """As it's typed."""
    value = action.metavar or ("" if action.nargs == 0 else "{" + ",".join(map(str, action.choices or ())) + "}")
    if not action.option_strings:
        return f"`{value}`"
    takes = f" {value}" if action.nargs != 0 else ""
    return ", ".join(f"`{name}{takes}`" for name in action.option_strings)
