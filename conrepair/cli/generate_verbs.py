"""Verbs that make models up."""

from __future__ import annotations

import argparse

from conrepair.cli.declared import add_options
from conrepair.cli.engine import add_engine
from conrepair.cli.parser import Parser, Verbs
from conrepair.cli.shared import add_format, add_quiet
from conrepair.cli.time_limit import add_timeout
from conrepair.verbs.generate import Generate

__all__ = ["add_generate_verbs"]


def add_generate_verbs(verbs: Verbs[Parser]) -> None:
    """Declare them."""
    parser: Parser = verbs.add_parser(
        "generate",
        help="Make random valid networks, with inputs and expected outputs.",
        prog="conrepair generate",
        about="Make random valid ONNX networks with inputs and the outputs that they have to compute: what a "
        "converter or a compiler is tried with before a user's model is. A network on which ONNX "
        "Runtime's optimizations crash or give something else is kept and listed. The same seed gives the "
        "same files, whatever the number of workers; the same command continues what was stopped.",
        takes="(-o FOLDER | --support TARGET) [OPTIONS]",
        examples=[
            ("conrepair generate -n 100 --nodes 10 --seed 7 -o networks", "a hundred networks of ten operators"),
            ("conrepair generate -n 50 --operators Conv,Relu,Add --ranks 4 -o convolutions", "of three operators"),
            ("conrepair generate --support tvm", "what TVM takes of each operator, as a table"),
            ("conrepair generate -n 50 --single --symbolic 1 -o batches", "one input, one output, a size open"),
            ('conrepair generate -n 50 --form "size of zero=0.5" -o empty', "half of them with a size of 0"),
        ],
    )
    add_options(parser, Generate)
    parser["output"].add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="Folder of the networks, each in a folder of its own; --support alone shows what its target takes.",
    )
    parser["output"].add_argument(
        "--force", action="store_true", help="Replace networks in the folder that were made with other options."
    )
    add_format(parser)
    add_timeout(parser, searches="--seconds")
    add_engine(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.cli.commands.generate import generate_networks

        if not options.output and (options.output is not None or options.support is None):
            parser.error("give -o FOLDER, or --support TARGET to see what that takes")
        return generate_networks(options)

    parser.runs(run)
