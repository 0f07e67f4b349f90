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
    """Check what's installed here, and what to do about the rest.

    Check the libraries, converters, backends and environments that are installed, and print the command that
    installs or fixes each of the others. What works was tried; what's installed is there, and wasn't. GPUs are asked
    for in a worker, as they're used there. The exit code is 1 if something fails.
    """
    add_format(parser)


@VERBS.verb(
    "[{list,make,remove}] [NAME] [OPTIONS]",
    examples=[
        ("conrepair environments", "list them, with their sizes"),
        ("conrepair environments make onnx2tf", "make one"),
    ],
)
def environments(parser: Parser) -> None:
    """List, make or remove converters' own environments.

    List, make or remove the environments of converters whose versions conflict with ours, and those of other
    releases that campaigns run. They're made when they're first needed; `make` does that beforehand.
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
        ("conrepair cache", "the place, the limit, and what's in it by kind"),
        ("conrepair cache --limit 20", "let it take 20 GB from now on"),
        ("conrepair cache clear", "remove all of it"),
    ],
)
def cache(parser: Parser) -> None:
    """Show or clear the results that commands of one or two files keep.

    Show where compare, localize, repair, convert and execute keep what they've done, what it takes and its limit, or
    clear it. What nobody has asked for for longest goes first where there's more than the limit.
    """
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

    Print a script that completes verbs, options and files in a shell. Bash and zsh read it where their start-up file
    evaluates what this prints, fish where it's kept among its completions.
    """
    parser["models"].add_argument("shell", choices=("bash", "zsh", "fish"), help="The shell that reads it.")
