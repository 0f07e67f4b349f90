"""The verb of campaigns."""

from __future__ import annotations

import argparse

from conrepair.cli.declared import add_options
from conrepair.cli.engine import add_engine
from conrepair.cli.parser import Parser, Verbs
from conrepair.cli.shared import add_format, add_quiet
from conrepair.cli.time_limit import add_timeout
from conrepair.verbs.fuzz import Fuzz

__all__ = ["add_fuzz_verbs"]


def add_fuzz_verbs(verbs: Verbs[Parser]) -> None:
    """Declare it."""
    parser: Parser = verbs.add_parser(
        "fuzz",
        help="Try networks by converters, runtimes and compilers, and make findings of what's wrong.",
        prog="conrepair fuzz",
        about="Run generated networks, or your own, by systems: runtimes, compilers, converters and optimizers of "
        "ONNX files. Exceptions, crashes, numbers that no rounding explains, other shapes and types, answers that "
        "aren't the same each time are reduced to the smallest network, deduplicated, and written as findings with a "
        "program that shows each. The exit code is 1 where something was found that isn't known. The same command "
        "continues a campaign.",
        takes="[MODEL ... | CONFIG] [OPTIONS]",
        examples=[
            ("conrepair fuzz --systems ort-all,convert-onnxslim -o fuzz", "two hundred generated networks"),
            ("conrepair fuzz net.onnx --systems ort-all,tvm-O3", "a network of your own"),
            ("conrepair fuzz campaign.json", "the section `fuzz` of a configuration"),
            ("conrepair fuzz --recheck fuzz", "are they still there, with what's installed now?"),
        ],
    )
    parser["models"].add_argument(
        "models", metavar="MODEL|CONFIG", nargs="*", help="ONNX files to try, or one configuration (.json)."
    )
    add_options(parser, Fuzz)
    parser["output"].add_argument(
        "-o", "--output", metavar="FOLDER", default="fuzz", help="Folder of the campaign (default: %(default)s)."
    )
    add_format(parser)
    add_timeout(parser, searches="--seconds")
    add_engine(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.cli.commands.fuzz import fuzz

        return fuzz(options)

    parser.runs(run)
