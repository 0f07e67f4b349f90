"""Results on the screen; several targets of one source, one behind the other, and where their files go."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from conrepair.application.pipeline.subject import slug
from conrepair.application.report.console import print_result
from conrepair.application.report.machine.sarif import github_lines
from conrepair.application.report.result import AuditResult
from conrepair.application.report.saved import result_text
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.path_text import FileNames
from conrepair.ground.runtime.shown.progress import output_console, say
from conrepair.ground.runtime.words import complain


def tell(result: AuditResult, form: str, folder: Path | None) -> None:
    """Show a result.

    Args:
        result: Of a verb.
        form: "json" for the document, "github" for text with lines at its files behind it.
        folder: Where its files are; None: there are none.
    """
    if form == "json":
        say(result_text(result))
        return
    print_result(result, output_console(), folder)
    for line in github_lines(result) if form == "github" else ():
        say(line)


def each_target(options: argparse.Namespace, look: Callable[[argparse.Namespace], int]) -> int:
    """Look at each target; what keeps one of several from being looked at doesn't keep the others.

    Args:
        options: Of a verb with `targets`; where there are several, each gets a folder of its name in `output`.
        look: Given the options with `target`, returns the exit code.

    Returns:
        The worst exit code.

    Raises:
        ConrepairError: what is wrong with the only target.
    """
    if len(options.targets) < 2:
        return look(_with(options, options.targets[0] if options.targets else None, options.output))
    worst = 0
    for target, folder in zip(options.targets, _folders(options), strict=True):
        if options.format != "json":
            say(f"\n{target}")
        try:
            code = look(_with(options, target, folder))
        except ConrepairError as error:
            complain(f"conrepair: {target}: {error}")
            code = int(error.exit_code)
        worst = max(worst, code)
    return worst


def _folders(options: argparse.Namespace) -> Iterator[str | None]:
    """Of each target: files of one name are numbered."""
    names = FileNames()
    for place, target in enumerate(options.targets):
        name = names.of(place, slug(Path(target)))
        yield None if options.output is None else str(Path(options.output) / name)


def _with(options: argparse.Namespace, target: str | None, output: str | None) -> argparse.Namespace:
    return argparse.Namespace(**(vars(options) | {"target": target, "output": output}))
