"""Verbs that make models up."""

from __future__ import annotations

import argparse
import re

from conrepair.cli.parser import Parser, Verbs
from conrepair.cli.shared import add_format, add_quiet
from conrepair.cli.time_limit import Given, add_each, add_timeout
from conrepair.verbs.numbers import count, seconds, seed, share

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
    _add_what(parser)
    _add_ways(parser)
    parser["search"].add_argument(
        "-j", "--workers", type=count, default=2, metavar="N", help="Worker processes (default: %(default)s)."
    )
    parser["search"].add_argument(
        "--seconds",
        action=Given,
        type=seconds,
        metavar="S",
        help="Begin no further network after S seconds (default: no limit).",
    )
    add_each(parser, "each network, and each conversion", 60.0)
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
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.cli.commands.generate import generate_networks

        if not options.output and (options.output is not None or options.support is None):
            parser.error("give -o FOLDER, or --support TARGET to see what that takes")
        return generate_networks(options)

    parser.runs(run)


def _add_what(parser: Parser) -> None:
    """What networks should be like."""
    group = parser["models"]
    group.add_argument(
        "-n", "--count", type=count, default=100, metavar="N", help="Number of networks (default: %(default)s)."
    )
    group.add_argument(
        "--nodes", type=count, default=10, metavar="N", help="Operators of each network (default: %(default)s)."
    )
    group.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="Seed of all of them (default: %(default)s)."
    )
    group.add_argument(
        "--opset", type=count, default=20, metavar="N", help="Opset of ONNX's operators (default: %(default)s)."
    )
    group.add_argument(
        "--operators",
        action="append",
        default=[],
        metavar="NAMES",
        help="Only these operators, separated by commas (default: all).",
    )
    group.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="NAMES",
        help="None of these operators, separated by commas.",
    )
    group.add_argument(
        "--dtypes",
        action="append",
        default=[],
        metavar="NAMES",
        help="Only these element types, separated by commas, as in float32,int64 (default: all).",
    )
    group.add_argument(
        "--ranks",
        type=_ranks,
        default=(0, 6),
        metavar="N[-N]",
        help="Number of axes of tensors, as in 4 or 1-4 (default: 0-6).",
    )
    group.add_argument(
        "--elements", type=count, default=4096, metavar="N", help="Most elements of a tensor (default: %(default)s)."
    )
    group.add_argument(
        "--to",
        action="append",
        default=[],
        metavar="FORMATS",
        help="Convert each network to these formats, too, separated by commas: torch, keras, savedmodel, tflite.",
    )
    group.add_argument(
        "--learn",
        action="append",
        default=[],
        metavar="MODEL",
        help="Put operators in as this model has them, or the models of a folder, or ONNX's own cases (onnx). Repeat "
        "it for several.",
    )
    group.add_argument(
        "--from",
        dest="models",
        action="append",
        default=[],
        metavar="MODEL",
        help="Grow each network from a piece of this model, or of one in a folder, of at most --nodes operators. "
        "Repeat it for several.",
    )
    group.add_argument(
        "--changes",
        type=count,
        default=10,
        metavar="N",
        help="Changes of each network that is grown from a model (default: %(default)s).",
    )
    group.add_argument(
        "--support",
        metavar="TARGET",
        help="Only what this one takes of ONNX, found by models of one operator: onnxruntime, tvm, a format "
        "(keras, torch, tflite) or a converter (onnx-onnxslim...).",
    )


def _add_ways(parser: Parser) -> None:
    """What there is in them besides operators."""
    group = parser["models"]
    group.add_argument(
        "--single",
        action="store_true",
        help="One input and one output; other tensors that no node makes are weights.",
    )
    group.add_argument(
        "--symbolic",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="Share of networks that leave sizes open, half of them the batch, where operators let them "
        "(default: %(default)g).",
    )
    group.add_argument(
        "--extremes",
        type=share,
        default=0.2,
        metavar="SHARE",
        help="Share of networks some of whose inputs and weights are at the ends of what they may be "
        "(default: %(default)g).",
    )
    group.add_argument(
        "--form",
        action="append",
        default=[],
        metavar="FORM=SHARE",
        help='Share of networks with a form of legal nonsense, as in "size of zero=0.1" (docs/generate.md). '
        "Repeat it for several.",
    )
    group.add_argument(
        "--function",
        action="append",
        default=[],
        metavar="FILE.py:NAME",
        help="Your own filter of networks, or constraint of settings: a function of `network`, or of `setting`, that "
        "returns whether it's kept (docs/generate.md). Needs --trust. Repeat it for several.",
    )
    group.add_argument(
        "--trust",
        action="store_true",
        help="Run what --function names: only your own programs, or those of somebody whose programs you would run. "
        "They aren't confined (docs/security.md).",
    )
    group.add_argument(
        "--woven",
        type=share,
        default=0.2,
        metavar="SHARE",
        help="How likely a pattern (nodes that set an optimization off, or that real networks have) is put in for "
        "each five nodes (default: %(default)g).",
    )
    group.add_argument(
        "--pattern",
        action="append",
        default=[],
        metavar="PATTERN=SHARE",
        help='Share of networks with this pattern, as in "conv and batch norm=0.5". Repeat it for several.',
    )


def _ranks(text: str) -> tuple[int, int]:
    """A number of axes, or the fewest and the most.

    Raises:
        ArgumentTypeError: if it's neither.
    """
    found = re.fullmatch(r"(\d)(?:-(\d))?", text.strip(), re.ASCII)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} isn't a number of axes, or the fewest and the most, as in 1-4")
    return int(found[1]), int(found[2] or found[1])
