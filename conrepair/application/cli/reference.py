"""The page of verbs in docs/, a line each: `python -m conrepair.application.cli.reference`."""

from __future__ import annotations

from pathlib import Path

from conrepair.application.cli.main import command_line
from conrepair.application.cli.parser import EXIT_CODES, Parser, Verbs


def verbs_in_short(parser: Parser) -> str:
    """Markdown of all verbs, a line each. Their options are in `--help`, and in the site of docs/.

    Args:
        parser: Of the whole command line.
    """
    (verbs,) = (action for action in parser._actions if isinstance(action, Verbs))
    rows = "\n".join(f"| `{action.dest}` | {action.help} |" for action in verbs._choices_actions)
    return f"""# The command line

Made of the parser by `python -m conrepair.application.cli.reference`. `conrepair VERB --help` has a verb's options,
and so has this page of the site (`make site`).

```text
{EXIT_CODES}
```

| verb | what it does |
|---|---|
{rows}
"""


if __name__ == "__main__":
    page = Path(__file__).parents[3] / "docs" / "command-line.md"
    page.write_text(verbs_in_short(command_line()), encoding="utf-8")
