"""Verbs of one model or two, which need no configuration."""

from __future__ import annotations

from conrepair.application.cli.parser import Catalogue, Parser
from conrepair.application.cli.shared import (
    add_baseline,
    add_force,
    add_format,
    add_fresh,
    add_model,
    add_options,
    add_output,
    add_source,
    add_timeout,
)
from conrepair.application.verbs.options import (
    Build,
    Compare,
    Compiled,
    Convert,
    Execute,
    Inputs,
    Inspect,
    Localize,
    Repair,
)

VERBS = Catalogue()

_SEVERAL = "Several are checked one after the other."


@VERBS.verb(
    "ORIGINAL CONVERTED [OPTIONS]",
    files=("source", "target"),
    examples=[
        ("conrepair compare model.onnx model.tflite", "on 32 random inputs"),
        ("conrepair compare model.pt2 model.onnx --data photos/ --recipe torchvision", "on your photos"),
        ("conrepair compare model.onnx model.tflite --rtol 1e-2 -o report", "looser tolerance, and keep the report"),
    ],
)
def compare(parser: Parser) -> None:
    """Tell whether a converted model still gives the same outputs.

    Run the original and the converted model on the same inputs, and compare their outputs and predictions. It needs
    no data and no configuration. Exit code 0: the same, up to rounding or the quantization you asked for; 1: not.
    """
    add_source(parser)
    parser["models"].add_argument("target", metavar="CONVERTED", help="The converted model.")
    add_options(parser, Compare)
    add_baseline(parser)
    add_output(
        parser,
        "Write the report, with each sample's outputs and their comparison, below FOLDER (default: nothing is "
        "written).",
    )
    add_format(parser, "text", "json", "github")
    add_timeout(parser, "model")
    add_fresh(parser)


@VERBS.verb(
    "ORIGINAL CONVERTED [CONVERTED ...] [OPTIONS]\n       conrepair localize MODEL --backend NAME [OPTIONS]",
    keeps=False,
    files=("source", "between", "targets"),
    examples=[
        ("conrepair localize model.onnx model.tflite", "print the faulty layers"),
        ("conrepair localize model.onnx model.tflite -o findings", "and keep a page of it, with all measurements"),
        (
            "conrepair localize model.keras model.tflite --intermediate model.onnx",
            "for a conversion in two steps, name the step, too",
        ),
        ("conrepair localize model.onnx --backend onnxruntime", "what a runtime computes wrongly"),
    ],
)
def localize(parser: Parser) -> None:
    """Name the layers of a converted model that compute something else.

    Name the layers of a converted model that compute something else than those of the original, and say what is wrong
    with each. Each layer is fed the activations of the original, so that only the error that it adds itself shows. It
    needs no data and no configuration. Exit code 0: nothing is wrong; 1: something is.
    """
    add_source(parser)
    parser["models"].add_argument(
        "targets",
        metavar="CONVERTED",
        nargs="*",
        help="The converted model, or several; a folder that `build` wrote, or outputs computed elsewhere (.npz).",
    )
    add_options(parser, Localize)
    add_baseline(parser, seldom=True)
    add_timeout(parser, "model")
    add_format(parser, "text", "json", "github")
    add_output(
        parser,
        "Write a page and all measurements to FOLDER, for several models to a folder in it for each "
        "(default: nothing is written).",
    )
    add_fresh(parser)


@VERBS.verb(
    "ORIGINAL CONVERTED [CONVERTED ...] [OPTIONS]\n       conrepair repair MODEL --apply PATCH [OPTIONS]",
    keeps=False,
    files=("source", "targets", "apply"),
    examples=[
        ("conrepair repair model.onnx model.tflite", "write model-repaired/"),
        ("conrepair repair model.onnx model.tflite -o fixed --seconds 900", "search longer"),
        ("conrepair repair model.tflite --apply fixed/patch.json -o again", "apply the edits of a patch"),
    ],
)
def repair(parser: Parser) -> None:
    """Fix a converted model's file with the smallest change.

    Fix a converted model with the smallest change, in its own format, and verify the result on other inputs. The
    file stays as it is: the repaired one is written to a folder (-o), by default NAME-repaired in the current folder;
    where nothing is wrong, nothing is written. It needs no data and no configuration. Exit code 0: the result is
    equivalent; 1: a fault is left.
    """
    parser["models"].add_argument(
        "source",
        metavar="ORIGINAL",
        help="The original model, which counts as right; with --apply, the model or build to edit.",
    )
    parser["models"].add_argument(
        "targets",
        metavar="CONVERTED",
        nargs="*",
        help=f"The converted model, or a folder that `build` wrote. {_SEVERAL}",
    )
    parser["models"].add_argument(
        "--apply", metavar="PATCH", help="Apply the edits of a patch.json to a model, without a search."
    )
    add_options(parser, Repair)
    add_timeout(parser, "model", searches="--seconds and --advice")
    add_format(parser, "text", "json", "github")
    add_fresh(parser)


@VERBS.verb(
    "MODEL --to FORMAT -o OUTPUT [OPTIONS]",
    keeps=False,
    files=("model",),
    examples=[
        ("conrepair convert model.keras --to onnx -o model.onnx", "by the best known converters"),
        (
            "conrepair convert model.keras --to tflite --option keras-tflite.quantize=int8 --data photos/ "
            "--recipe keras:tf -o model.tflite",
            "quantized, calibrated with photos",
        ),
    ],
)
def convert(parser: Parser) -> None:
    """Convert a model to another format, and compare the result.

    Convert a model by the best known converters, and compare the result of every step with the original. If a
    converter fails, the operators that stop it are named, and another way is tried.
    """
    add_model(parser)
    add_options(parser, Convert, required={"output"})
    add_force(parser)
    add_format(parser)
    add_timeout(parser, "step", searches="--seconds")
    add_fresh(parser)


@VERBS.verb(
    "MODEL [OPTIONS]",
    keeps=False,
    files=("model",),
    examples=[
        ("conrepair inspect model.tflite", "as a table"),
        ("conrepair inspect model.tflite -f json", "as JSON"),
    ],
)
def inspect(parser: Parser) -> None:
    """List a model's inputs, outputs, operators and parameters.

    List a model's format, inputs, outputs, operators, parameters and producer. A model that can't be run here is
    listed as far as it can be read, with what is missing.
    """
    add_model(parser)
    add_options(parser, Inspect)
    add_format(parser)
    add_timeout(parser, "attempt to read the model")


@VERBS.verb(
    "MODEL -o FILE [OPTIONS]",
    keeps=False,
    files=("model",),
    examples=[
        ("conrepair inputs model.onnx -o inputs.npz", "write the inputs; then run the model there"),
        ("conrepair inputs model.onnx -o inputs.npz --samples 8 --seed 1", "8 samples, and another seed"),
        ("conrepair inputs model.onnx -o inputs.npz --data photos/ --recipe torchvision", "photos, preprocessed"),
        ("conrepair inputs model.tflite -o phone.npz --data inputs.npz", "the same for the converted file"),
    ],
)
def inputs(parser: Parser) -> None:
    """Write test inputs to a file, to run a model elsewhere.

    For a model that runs on a phone, in a browser or in another runtime. 1. Write test inputs, as `compare` would
    draw them (or your data, preprocessed), in the type that the model takes: quantized, where that's integers. 2. Run
    the model there, and save its outputs by name as outputs.npz, first axis samples. 3. `conrepair compare MODEL
    outputs.npz --data inputs.npz`. For an original and what was converted of it: write the original's inputs, of
    these (--data) the converted file's, and compare the original with outputs.npz on the first. If outputs.npz also
    holds tensors between the layers, under the names of the original, `localize` names the layers that differ.
    """
    add_model(parser)
    add_options(parser, Inputs, required={"output"})
    add_force(parser)
    add_timeout(parser, "step")
    add_fresh(parser)


@VERBS.verb(
    "MODEL [OPTIONS]",
    keeps=False,
    files=("model",),
    examples=[
        ("conrepair execute model.onnx", "shapes and ranges of the outputs on 8 random inputs"),
        ("conrepair execute model.onnx --backend tvm --opt O3 -o outputs", "compiled, outputs kept as .npy"),
        (
            "conrepair execute model.onnx --backend all -o everywhere",
            "which runtimes compute what it says, on a page",
        ),
        ("conrepair execute model.onnx --backend onnxruntime --option device=cuda", "on a GPU"),
        ("conrepair execute model.onnx --backend tvm --device rpc://127.0.0.1:9090/pi4", "on a board, timed there"),
    ],
)
def execute(parser: Parser) -> None:
    """Run a model on a backend, and show or keep its outputs.

    Run a model in its own library, in ONNX Runtime as deployed, or compiled by TVM (also on a board, over RPC). The
    outputs of another backend than its own library are compared with those of the library.
    """
    add_model(parser)
    add_options(parser, Execute)
    add_options(parser, Compiled)
    add_timeout(parser, "step")
    parser["compiler"].add_argument(
        "--device",
        default="local",
        metavar="DEVICE",
        help="Where TVM runs it: local, rpc://HOST:PORT/KEY or tracker://HOST:PORT/KEY (default: %(default)s).",
    )
    add_output(parser, "Write the outputs as .npy files, and result.json, to FOLDER (default: nothing is written).")
    add_force(parser)
    add_fresh(parser)


@VERBS.verb(
    "MODEL -o FOLDER [OPTIONS]",
    keeps=False,
    files=("model",),
    examples=[
        ("conrepair build model.onnx --opt O3 -o build", "compile for this CPU"),
        ("conrepair build model.onnx --opt O3 --explain", "list the passes, and compile nothing"),
    ],
)
def build(parser: Parser) -> None:
    """Compile a model with TVM.

    Compile a model with TVM, and write the module, Relax after optimization, and the generated code. `compare`,
    `localize` and `repair` take the folder as the converted model.
    """
    add_model(parser)
    add_options(parser, Build)
    add_timeout(parser, "step")
    parser["compiler"].add_argument(
        "--explain", action="store_true", help="List the passes in order, and compile nothing."
    )
    add_force(parser)
