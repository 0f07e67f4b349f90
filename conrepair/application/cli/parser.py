"""How verbs are declared: groups of options, examples, and errors that say what was meant."""

from __future__ import annotations

import argparse
import inspect
import shutil
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from conrepair.ground.runtime.errors import ExitCode, UsageError
from conrepair.ground.runtime.libraries import brings
from conrepair.ground.runtime.path_text import path_problem
from conrepair.ground.runtime.words import harmless, meant

EXIT_CODES = """exit codes:
  0 the same (up to rounding, tolerance, or the quantization you asked for), or done;
  1 a difference or a fault was found, or it can't be told;
  2 wrong usage, configuration or data; 3 a model can't be loaded;
  4 a conversion or a run failed, time was up, or no result could be written; 130 interrupted."""

_GROUPS = ("models", "inputs", "tolerances", "search", "compiler", "output", "general")
_WIDTH = 100
_MARGIN = 28  # in front of what an option means
_FEW = 4  # options that are left out of the help: where it were fewer, none is
_FILES = frozenset({"ORIGINAL", "CONVERTED", "MODEL", "CONFIG", "FILE", "PATH", "PATCH", "RECIPE", "OUTPUT"})
Verbs = argparse._SubParsersAction


class _Help(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal, where it isn't very wide."""

    def __init__(self, prog: str) -> None:
        columns = shutil.get_terminal_size((_WIDTH, 0)).columns
        super().__init__(prog, max_help_position=_MARGIN, width=min(columns, _WIDTH))

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Names with hyphens stay whole."""
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """What an option takes once, and not behind each of its names."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        takes = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {takes}"


class _HelpOfAll(argparse.Action):
    """The help with the options that few need."""

    def __call__(self, parser: Any, *_: Any) -> None:
        """Show it, and end."""
        parser.seldom.clear()
        parser.print_help()
        parser.exit()


class Parser(argparse.ArgumentParser):
    """One verb, or all of them.

    Attributes:
        examples: Commands.
        seldom: Options that few need: the help names them, and `--help-all` says what they mean.

    Args:
        prog: As it's typed.
        about: Whole sentences.
        takes: What follows in the usage line.
        examples: Each a command, and what it does.
        **others: Those of argparse.
    """

    def __init__(
        self, prog: str, *, about: str, takes: str, examples: Sequence[tuple[str, str]] = (), **others: Any
    ) -> None:
        shown = "".join(_example(*example) for example in examples)
        super().__init__(
            prog=prog,
            usage=f"{prog} {takes}",
            description=textwrap.fill(about, _WIDTH),
            epilog=(f"examples:\n{shown}\n" if shown else "") + EXIT_CODES,
            formatter_class=_Help,
            add_help=False,
            allow_abbrev=False,  # `--sample` was taken for --samples
            **others,
        )
        self.examples = tuple(command for command, _ in examples)
        self._groups = {title: self.add_argument_group(title) for title in _GROUPS}  # empty ones aren't shown
        self.seldom: list[argparse.Action] = []
        self["general"].add_argument("-h", "--help", action="help", help="Show this help and exit.")
        self._mixing = False

    def __getitem__(self, title: str) -> argparse._ArgumentGroup:
        """A group of options."""
        return self._groups[title]

    def format_help(self) -> str:
        """What the verb does, and what its options mean; those that few need are only named."""
        left_out = self.seldom if len(self.seldom) >= _FEW else []
        names = ", ".join(action.option_strings[-1] for action in left_out)
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, (), ())
        formatter.add_text(self.description)
        for group in self._action_groups:
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(action for action in group._group_actions if action not in left_out)
            formatter.end_section()
        if left_out:
            more = f"{len(left_out)} more options, with their meaning in `{self.prog} --help-all`: {names}"
            formatter.add_text(textwrap.fill(more, formatter._width, break_on_hyphens=False))
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse; where words are left over, once more with options that may stand between models."""
        options, rest = super().parse_known_args(args, namespace)
        if not rest or self._mixing or self._subparsers is not None:
            return options, rest
        self._mixing = True  # what argparse has for that calls this method again
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False

    def error(self, message: str) -> NoReturn:
        """End with what was wrong and where help is; argparse's own message shows all options first."""
        self.exit(int(ExitCode.USAGE), harmless(f"conrepair: {message}\nSee `{self.prog} --help`.\n"))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Say what may have been meant by a word that isn't one of those allowed."""
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in getattr(action.choices, "everything", action.choices)]
        if isinstance(action, Verbs) and (hint := brings(str(value))):
            raise argparse.ArgumentError(None, f"verb: {value!r} isn't installed{hint}")
        if isinstance(action, Verbs) and value in _ELSEWHERE:
            raise argparse.ArgumentError(None, f"there's no verb {value}: {_ELSEWHERE[value]}.")
        what = "verb" if isinstance(action, Verbs) else argparse._get_action_name(action)
        raise argparse.ArgumentError(
            None, f"{what}: {value!r} isn't known{meant(str(value), known)} (known: {', '.join(known)})"
        )


def _example(command: str, words: str) -> str:
    """A command and what it does, in one line where they fit."""
    line = f"  {command}  # {words}\n"
    return line if len(line) <= _WIDTH else f"  {command}\n      # {words}\n"


class Catalogue(dict[str, "Callable[[Verbs[Parser]], None]"]):
    """Verbs of a sort by their names, in the order of help: each puts its parser to those of others.

    Args:
        package: Of the modules that do what verbs say.
    """

    def __init__(self, package: str = "conrepair.application.cli.commands") -> None:
        super().__init__()
        self._package = package

    def verb(
        self,
        takes: str,
        *,
        examples: Sequence[tuple[str, str]],
        runs: str = "",
        keeps: bool = True,
        files: Sequence[str] = (),
    ) -> Callable[[Callable[[Parser], None]], Callable[[Parser], None]]:
        """Make a verb of a function that declares its options; name, help and description are the function's.

        Args:
            takes: What follows the verb in the usage line.
            examples: Each a command, and what it does.
            runs: "module:function" in the package, which is given the options and returns the exit code; default:
                both called as the verb is. It's imported when it's called: what it needs takes seconds to import.
            keeps: Whether finished steps of a run that is interrupted are kept.
            files: Options that name models, which must be there.
        """

        def declared(declare: Callable[[Parser], None]) -> Callable[[Parser], None]:
            name, (words, _, about) = declare.__name__, inspect.cleandoc(declare.__doc__ or "").partition("\n\n")

            def add(verbs: Verbs[Parser]) -> None:
                parser: Parser = verbs.add_parser(name, help=words, about=about, takes=takes, examples=examples)
                declare(parser)
                general = parser["general"]
                general.add_argument("-q", "--quiet", action="store_true", help="Show no progress.")
                timings = general.add_argument(
                    "--timings",
                    action="store_true",
                    help="Show at the end where the time went, job by job (on standard error).",
                )
                parser.seldom.append(timings)
                general.add_argument("--help-all", action=_HelpOfAll, nargs=0, help="Show all options and exit.")
                command = f"{self._package}.{runs or f'{name}:{name}'}"
                parser.set_defaults(command=command, keeps=keeps, files=tuple(files), parser=parser)

            self[name] = add
            return declare

        return declared


_ELSEWHERE = {
    "--backend": "`conrepair execute MODEL --backend NAME` compares a model on a backend with its own library, "
    '`conrepair run CONFIG` with "backends" in the configuration several',
    "matrix": "`conrepair run CONFIG` with `conversions` of each model compares what they make",
    "--suspicious": "layers aren't ranked any more, as `conrepair localize` names those at fault without it",
}
"""Options and verbs that were, or are looked for, where they aren't: what there is instead."""


def check_rest(options: argparse.Namespace, rest: Sequence[str]) -> None:
    """Refuse what no option takes.

    Raises:
        UsageError: with the option that may have been meant.
    """
    if not rest:
        return
    parser: Parser = options.parser
    word, known = rest[0].partition("=")[0], list(parser._option_string_actions)
    if word in _ELSEWHERE:
        raise UsageError(f"{parser.prog} has no {word}: {_ELSEWHERE[word]}.")
    what = "there's no option" if word.startswith("-") else "there's nothing that would take"
    raise UsageError(f"{what} {word}{meant(word, known)}\nSee `{parser.prog} --help`.")


def path_kind(action: argparse.Action) -> str:
    """What an argument names on the disk: "file", "folder", or "" for something else."""
    if action.metavar in _FILES:
        return "file"
    return "folder" if action.metavar == "FOLDER" else ""


def check_paths(options: argparse.Namespace) -> None:
    """Refuse what can't be the path of anything, before work is done for it.

    Raises:
        UsageError: with the argument and the reason.
    """
    for action in options.parser._actions:
        if not path_kind(action):
            continue
        given = getattr(options, action.dest, None)
        for text in given if isinstance(given, list) else [given]:
            if text and (problem := path_problem(text, output=action.dest == "output")):
                raise UsageError(f"{argparse._get_action_name(action)}: {problem}")
