"""Verbs of what's on this machine: converters, libraries, environments, kept results, the shell."""

from __future__ import annotations

import argparse

from conrepair.cli.parser import Parser, Verbs
from conrepair.cli.shared import add_format, add_quiet
from conrepair.verbs.numbers import gigabytes

__all__ = ["add_machine_verbs"]


def add_machine_verbs(verbs: Verbs[Parser]) -> None:
    """Declare them."""
    for add in (_add_converters, _add_doctor, _add_environments, _add_cache, _add_completion):
        add(verbs)


def _add_converters(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "converters",
        help="List the converters and their options.",
        prog="conrepair converters",
        about="List the converters, from which format to which each converts, and its options.",
        takes="[OPTIONS]",
        examples=[("conrepair converters", "list them")],
    )
    add_quiet(parser)

    def run(_: argparse.Namespace) -> int:
        from conrepair.converters.listing import listing
        from conrepair.runtime.progress import say

        say(listing())
        return 0

    parser.runs(run)


def _add_doctor(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "doctor",
        help="Check what's installed here, and what to do about the rest.",
        prog="conrepair doctor",
        about="Check the libraries, converters, backends and environments that are installed, and print the command "
        "that installs or fixes each of the others. What works was tried; what's installed is there, and wasn't. "
        "GPUs are asked for in a worker, as they're used there. The exit code is 1 if something fails.",
        takes="[OPTIONS]",
        examples=[("conrepair doctor", "try everything that's installed")],
    )
    add_format(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.cli.commands.doctor import doctor

        return doctor(as_json=options.format == "json", quiet=options.quiet)

    parser.runs(run)


def _add_environments(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "environments",
        help="List, make or remove converters' own environments.",
        prog="conrepair environments",
        about="List, make or remove the environments of converters whose versions conflict with ours, and those of "
        "other releases that campaigns run. They're made when they're first needed; `make` does that beforehand.",
        takes="[{list,make,remove}] [NAME] [OPTIONS]",
        examples=[
            ("conrepair environments", "list them, with their sizes"),
            ("conrepair environments make onnx2tf", "make one"),
        ],
    )
    parser["models"].add_argument(
        "action", nargs="?", choices=("list", "make", "remove"), default="list", help="What to do (default: list)."
    )
    parser["models"].add_argument(
        "name", metavar="NAME", nargs="?", help="Environment to make or remove; library==version for another release."
    )
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.cli.commands.environments import environments

        return environments(options.action, options.name, quiet=options.quiet)

    parser.runs(run)


def _add_cache(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "cache",
        help="Show or clear the results that commands of one or two files keep.",
        prog="conrepair cache",
        about="Show where compare, localize, repair, convert and execute keep what they've done, what it takes and "
        "its limit, or clear it. What nobody has asked for for longest goes first where there's more than the limit.",
        takes="[{show,clear}] [OPTIONS]",
        examples=[
            ("conrepair cache", "the place, the limit, and what's in it by kind"),
            ("conrepair cache --limit 20", "let it take 20 GB from now on"),
            ("conrepair cache clear", "remove all of it"),
        ],
    )
    parser["models"].add_argument(
        "action", nargs="?", choices=("show", "clear"), default="show", help="What to do (default: show)."
    )
    parser["output"].add_argument(
        "--limit",
        type=gigabytes,
        metavar="GB",
        help="Let it take so many gigabytes from now on; 0 keeps no results (default: 5, or CONREPAIR_CACHE_LIMIT).",
    )
    add_format(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.cli.commands.cache import cache

        return cache(options)

    parser.runs(run, keeps=False)


def _add_completion(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "completion",
        help="Print a script that completes verbs, options and files in a shell.",
        prog="conrepair completion",
        about="Print a script that completes verbs, options and files in a shell. Bash and zsh read it where their "
        "start-up file evaluates what this prints, fish where it's kept among its completions.",
        takes="{bash,zsh,fish} [OPTIONS]",
        examples=[
            ("conrepair completion bash", 'in ~/.bashrc: eval "$(conrepair completion bash)"'),
            ("conrepair completion zsh", 'in ~/.zshrc, after compinit: eval "$(conrepair completion zsh)"'),
            ("conrepair completion fish", "into ~/.config/fish/completions/conrepair.fish"),
        ],
    )
    parser["models"].add_argument("shell", choices=("bash", "zsh", "fish"), help="The shell that reads it.")
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.cli.completion import completion
        from conrepair.cli.main import command_line
        from conrepair.runtime.progress import say

        say(completion(command_line(), options.shell))
        return 0

    parser.runs(run, keeps=False)
