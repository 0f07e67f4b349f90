"""Verbs of systems: how exact they are, and where they lose digits."""

from __future__ import annotations

from conrepair.application.cli.parser import Catalogue, Parser
from conrepair.application.cli.shared import (
    add_baseline,
    add_engine,
    add_format,
    add_fresh,
    add_model,
    add_options,
    add_output,
    add_timeout,
)
from conrepair.application.verbs.fuzz import Fuzz
from conrepair.application.verbs.generate import Generate
from conrepair.application.verbs.trace import Accuracy, Trace

VERBS = Catalogue()


@VERBS.verb(
    "(-o FOLDER | --support TARGET) [OPTIONS]",
    runs="generate:generate_networks",
    examples=[
        ("conrepair generate -n 100 --nodes 10 --seed 7 -o networks", "a hundred networks of ten operators"),
        ("conrepair generate -n 50 --operators Conv,Relu,Add --ranks 4 -o convolutions", "of three operators"),
        ("conrepair generate --support tvm", "what TVM takes of each operator, as a table"),
        ("conrepair generate -n 50 --single --symbolic 1 -o batches", "one input, one output, a size open"),
        ('conrepair generate -n 50 --form "size of zero=0.5" -o empty', "half of them with a size of 0"),
    ],
)
def generate(parser: Parser) -> None:
    """Make random valid networks, with inputs and expected outputs.

    Make random valid ONNX networks with inputs and the outputs that they have to compute: what a converter or a
    compiler is tried with before a user's model is. A network on which ONNX Runtime's optimizations crash or give
    something else is kept and listed. The same seed gives the same files, whatever the number of workers; the same
    command continues what was stopped.
    """
    add_options(parser, Generate)
    add_output(
        parser, "Folder of the networks, each in a folder of its own; --support alone shows what its target takes."
    )
    parser["output"].add_argument(
        "--force", action="store_true", help="Replace networks in the folder that were made with other options."
    )
    add_format(parser)
    add_timeout(parser, searches="--seconds")
    add_engine(parser)


@VERBS.verb(
    "[SYSTEM ...] [OPTIONS]",
    examples=[
        ("conrepair accuracy", "each system with its optimizations off and on"),
        ("conrepair accuracy ort-all torch-compile --operator Erf --operator Tanh", "two operators"),
        ("conrepair accuracy tvm-O0 --dtype float16 -o accuracy", "half precision, as files"),
    ],
)
def accuracy(parser: Parser) -> None:
    """Measure how exact the operators of runtimes and compilers are.

    Compute operators of ONNX by each system, over all magnitudes or over sizes at which kernels change, and compare
    them with exact values: the largest error in units in the last place, the input at which, the region, and the
    unstable form that explains it. The exit code is 1 where an error lies above 16 units.
    """
    parser["models"].add_argument(
        "systems", metavar="SYSTEM", nargs="*", help="System with its setting: tvm-O3, ort-all (default: all)."
    )
    add_options(parser, Accuracy)
    add_format(parser)
    add_timeout(parser, "system")
    add_fresh(parser)


@VERBS.verb(
    "MODEL [OPTIONS]",
    examples=[
        ("conrepair trace model.onnx", "TVM's O3 beside O0, 1000 inputs"),
        ("conrepair trace model.onnx --setting tvm-fast -o trace", "fast math on this processor, files kept"),
        ("conrepair trace model.onnx --setting ort-all --against exact", "ONNX Runtime beside float64"),
        ("conrepair trace model.onnx --setting tvm-fast --pass FastMathTransform", "one pass alone"),
    ],
)
def trace(parser: Parser) -> None:
    """Find inputs on which a compiled network loses digits, the kernel, and what to switch off.

    Search inputs on which a system (a compiler or a runtime with its optimizations) gives other numbers than with
    these off, or than exact arithmetic; judge them by a bound of rounding; follow the error through the kernels; and
    find the passes or options to switch off. The exit code is 1 where a deviation lies above what rounding explains.
    Of a folder each ONNX file in it is traced.
    """
    add_model(parser)
    add_options(parser, Trace)
    add_output(
        parser, "Write what was found, the inputs and programs that show it to FOLDER (default: nothing is written)."
    )
    add_format(parser)
    add_timeout(parser, "step", searches="--seconds")
    add_engine(parser)
    add_fresh(parser)


@VERBS.verb(
    "[MODEL ... | CONFIG] [OPTIONS]",
    examples=[
        ("conrepair fuzz --systems ort-all,convert-onnxslim -o fuzz", "two hundred generated networks"),
        ("conrepair fuzz net.onnx --systems ort-all,tvm-O3", "a network of your own"),
        ("conrepair fuzz campaign.json", "the section `fuzz` of a configuration"),
        ("conrepair fuzz --recheck fuzz", "are they still there, with what's installed now?"),
    ],
)
def fuzz(parser: Parser) -> None:
    """Try networks by converters, runtimes and compilers, and make findings of what's wrong.

    Run generated networks, or your own, by systems: runtimes, compilers, converters and optimizers of ONNX files.
    Exceptions, crashes, numbers that no rounding explains, other shapes and types, answers that aren't the same each
    time are reduced to the smallest network, deduplicated, and written as findings with a program that shows each.
    The exit code is 1 where something was found that isn't known. The same command continues a campaign.
    """
    parser["models"].add_argument(
        "models", metavar="MODEL|CONFIG", nargs="*", help="ONNX files to try, or one configuration (.json)."
    )
    add_options(parser, Fuzz)
    add_baseline(parser, what="findings")
    add_output(parser, "Folder of the campaign (default: %(default)s).", default="fuzz")
    add_format(parser)
    add_timeout(parser, searches="--seconds")
    add_engine(parser)
