"""Verbs of one model or two, which need no configuration."""

from __future__ import annotations

import argparse

from conrepair.cli.numbers import count, real, seconds
from conrepair.cli.parser import Parser, Verbs
from conrepair.cli.shared import (
    TARGETS,
    add_batch_size,
    add_declared,
    add_format,
    add_fresh,
    add_inputs,
    add_layers,
    add_pair,
    add_quiet,
    add_source,
    add_target_recipe,
)
from conrepair.cli.time_limit import Given, add_timeout

__all__ = ["add_model_verbs"]

_FORMATS = "torch, keras, tensorflow, tflite or onnx"


def add_model_verbs(verbs: Verbs[Parser]) -> None:
    """Declare them."""
    for add in (_add_compare, _add_localize, _add_repair, _add_convert, _add_inspect, _add_execute, _add_build):
        add(verbs)


def _add_compare(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "compare",
        help="Compare the answers of a model and its conversion.",
        prog="conrepair compare",
        about="Run a model and its conversion on the same inputs, and compare their outputs element by element. It "
        "needs no data and no configuration. The exit code is 0 if they're equivalent and 1 if they aren't.",
        takes="SOURCE TARGET [OPTIONS]",
        examples=[
            ("conrepair compare model.onnx model.tflite", "on 32 random inputs"),
            ("conrepair compare model.pt2 model.onnx --data photos/ --recipe torchvision", "on your photos"),
            ("conrepair compare model.onnx model.tflite --rtol 1e-2 -o report", "looser, and keep the report"),
        ],
    )
    add_pair(parser, "The model converted from it.")
    add_inputs(parser, drawn=32)
    add_target_recipe(parser)
    add_batch_size(parser, 16)
    parser["tolerances"].add_argument(
        "--rtol", type=real, metavar="X", help="Relative tolerance of each element (default: 1e-4)."
    )
    parser["tolerances"].add_argument(
        "--atol", type=real, metavar="X", help="Absolute tolerance of each element (default: 1e-5)."
    )
    parser["output"].add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="Write the report, with each sample's answers and their comparison, below FOLDER (default: nothing is "
        "written).",
    )
    add_format(parser)
    add_timeout(parser, "model")
    add_fresh(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.commands import compare

        return compare(options)

    parser.runs(run, files=("source", "target"))


def _add_localize(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "localize",
        help="Name the layers in which a conversion differs from its original.",
        prog="conrepair localize",
        about="Name the layers in which a conversion stops computing what its source does, with the fault of each. "
        "Each piece of the target is fed the source's activations, so that only its own error shows. It needs "
        "no data and no configuration. The exit code is 0 if nothing is wrong and 1 if something is.",
        takes="SOURCE TARGET [TARGET ...] [OPTIONS]",
        examples=[
            ("conrepair localize model.onnx model.tflite", "print the layers at fault"),
            ("conrepair localize model.onnx model.tflite model-int8.tflite", "of two conversions of one model"),
            (
                "conrepair localize model.onnx model.tflite -o findings",
                "and keep a page of it, with all measurements",
            ),
            (
                "conrepair localize model.onnx model.tflite --data photos/ --recipe raw --samples 500 --suspicious",
                "on photos, and rank layers by those that are answered otherwise",
            ),
            (
                "conrepair localize model.keras model.tflite --intermediate model.onnx",
                "of a conversion in two steps, name the step",
            ),
        ],
    )
    add_source(parser)
    parser["models"].add_argument("targets", metavar="TARGET", nargs="+", help=TARGETS)
    parser["models"].add_argument(
        "--intermediate",
        action="append",
        default=[],
        metavar="FILE",
        help="A model on the way from the source to the target. Repeat it for several, in order.",
    )
    add_layers(parser, inputs=32)
    parser["output"].add_argument(
        "--suspicious",
        action="store_true",
        help="Rank the layers, too, by how much more they differ on inputs that are answered otherwise than on the "
        "others; give many inputs (--data, --samples). A ranking convicts none.",
    )
    parser["output"].add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="Write the page, all measurements and colours for Model Explorer to FOLDER, for several targets to a "
        "folder in it for each (default: nothing is written).",
    )
    add_fresh(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.localize_command import localize

        return localize(options)

    parser.runs(run, keeps=False, files=("source", "intermediate", "targets"))


def _add_repair(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "repair",
        help="Fix a conversion with the smallest change, in its own format.",
        prog="conrepair repair",
        about="Fix a conversion with the smallest change that makes it compute what its source does, in its own "
        "format, and verify the result on other inputs. The target's file stays as it is: the repaired model "
        "is written to a folder, TARGET-repaired in the current one if -o names none; where nothing is wrong, "
        "nothing is written. It needs no data and no configuration. The exit code is 0 if the result is "
        "equivalent, 1 if a fault is left.",
        takes="SOURCE TARGET [TARGET ...] [OPTIONS]\n       conrepair repair MODEL --apply PATCH [OPTIONS]",
        examples=[
            ("conrepair repair model.onnx model.tflite", "write model-repaired/"),
            ("conrepair repair model.onnx model.tflite -o fixed --seconds 900", "search longer"),
            ("conrepair repair model.tflite --apply fixed/patch.json -o again", "apply the edits of a patch"),
        ],
    )
    parser["models"].add_argument(
        "source",
        metavar="SOURCE",
        help="The original model, which is right by definition; with --apply, the model or the build to edit.",
    )
    parser["models"].add_argument("targets", metavar="TARGET", nargs="*", help=TARGETS)
    parser["models"].add_argument(
        "--apply", metavar="PATCH", help="Apply the edits of a patch.json to a model, without any search."
    )
    add_layers(parser, inputs=72, searches="--seconds and --advice")
    parser["search"].add_argument(
        "--seconds",
        action=Given,
        type=seconds,
        default=300.0,
        metavar="S",
        help="Try no further edit after S seconds (default: %(default)g).",
    )
    parser["search"].add_argument(
        "--advice",
        action=Given,
        type=seconds,
        default=60.0,
        metavar="S",
        help="Spend S seconds on other ways to convert the source (default: %(default)g).",
    )
    parser["search"].add_argument(
        "--bake-recipe",
        action="store_true",
        help="If photos must be preprocessed differently, put operators for that in front of the model's input.",
    )
    parser["output"].add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="Folder for the repaired model, patch.json and result.json, for several targets with a folder in it "
        "for each (default: TARGET-repaired in this folder).",
    )
    add_fresh(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.repair_command import repair

        return repair(options)

    parser.runs(run, keeps=False, files=("source", "targets", "apply"))


def _add_convert(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "convert",
        help="Convert a model to another format, and compare the result.",
        prog="conrepair convert",
        about="Convert a model along the best known route, and compare the result of every step with its source. If "
        "a converter fails, the operators that stop it are named, and another way is looked for.",
        takes="MODEL --to FORMAT -o OUTPUT [OPTIONS]",
        examples=[
            ("conrepair convert model.keras --to onnx -o model.onnx", "along the best route"),
            (
                "conrepair convert model.keras --to tflite --option keras-tflite.quantize=int8 --data photos/ "
                "--recipe keras:tf -o model.tflite",
                "quantized, calibrated with photos",
            ),
        ],
    )
    parser["models"].add_argument("model", metavar="MODEL", help="Model file, or SavedModel folder.")
    parser["models"].add_argument("--to", required=True, metavar="FORMAT", help=f"Format to convert to: {_FORMATS}.")
    parser["search"].add_argument(
        "--via", metavar="CONVERTERS", help="Converters to use, separated by commas (default: the best route)."
    )
    parser["search"].add_argument(
        "--option",
        action="append",
        default=[],
        metavar="CONVERTER.NAME=VALUE",
        help="Option of a converter, as in keras-tflite.quantize=int8. Repeat it for several.",
    )
    parser["search"].add_argument(
        "--no-check", dest="check", action="store_false", help="Don't compare the result with its source."
    )
    parser["search"].add_argument(
        "--no-repair", dest="repair", action="store_false", help="Fail if the route fails, and look for no other way."
    )
    parser["search"].add_argument(
        "--seconds",
        action=Given,
        type=seconds,
        default=120.0,
        metavar="S",
        help="Look for another way for S seconds if the route fails (default: %(default)g).",
    )
    add_inputs(parser, drawn=8)
    parser["output"].add_argument("-o", "--output", required=True, metavar="OUTPUT", help="File or folder to write.")
    _add_force(parser)
    add_format(parser)
    add_timeout(parser, "step", searches="--seconds")
    add_fresh(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.convert_command import convert

        return convert(options)

    parser.runs(run, keeps=False, files=("model",))


def _add_inspect(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "inspect",
        help="List a model's inputs, outputs, operators and parameters.",
        prog="conrepair inspect",
        about="List a model's format, inputs, outputs, operators, parameters and producer. Of a model that can't be "
        "run here, what can be read is listed, and what's missing.",
        takes="MODEL [OPTIONS]",
        examples=[
            ("conrepair inspect model.tflite", "as a table"),
            ("conrepair inspect model.tflite -f json", "as JSON"),
        ],
    )
    parser["models"].add_argument("model", metavar="MODEL", help="Model file, or SavedModel folder.")
    add_declared(parser)
    add_format(parser)
    add_timeout(parser, "attempt to read the model")
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.inspect_command import inspect

        return inspect(options)

    parser.runs(run, keeps=False, files=("model",))


def _add_execute(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "execute",
        help="Run a model on a backend, and show or keep its outputs.",
        prog="conrepair execute",
        about="Run a model in its own library, in ONNX Runtime as deployed, or compiled by TVM (also on a board, "
        "over RPC); what a compiler made is compared with the model in its own library.",
        takes="MODEL [OPTIONS]",
        examples=[
            ("conrepair execute model.onnx", "shapes and ranges of the outputs on 8 random inputs"),
            ("conrepair execute model.onnx --backend tvm --opt O3 -o outputs", "compiled, outputs kept as .npy"),
            (
                "conrepair execute model.onnx --backend tvm --device rpc://127.0.0.1:9090/pi4",
                "on a board, timed there",
            ),
        ],
    )
    parser["models"].add_argument("model", metavar="MODEL", help="Model file, or SavedModel folder.")
    parser["models"].add_argument(
        "--backend",
        default="libraries",
        choices=("libraries", "onnxruntime", "tvm"),
        help="The model's own library, ONNX Runtime with all its optimizations, or TVM (default: %(default)s).",
    )
    add_inputs(parser, drawn=8)
    _add_compiler(parser)
    parser["compiler"].add_argument(
        "--device",
        default="local",
        metavar="DEVICE",
        help="Where TVM runs it: local, rpc://HOST:PORT/KEY or tracker://HOST:PORT/KEY (default: %(default)s).",
    )
    parser["output"].add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="Write the outputs as .npy files, and result.json, to FOLDER (default: nothing is written).",
    )
    _add_force(parser)
    add_fresh(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.execute_command import execute

        return execute(options)

    parser.runs(run, keeps=False, files=("model",))


def _add_build(verbs: Verbs[Parser]) -> None:
    parser: Parser = verbs.add_parser(
        "build",
        help="Compile a model with TVM.",
        prog="conrepair build",
        about="Compile a model with TVM, and write the module, Relax after optimization, and the generated code. "
        "`localize` and `repair` take the folder as a target.",
        takes="MODEL -o FOLDER [OPTIONS]",
        examples=[
            ("conrepair build model.onnx --opt O3 -o build", "compile for this CPU"),
            ("conrepair build model.onnx --opt O3 --explain", "list the passes, and compile nothing"),
        ],
    )
    parser["models"].add_argument("model", metavar="MODEL", help="Model file, or SavedModel folder.")
    add_declared(parser)
    _add_compiler(parser)
    parser["compiler"].add_argument(
        "--explain", action="store_true", help="List the passes in order, and compile nothing."
    )
    parser["output"].add_argument("-o", "--output", metavar="FOLDER", help="Folder to write.")
    _add_force(parser)
    add_quiet(parser)

    def run(options: argparse.Namespace) -> int:
        from conrepair.pipeline.build_command import build

        return build(options)

    parser.runs(run, keeps=False, files=("model",))


def _add_force(parser: Parser) -> None:
    parser["output"].add_argument(
        "--force", action="store_true", help="Replace the output if it exists and this verb wrote it."
    )


def _add_compiler(parser: Parser) -> None:
    """How TVM compiles."""
    group = parser["compiler"]
    group.add_argument(
        "--target",
        default="llvm",
        metavar="TARGET",
        help='Code to generate: llvm, opencl or cuda, with attributes: "llvm -mcpu=native" (default: %(default)s).',
    )
    group.add_argument(
        "--opt",
        default="O2",
        choices=("O0", "O1", "O2", "O3", "tuned"),
        help="Optimization level (default: %(default)s).",
    )
    group.add_argument(
        "--importer", choices=("onnx", "torch", "tflite"), help="Convert the model to this format first."
    )
    group.add_argument(
        "--required-pass", action="append", default=[], metavar="PASS", help="Run this pass. Repeat it for several."
    )
    group.add_argument(
        "--disabled-pass", action="append", default=[], metavar="PASS", help="Skip this pass. Repeat it for several."
    )
    group.add_argument(
        "--trials",
        type=count,
        default=64,
        metavar="N",
        help="Candidates to measure with --opt tuned (default: %(default)s).",
    )
    group.add_argument("--database", metavar="FOLDER", help="Start --opt tuned from an earlier tuning.")
    group.add_argument("--threads", type=count, metavar="N", help="Threads that a kernel may use.")
    group.add_argument(
        "--unfused",
        action="append",
        default=[],
        metavar="OPERATOR",
        help="Don't fuse this operator. Repeatable.",
    )
    group.add_argument(
        "--unscheduled",
        action="append",
        default=[],
        metavar="OPERATOR",
        help="Give this operator no schedule (on the CPU). Repeatable.",
    )
    group.add_argument("--debug", action="store_true", help="Keep the result of each kernel, and the imported model.")
    add_batch_size(parser, 1)
    add_timeout(parser, "step")
