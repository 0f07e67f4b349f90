"""What several verbs have that only a shell needs."""

from __future__ import annotations

from conrepair.cli.parser import Parser

__all__ = ["add_force", "add_format", "add_fresh", "add_model", "add_output", "add_source"]


def add_fresh(parser: Parser) -> None:
    """For verbs whose results are kept in the user's cache."""
    parser["general"].add_argument(
        "--fresh",
        action="store_true",
        help="Take no results from the cache (`conrepair cache`), and replace those that are there.",
    )


def add_output(parser: Parser, words: str, *, metavar: str = "FOLDER", default: str | None = None) -> None:
    """Where to write, of a verb whose own options don't say it.

    Args:
        parser: Of the verb.
        words: Whole sentences.
        metavar: What help calls it.
        default: Where to write if nobody says it.
    """
    parser["output"].add_argument("-o", "--output", metavar=metavar, default=default, help=words)


def add_force(parser: Parser) -> None:
    """For verbs that replace only what they wrote."""
    parser["output"].add_argument(
        "--force", action="store_true", help="Replace the output if it exists and this verb wrote it."
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


def add_model(parser: Parser) -> None:
    """The model of a verb that takes one."""
    parser["models"].add_argument("model", metavar="MODEL", help="Model file, or SavedModel folder.")
