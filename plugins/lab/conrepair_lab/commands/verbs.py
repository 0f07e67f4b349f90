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
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.options.generate import Generate
from conrepair_lab.options.trace import Accuracy, Trace

VERBS = Catalogue("conrepair_lab.commands")


@VERBS.verb(
    "(-o FOLDER | --support TARGET) [OPTIONS]",
    runs="generate:generate_networks",
    examples=[
        ("conrepair generate -n 100 --nodes 10 --seed 7 -o networks", "a hundred networks of ten operators"),
        (
            "conrepair generate -n 50 --operators Conv,Relu,Add --ranks 4 -o few",
            "three operators, tensors of four axes",
        ),
        ("conrepair generate --support tvm", "a table of what TVM takes of each operator"),
        ("conrepair generate -n 50 --single --symbolic 1 -o batches", "with one input, one output and an open size"),
        ('conrepair generate -n 50 --form "size of zero=0.5" -o empty', "half of them with a size of 0"),
    ],
)
def generate(parser: Parser) -> None:
    """Make random valid networks, with inputs and expected outputs.

    Make random valid ONNX networks with inputs and expected outputs, to test converters and compilers with. Networks
    on which ONNX Runtime's optimizations crash or give other outputs are listed. The same seed gives the same files,
    whatever the number of workers; the same command continues what was stopped.
    """
    add_options(parser, Generate)
    add_output(parser, "Folder for the networks. Without it --support shows what TARGET takes.")
    parser["output"].add_argument(
        "--force", action="store_true", help="Replace networks of the folder that were made with other options."
    )
    add_format(parser)
    add_timeout(parser, searches="--seconds")
    add_engine(parser)


@VERBS.verb(
    "[SYSTEM ...] [OPTIONS]",
    examples=[
        ("conrepair accuracy", "all systems, with optimizations off and on"),
        ("conrepair accuracy ort-all torch-compile --operator Erf --operator Tanh", "two operators"),
        ("conrepair accuracy tvm-O0 --dtype float16 -o accuracy", "half precision, and keep the table as files"),
    ],
)
def accuracy(parser: Parser) -> None:
    """Measure how exact the operators of runtimes and compilers are.

    Compute each ONNX operator with each system, at inputs of all magnitudes and of many sizes, and compare the
    results with exact values. The table has the largest error in units in the last place (ulps); with -o also the
    input and the region where it occurs, and the unstable formula that causes it. The exit code is 1 if an error is
    above 16 ulps.
    """
    parser["models"].add_argument(
        "systems", metavar="SYSTEM", nargs="*", help="System with its setting: tvm-O3 (default: all installed)."
    )
    add_options(parser, Accuracy)
    add_format(parser)
    add_timeout(parser, "system")
    add_fresh(parser)


@VERBS.verb(
    "MODEL [OPTIONS]",
    examples=[
        ("conrepair trace model.onnx", "compare TVM's O3 with its O0 on 1,000 inputs"),
        ("conrepair trace model.onnx --setting tvm-fast -o trace", "fast math on this processor; keep the files"),
        ("conrepair trace model.onnx --setting ort-all --against exact", "compare ONNX Runtime with float64"),
        ("conrepair trace model.onnx --setting tvm-fast --pass FastMathTransform", "with and without one pass"),
    ],
)
def trace(parser: Parser) -> None:
    """Find inputs on which a compiled network is inexact, the kernel at fault, and what to switch off.

    Search for inputs on which a compiler or runtime gives other outputs than with its optimizations off, or than
    exact arithmetic. Say whether that's within rounding error, which kernel adds the error, and which passes or
    options to switch off. The exit code is 1 if an error is beyond rounding error. Of a folder each ONNX file in it
    is traced.
    """
    add_model(parser)
    add_options(parser, Trace)
    add_output(
        parser, "Folder for the result, with inputs and programs that show the error (default: nothing is written)."
    )
    add_format(parser)
    add_timeout(parser, "step", searches="--seconds")
    add_engine(parser)
    add_fresh(parser)


@VERBS.verb(
    "[MODEL ... | CONFIG] [OPTIONS]",
    examples=[
        ("conrepair fuzz --systems ort-all,convert-onnxslim -o fuzz", "200 generated networks"),
        ("conrepair fuzz net.onnx --systems ort-all,tvm-O3", "a network of your own"),
        ("conrepair fuzz campaign.json", "as the section `fuzz` of a configuration says"),
        ("conrepair fuzz --recheck fuzz", "are the findings still there, with the libraries installed now?"),
    ],
)
def fuzz(parser: Parser) -> None:
    """Test converters, runtimes and compilers with networks, and reduce each fault to a small one.

    Run generated networks, or your own, in runtimes, compilers, converters and optimizers of ONNX files. Each kind of
    fault (crash, exception, wrong number, shape or type, outputs that change from run to run) becomes a finding: the
    smallest network that shows it, and a program. The exit code is 1 if a finding is new. The same command continues.
    """
    parser["models"].add_argument(
        "models", metavar="MODEL|CONFIG", nargs="*", help="ONNX files to test (default: generated networks)."
    )
    add_options(parser, Fuzz)
    add_baseline(parser, what="findings")
    add_output(parser, "Folder of the campaign (default: %(default)s).", default="fuzz")
    add_format(parser)
    add_timeout(parser, searches="--seconds")
    add_engine(parser)
