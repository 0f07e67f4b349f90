"""The reference of verbs in docs/, in a shell and in Python: `python -m conrepair.application.cli.reference`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from conrepair.application.cli.main import command_line
from conrepair.application.cli.parser import EXIT_CODES, Parser, Verbs
from conrepair.application.verbs.generate import OneByOne
from conrepair.application.verbs.options import Build, Compare, Convert, Execute, Inputs, Inspect, Localize, Repair

_DOCS = Path(__file__).parents[3] / "docs"
_VERBS = (Compare, Localize, Repair, Convert, Execute, Build, Inspect, Inputs)
_BEGIN = "## Options\n"


def reference(parser: Parser) -> str:
    """Markdown of all verbs with their options.

    Args:
        parser: Of the whole command line.
    """
    (verbs,) = (action for action in parser._actions if isinstance(action, Verbs))
    parts = [
        "# The command line\n",
        "Made of the parser by `python -m conrepair.application.cli.reference`; a test compares both.\n",
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


def python_options(page: str) -> str:
    """The page of Python's verbs, with what each takes at its end.

    Args:
        page: As it is.
    """
    told = page.partition(_BEGIN)[0] + _BEGIN
    parts = [told, "Made of the verbs' options by `python -m conrepair.application.cli.reference`.\n"]
    for name, verb in [*((verb.__name__.lower(), verb) for verb in _VERBS), ("generated", OneByOne)]:
        rows = [f"| `{option}` | {verb.meaning(option, flags=False)} |" for option, _, _ in verb.declared()]
        parts += [f"### {name}\n\n| option | meaning |\n|---|---|", *rows, ""]
    return "\n".join(parts)


if __name__ == "__main__":
    (_DOCS / "command-line.md").write_text(reference(command_line()), encoding="utf-8")
    python = _DOCS / "python.md"
    python.write_text(python_options(python.read_text(encoding="utf-8")), encoding="utf-8")
