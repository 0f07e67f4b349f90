"""Verbs of systems: how exact they are, and where they lose digits."""

from __future__ import annotations

import argparse

from conrepair.cli.declared import add_options
from conrepair.cli.engine import add_engine
from conrepair.cli.parser import Parser, Verbs
from conrepair.cli.shared import add_format, add_fresh, add_model, add_quiet
from conrepair.cli.time_limit import add_timeout
from conrepair.verbs.trace import Accuracy, Trace

__all__ = ["add_trace_verbs"]


def add_trace_verbs(verbs: Verbs[Parser]) -> None:
    """Declare them."""
    _add_accuracy(verbs)
    _add_trace(verbs)


def _add_accuracy(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "accuracy",
        help="Measure how exact the operators of runtimes and compilers are.",
        prog="conrepair accuracy",
        about="Compute operators of ONNX by each system, over all magnitudes or over sizes at which kernels change, "
        "and compare them with exact values: the largest error in units in the last place, the input at which, the "
        "region, and the unstable form that explains it. The exit code is 1 where an error lies above 16 units.",
        takes="[SYSTEM ...] [OPTIONS]",
        examples=[
            ("conrepair accuracy", "each system with its optimizations off and on"),
            ("conrepair accuracy ort-all torch-compile --operator Erf --operator Tanh", "two operators"),
            ("conrepair accuracy tvm-O0 --dtype float16 -o accuracy", "half precision, as files"),
        ],
    )
    parser["models"].add_argument(
        "systems", metavar="SYSTEM", nargs="*", help="System with its setting: tvm-O3, ort-all (default: all)."
    )
    add_options(parser, Accuracy)
    add_format(parser)
    add_timeout(parser, "system")
    add_fresh(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.cli.commands.accuracy import accuracy

        return accuracy(options)

    parser.runs(run)


def _add_trace(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "trace",
        help="Find inputs on which a compiled network loses digits, the kernel, and what to switch off.",
        prog="conrepair trace",
        about="Search inputs on which a system (a compiler or a runtime with its optimizations) gives other numbers "
        "than with these off, or than exact arithmetic; judge them by a bound of rounding; follow the error through "
        "the kernels; and find the passes or options to switch off. The exit code is 1 where a deviation lies above "
        "what rounding explains. Of a folder each ONNX file in it is traced.",
        takes="MODEL [OPTIONS]",
        examples=[
            ("conrepair trace model.onnx", "TVM's O3 beside O0, 1000 inputs"),
            ("conrepair trace model.onnx --setting tvm-fast -o trace", "fast math on this processor, files kept"),
            ("conrepair trace model.onnx --setting ort-all --against exact", "ONNX Runtime beside float64"),
            ("conrepair trace model.onnx --setting tvm-fast --pass FastMathTransform", "one pass alone"),
        ],
    )
    add_model(parser)
    add_options(parser, Trace)
    parser["output"].add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="Write what was found, the inputs and programs that show it to FOLDER (default: nothing is written).",
    )
    add_format(parser)
    add_timeout(parser, "step", searches="--seconds")
    add_engine(parser)
    add_fresh(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.cli.commands.trace import trace

        return trace(options)

    parser.runs(run)
