"""What several verbs have that only a shell needs."""

from __future__ import annotations

from conrepair.cli.parser import Parser

__all__ = [
    "REPAIRABLE",
    "TARGET",
    "TARGETS",
    "add_format",
    "add_fresh",
    "add_model",
    "add_pair",
    "add_quiet",
    "add_source",
]

TARGET = "The model converted from it, a folder that `build` wrote, or outputs computed elsewhere (.npz)."
_SEVERAL = "Several are looked at one after the other."
TARGETS = f"{TARGET} {_SEVERAL}"
REPAIRABLE = f"The model converted from it, or a folder that `build` wrote. {_SEVERAL}"


def add_quiet(parser: Parser) -> None:
    """What every verb has that runs something."""
    parser["general"].add_argument("-q", "--quiet", action="store_true", help="Show no progress.")
    parser["general"].add_argument(
        "--timings", action="store_true", help="Show at the end where the time went, job by job (on standard error)."
    )


def add_fresh(parser: Parser) -> None:
    """For verbs whose results are kept in the user's cache."""
    parser["general"].add_argument(
        "--fresh",
        action="store_true",
        help="Take no results from the cache (`conrepair cache`), and replace those that are there.",
    )


def add_format(parser: Parser) -> None:
    """Text or JSON."""
    parser["output"].add_argument(
        "-f",
        "--format",
        choices=("text", "json"),
        default="text",
        help="Print text for people, or JSON for programs (default: %(default)s).",
    )


def add_source(parser: Parser) -> None:
    """The model that is right."""
    parser["models"].add_argument("source", metavar="SOURCE", help="The original model; it's right by definition.")


def add_pair(parser: Parser, target: str = TARGET) -> None:
    """The two models."""
    add_source(parser)
    parser["models"].add_argument("target", metavar="TARGET", help=target)


def add_model(parser: Parser) -> None:
    """The model of a verb that takes one."""
    parser["models"].add_argument("model", metavar="MODEL", help="Model file, or SavedModel folder.")
