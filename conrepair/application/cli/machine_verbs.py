"""Verbs of what's on this machine: converters, libraries, environments, kept results, the shell."""

from __future__ import annotations

from conrepair.application.cli.parser import Catalogue, Parser
from conrepair.application.cli.shared import add_format
from conrepair.application.verbs.numbers import gigabytes

VERBS = Catalogue()


@VERBS.verb("[OPTIONS]", examples=[("conrepair converters", "list them")])
def converters(parser: Parser) -> None:
    """List the converters and their options.

    List the converters, from which format to which each converts, and its options.
    """


@VERBS.verb("[OPTIONS]", examples=[("conrepair doctor", "try everything that's installed")])
def doctor(parser: Parser) -> None:
    """Check what's installed here, and say how to get the rest.

    Check the libraries, converters, backends and environments, and print the command that installs or fixes what is
    missing or broken. "works" means that it was tried, "installed" that it's there and wasn't tried. The exit code is
    1 if something fails.
    """
    add_format(parser)
    parser["output"].add_argument(
        "-v", "--verbose", action="store_true", help="A line for each converter and entry point, with versions."
    )


@VERBS.verb(
    "[{list,make,remove}] [NAME] [OPTIONS]",
    examples=[
        ("conrepair environments", "list them, with their sizes"),
        ("conrepair environments make onnx2tf", "make one"),
    ],
)
def environments(parser: Parser) -> None:
    """List, make or remove converters' own environments.

    List, make or remove separate Python environments: of converters that need other library versions, and of other
    releases for fuzzing. They're made when they're first needed; `make` does that beforehand.
    """
    parser["models"].add_argument(
        "action", nargs="?", choices=("list", "make", "remove"), default="list", help="What to do (default: list)."
    )
    parser["models"].add_argument(
        "name", metavar="NAME", nargs="?", help="Environment to make or remove; library==version for another release."
    )


@VERBS.verb(
    "[{show,clear}] [OPTIONS]",
    keeps=False,
    examples=[
        ("conrepair cache", "its folder, its limit, and its size by kind of result"),
        ("conrepair cache --limit 20", "limit it to 20 GB from now on"),
        ("conrepair cache clear", "remove all of it"),
    ],
)
def cache(parser: Parser) -> None:
    """Show, limit or clear the cache of results.

    compare, localize, repair, convert and execute keep their results, to be quicker the next time. Show where, how
    much space they take and the limit, or clear them. Beyond the limit the least recently used go first.
    """
    parser["models"].add_argument(
        "action", nargs="?", choices=("show", "clear"), default="show", help="What to do (default: show)."
    )
    parser["output"].add_argument(
        "--limit",
        type=gigabytes,
        metavar="GB",
        help="Limit it to so many gigabytes from now on; 0 keeps no results (default: 5, or CONREPAIR_CACHE_LIMIT).",
    )
    add_format(parser)


@VERBS.verb(
    "{bash,zsh,fish} [OPTIONS]",
    keeps=False,
    examples=[
        ("conrepair completion bash", 'in ~/.bashrc: eval "$(conrepair completion bash)"'),
        ("conrepair completion zsh", 'in ~/.zshrc, after compinit: eval "$(conrepair completion zsh)"'),
        ("conrepair completion fish", "into ~/.config/fish/completions/conrepair.fish"),
    ],
)
def completion(parser: Parser) -> None:
    """Print a script that completes verbs, options and files in a shell.

    Print a script that completes verbs, options and files in a shell. The examples say where each shell reads it.
    """
    parser["models"].add_argument("shell", choices=("bash", "zsh", "fish"), help="The shell that reads it.")
