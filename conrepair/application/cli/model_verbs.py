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

_SEVERAL = "Several are looked at one after the other."


@VERBS.verb(
    "SOURCE TARGET [OPTIONS]",
    files=("source", "target"),
    examples=[
        ("conrepair compare model.onnx model.tflite", "on 32 random inputs"),
        ("conrepair compare model.pt2 model.onnx --data photos/ --recipe torchvision", "on your photos"),
        ("conrepair compare model.onnx model.tflite --rtol 1e-2 -o report", "looser, and keep the report"),
    ],
)
def compare(parser: Parser) -> None:
    """Compare the answers of a model and its conversion.

    Run a model and its conversion on the same inputs, and compare their outputs element by element. It needs no data
    and no configuration. The exit code is 0 if they're equivalent and 1 if they aren't.
    """
    add_source(parser)
    parser["models"].add_argument("target", metavar="TARGET", help="The model converted from it.")
    add_options(parser, Compare)
    add_baseline(parser)
    add_output(
        parser,
        "Write the report, with each sample's answers and their comparison, below FOLDER (default: nothing is "
        "written).",
    )
    add_format(parser, "text", "json", "github")
    add_timeout(parser, "model")
    add_fresh(parser)


@VERBS.verb(
    "SOURCE TARGET [TARGET ...] [OPTIONS]",
    keeps=False,
    files=("source", "between", "targets"),
    examples=[
        ("conrepair localize model.onnx model.tflite", "print the layers at fault"),
        ("conrepair localize model.onnx model.tflite model-int8.tflite", "of two conversions of one model"),
        ("conrepair localize model.onnx model.tflite -o findings", "and keep a page of it, with all measurements"),
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
def localize(parser: Parser) -> None:
    """Name the layers in which a conversion differs from its original.

    Name the layers in which a conversion stops computing what its source does, with the fault of each. Each piece of
    the target is fed the source's activations, so that only its own error shows. It needs no data and no
    configuration. The exit code is 0 if nothing is wrong and 1 if something is.
    """
    add_source(parser)
    parser["models"].add_argument(
        "targets",
        metavar="TARGET",
        nargs="+",
        help="The model converted from it, a folder that `build` wrote, or outputs computed elsewhere (.npz). "
        f"{_SEVERAL}",
    )
    add_options(parser, Localize)
    add_timeout(parser, "model")
    add_format(parser, "text", "json", "github")
    add_output(
        parser,
        "Write the page, all measurements and colours for Model Explorer to FOLDER, for several targets to a "
        "folder in it for each (default: nothing is written).",
    )
    add_fresh(parser)


@VERBS.verb(
    "SOURCE TARGET [TARGET ...] [OPTIONS]\n       conrepair repair MODEL --apply PATCH [OPTIONS]",
    keeps=False,
    files=("source", "targets", "apply"),
    examples=[
        ("conrepair repair model.onnx model.tflite", "write model-repaired/"),
        ("conrepair repair model.onnx model.tflite -o fixed --seconds 900", "search longer"),
        ("conrepair repair model.tflite --apply fixed/patch.json -o again", "apply the edits of a patch"),
    ],
)
def repair(parser: Parser) -> None:
    """Fix a conversion with the smallest change, in its own format.

    Fix a conversion with the smallest change that makes it compute what its source does, in its own format, and
    verify the result on other inputs. The target's file stays as it is: the repaired model is written to a folder,
    TARGET-repaired in the current one if -o names none; where nothing is wrong, nothing is written. It needs no data
    and no configuration. The exit code is 0 if the result is equivalent, 1 if a fault is left.
    """
    parser["models"].add_argument(
        "source",
        metavar="SOURCE",
        help="The original model, which is right by definition; with --apply, the model or the build to edit.",
    )
    parser["models"].add_argument(
        "targets",
        metavar="TARGET",
        nargs="*",
        help=f"The model converted from it, or a folder that `build` wrote. {_SEVERAL}",
    )
    parser["models"].add_argument(
        "--apply", metavar="PATCH", help="Apply the edits of a patch.json to a model, without any search."
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
        ("conrepair convert model.keras --to onnx -o model.onnx", "along the best route"),
        (
            "conrepair convert model.keras --to tflite --option keras-tflite.quantize=int8 --data photos/ "
            "--recipe keras:tf -o model.tflite",
            "quantized, calibrated with photos",
        ),
    ],
)
def convert(parser: Parser) -> None:
    """Convert a model to another format, and compare the result.

    Convert a model along the best known route, and compare the result of every step with its source. If a converter
    fails, the operators that stop it are named, and another way is looked for.
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

    List a model's format, inputs, outputs, operators, parameters and producer. Of a model that can't be run here,
    what can be read is listed, and what's missing.
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
        ("conrepair inputs model.onnx -o inputs.npz", "then: compare model.onnx outputs.npz --data inputs.npz"),
        ("conrepair inputs model.onnx -o inputs.npz --samples 8 --seed 1", "fewer, and others"),
        ("conrepair inputs model.onnx -o inputs.npz --data photos/ --recipe torchvision", "photos, as it's fed them"),
    ],
)
def inputs(parser: Parser) -> None:
    """Write what a model is fed, to run it elsewhere.

    Write the inputs that `compare` and `localize` would draw for a model, or its data as it's fed, as arrays by the
    model's inputs. What a phone, a browser or another runtime computes of them is compared as a target: an .npz of
    outputs by name, first axis samples. With tensors on the way in it, under the model's names, `localize` says in
    which layers they differ.
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
        ("conrepair execute model.onnx --backend onnxruntime --option device=cuda", "on a GPU"),
        ("conrepair execute model.onnx --backend tvm --device rpc://127.0.0.1:9090/pi4", "on a board, timed there"),
    ],
)
def execute(parser: Parser) -> None:
    """Run a model on a backend, and show or keep its outputs.

    Run a model in its own library, in ONNX Runtime as deployed, or compiled by TVM (also on a board, over RPC); what
    a compiler made is compared with the model in its own library.
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

    Compile a model with TVM, and write the module, Relax after optimization, and the generated code. `localize` and
    `repair` take the folder as a target.
    """
    add_model(parser)
    add_options(parser, Build)
    add_timeout(parser, "step")
    parser["compiler"].add_argument(
        "--explain", action="store_true", help="List the passes in order, and compile nothing."
    )
    add_force(parser)
