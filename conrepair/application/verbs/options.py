"""The options of each verb of a model or two: the parser, help, Python's signatures and pages are made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from conrepair.application.verbs import numbers
from conrepair.application.verbs.metrics import metrics
from conrepair.application.verbs.option import (
    COUNT,
    DATA,
    FILE,
    FOLDER,
    NUMBER,
    SECONDS,
    SEED,
    Options,
    Value,
    model,
    option,
    options,
    written,
)
from conrepair.application.verbs.tolerances import max_drops, tolerances
from conrepair.formats.models.formats import format_name, unknown_format
from conrepair.ground.intake import arguments
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.plugins import Names
from conrepair.verdicts.evaluate.tolerance import ArithmeticName, Tolerance

if TYPE_CHECKING:
    from conrepair.ground.data.pictures.recipe import Recipe
    from conrepair.ground.data.tensor_spec import TensorSpec

    _Recipe = str | Path | Mapping[str, Any] | Recipe | None

EVERYWHERE = "all"
"""The backends that there are."""

_BACKENDS = Names("backends", ("libraries", "onnxruntime", "tflite", "inductor", "xla", "tvm", EVERYWHERE))

_PREPARED = Value(arguments.recipe, metavar="RECIPE")
_OPERATORS = Value(arguments.NAMES, metavar="OPERATOR", many=True)
_PASSES = Value(arguments.NAMES, metavar="PASS", many=True)

_RIGHT = "The original model (a path or an object) or its outputs; it counts as right."
_CONVERTED = (
    "The converted model, a folder that `build` wrote, or outputs computed elsewhere (.npz, arrays by name, or a "
    "function of `data`); it's only read."
)
_ONE = "A path or an object."
_BATCH = "Batch size for models with an open batch dimension."


def _listed(text: str) -> list[str]:
    return text.split(",")


def _format(name: str, value: Any) -> str:
    """A format by its name, which a person may write otherwise."""
    known = format_name(arguments.text(name, value))
    if problem := unknown_format(known):
        raise UsageError(f"{name}: {problem}")
    return known


def _converters_options(name: str, value: Any) -> Any:
    """Options by converter, or the words of a shell that say them."""
    return (arguments.BY_CONVERTER if isinstance(value, Mapping) else arguments.NAMES)(name, value)


def _backends_options(name: str, value: Any) -> Any:
    """Options of a backend, or of texts "NAME=VALUE", whose values are JSON or just texts."""
    if isinstance(value, Mapping):
        return arguments.OPTIONS(name, value)
    found: dict[str, Any] = {}
    for text in arguments.NAMES(name, value):
        key, equals, said = text.partition("=")
        if not (equals and key):
            raise UsageError(f"{name}: {text!r}: write NAME=VALUE, as in optimization=basic")
        try:
            found[key] = json.loads(said)
        except ValueError:
            found[key] = said
    return found


@options("general", seldom="inputs")
class Loaded(Options):
    """Of every verb that loads a model."""

    progress: bool = option(
        "Show progress on standard error; the logger `conrepair` gets it in any case, at level INFO.",
        flag="",  # a shell shows it unless --quiet is given
        default=False,
    )

    inputs: Sequence[str | TensorSpec] | str | TensorSpec = option(
        "Inputs that the model's file doesn't describe (TorchScript), each as in batch,3,224,224:float32.",
        Value(arguments.DECLARED, metavar="[NAME=]SHAPE[:DTYPE]", many=True),
        "inputs",
        flag="--input",
        default=(),
    )
    timeout: float = option(
        "Seconds for each model or step, in worker processes.",
        SECONDS,
        default=600.0,
        usual="600, more where models above 500 MB are compared",
        flag="",  # a command has one limit for all that it does, which `cli.time_limit` declares
    )
    trust: bool = option(
        "Load files that hold code (pickles, custom layers) or refer to other files: only your own, or those of "
        "somebody whose programs you would run (docs/security.md). Ordinary files don't need it.",
        group="models",
        default=False,
    )
    in_process: bool = option(
        "Run everything in this process instead of confined worker processes: a debugger works, but a library that "
        "crashes ends the process, time limits don't hold, and a malicious file isn't confined (docs/security.md).",
        flag="",
        default=False,
    )


def samples(drawn: int, of_data: str, *, default: None = None) -> Any:
    """How many inputs; one default for drawn ones, another for data.

    Args:
        drawn: The first.
        of_data: The second, in words.
        default: Neither was chosen.
    """
    return option(
        "Number of inputs: random ones, or of `data` (photos: every n-th).",
        Value(arguments.SAMPLES, numbers.samples, "N"),
        "inputs",
        usual=f"{drawn}{of_data}",
        default=default,
    )


@options("inputs", seldom="steps seed low high")
class Fed(Loaded):
    """Of every verb that runs a model.

    Attributes:
        drawn: Inputs that are drawn where nobody says how many.
        of_data: Inputs that are taken of data then; None: all.
    """

    drawn: ClassVar[int] = 32
    of_data: ClassVar[int | None] = None

    data: Any = option(
        "Your own inputs, first axis samples: a folder of photos, .npz/.npy, arrays, or an iterable of batches.",
        DATA,
        usual="random inputs",
        typed="Your own inputs: a folder of photos, or .npz/.npy arrays, samples first.",
        default=None,
    )
    recipe: _Recipe = option(
        "Preprocessing of photos: torchvision, keras:tf, raw, or a recipe.json.",
        _PREPARED,
        default=None,
    )
    samples: int | None = samples(32, ", and all of the data")
    steps: int | None = option(
        "Steps of a sample, for models that keep a state between calls: each step is compared.",
        COUNT,
        usual="4 for models that keep a state, else 1",
        default=None,
    )
    seed: int = option("Seed of random inputs.", SEED, default=0)
    low: float | None = option("Lower bound of random inputs.", NUMBER, usual="the files' own, else -1", default=None)
    high: float | None = option("Upper bound of random inputs.", NUMBER, usual="the files' own, else 1", default=None)

    @property
    def count(self) -> int:
        """Inputs that are drawn, or taken of what gives batches without end."""
        return self.drawn if self.samples is None else self.samples

    @property
    def limit(self) -> int | None:
        """Inputs that are taken of data; None: all."""
        return None if self.data is None else self.of_data if self.samples is None else self.samples


@options("inputs", seldom="labels classes")
class Labelled(Fed):
    """Of every verb that tells how many predictions are right."""

    labels: str | Path = option(
        "Where the labels of photos come from: subfolders (one for each class), filenames (circle_003.png is of the "
        "class circle; photo_12.png of class 12), a CSV file (rows FILE,LABEL, with or without a header; labels are "
        "numbers or names of classes), or none.",
        Value(arguments.path_text, metavar="SOURCE"),
        usual="labels.csv in the folder, else subfolders, else file names that begin with `classes`",
        key="dataset.labels",
        default="auto",
    )
    classes: Sequence[str] | str | Path | None = option(
        "Names of the classes in the order of the model's outputs, which number labels that are names: a text file, "
        "one name a line, or a list of them.",
        Value(arguments.classes, metavar="FILE"),
        usual="classes.txt or labels.txt beside photos or model, or metadata of TFLite, where all labels are in "
        "it; else alphabetical order",
        key="dataset.classes",
        default=None,
    )


@options("tolerances", seldom="target_recipe tolerance metrics max_drop strict_signature arithmetic")
class Pair(Labelled):
    """Of every verb that compares two models."""

    source: Any = model(_RIGHT, kw_only=False)
    target: Any = model(_CONVERTED, kw_only=False)
    target_recipe: _Recipe = option(
        "Preprocessing for the converted model, if it isn't that of the original.", _PREPARED, "inputs", default=None
    )
    rtol: float | None = option(
        "Relative tolerance of each element of the outputs. If you set `rtol` or `atol`, only these are checked.",
        NUMBER,
        usual=written(Tolerance.rtol),
        key="tolerance.rtol",
        default=None,
    )
    atol: float | None = option(
        "Absolute tolerance of each element of the outputs.",
        NUMBER,
        usual=written(Tolerance.atol),
        key="tolerance.atol",
        default=None,
    )
    tolerance: Mapping[str, Mapping[str, float]] | Sequence[str] | str = option(
        "Tolerances (rtol, atol, relative_l2) of all outputs, of one, or of a type: atol=1e-5,rtol=1e-3, "
        "boxes:atol=0.5, float16:rtol=1e-2; Python takes a dictionary of them by output or type, too. An output goes "
        "before its type, and a type before all outputs.",
        Value(tolerances, metavar="[OF:]NAME=X[,NAME=X]", many=True),
        default=(),
    )
    metrics: Any = option(
        "Your own metrics: functions of an output of both models (the original's first; arrays, samples first) that "
        "return a number. It's shown; with a limit it decides, too. A function, its name (FILE.py:FUNCTION or "
        "MODULE:FUNCTION; "
        'needs `trust`), or {"function": iou, "min": 0.9, "max": 1, "output": "boxes"}.',
        Value(metrics, metavar="FUNCTION[,min=X][,max=X][,output=NAME]", many=True),
        flag="--metric",
        typed="Your own metric: a function (FILE.py:FUNCTION or MODULE:FUNCTION) of an output of the original and of "
        "the converted model (arrays, samples first) that returns a number. It's shown; with min or max it decides, "
        "too. Running your program needs --trust. Repeat it for several.",
        default=(),
    )
    max_drop: Mapping[str, float] | Sequence[str] | str = option(
        "By how much the accuracy on labelled `data` may drop, in points: top1:0.5%, top5:1% (Python: a dictionary, "
        "too). A model that loses more is faulty. For a quantized model this replaces the allowed share of changed "
        "predictions and the cosine.",
        Value(max_drops, metavar="topK:SHARE", many=True),
        default=(),
    )
    strict_signature: bool = option(
        "Fail if inputs or outputs have another layout (channels last for channels first), though all values are "
        "right.",
        usual="another layout is noted, and doesn't change the verdict",
        key="tolerance.strict_signature",
        default=False,
    )
    arithmetic: str = option(
        "Arithmetic that the converted model is computed in: differences that it causes by itself, as simulated on "
        "the original, are no fault.",
        Value(arguments.text, choices=get_args(ArithmeticName)),
        usual="that of the backend, float32 on this CPU, and for recorded outputs the one of these that fits",
        key="tolerance.arithmetic",
        default="",
    )


@options("inputs", seldom="batch_size")
class Compare(Pair):
    """Of `compare`."""

    samples: int | None = samples(32, ", fewer for models above 500 MB, and all of the data")
    batch_size: int = option(_BATCH, COUNT, default=16)
    static: bool = option(
        "Run nothing: prove from the files alone that both models compute the same, or name the layers that differ "
        "and how.",
        group="models",
        default=False,
    )


@options("tolerances", seldom="batch_size latent")
class Layers(Pair):
    """Of every verb that compares layers."""

    batch_size: int = option(_BATCH, COUNT, "inputs", key="localize.batch_size", default=4)
    margin: float = option(
        "A layer is faulty if the error that it adds is X times the rounding error; an output, if its error is.",
        NUMBER,
        key="tolerance.noise_margin",
        default=Tolerance.noise_margin,
    )
    latent: bool = option(
        "Fail on faults that these inputs don't trigger, too, such as a clip limit that no value reaches.",
        usual="they're listed, and don't change the verdict",
        key="localize.latent",
        default=False,
    )


@options("models", seldom="backend options")
class Placed(Options):
    """Of every verb that runs a model where somebody says."""

    backend: str = option(
        "Where to run it (the converted one of two): in the model's own library, or, with all optimizations, in ONNX "
        "Runtime, TFLite, torch.compile, XLA or TVM, or in a runtime that an installed plug-in brings. `execute` "
        "takes `all`: each of these, compared.",
        Value(arguments.text, choices=_BACKENDS),
        default="libraries",
    )
    options: Mapping[str, Any] | Sequence[str] = option(
        "Options of the backend, as a configuration has them: optimization=basic, or as JSON: "
        """'disabled_optimizers=["MatMulScaleFusion"]'; Python takes a dictionary, too.""",
        Value(_backends_options, metavar="NAME=VALUE", many=True),
        flag="--option",
        default=(),
    )


@options("models")
class Localize(Placed, Layers):
    """Of `localize`."""

    of_data: ClassVar[int | None] = 256

    samples: int | None = samples(32, ", fewer for models above 500 MB, and 256 of the data")
    between: Sequence[Any] = option(
        "Models on the way from the original to the converted model, in order: tells which step brought a fault in.",
        Value(arguments.MODELS, metavar="FILE", many=True),
        flag="--intermediate",
        default=(),
    )


@options("search", seldom="advice bake_recipe")
class Repair(Layers):
    """Of `repair`."""

    drawn: ClassVar[int] = 72
    of_data: ClassVar[int | None] = 72

    samples: int | None = samples(72, ", fewer for models above 500 MB")
    output: str | Path | None = option(
        "Folder for the repaired model, patch.json and result.json; without one they go with the result.",
        FOLDER,
        "output",
        typed="Folder for the repaired model, patch.json and result.json, for several models with a folder in it for "
        "each (default: NAME-repaired in the current folder).",
        default=None,
    )
    seconds: float = option(
        "Stop the search for edits of a model after S seconds.",
        SECONDS,
        key="repair.seconds",
        searches=True,
        default=300.0,
    )
    advice: float = option(
        "Spend up to S seconds on trying other ways to convert the original; 0: they're only named.",
        SECONDS,
        key="repair.advice_seconds",
        searches=True,
        default=60.0,
    )
    bake_recipe: bool = option(
        "If photos must be preprocessed differently, build the preprocessing into the model.",
        key="repair.bake_recipe",
        default=False,
    )


@options("search", seldom="via seconds")
class Convert(Fed):
    """Of `convert`."""

    drawn: ClassVar[int] = 8

    model: Any = model(_ONE, kw_only=False)
    to: str = option(
        "Format to convert to: torch, keras, tensorflow, tflite or onnx.", Value(_format, metavar="FORMAT"), "models"
    )
    via: Sequence[str] = option(
        "Converters to use, in this order; in a shell separated by commas.",
        Value(arguments.NAMES, _listed, "CONVERTERS"),
        usual="the best route",
        default=(),
    )
    options: Mapping[str, Mapping[str, Any]] | Sequence[str] = option(
        "Options of converters, as in keras-tflite.quantize=int8; Python takes dictionaries by converter, too.",
        Value(_converters_options, metavar="CONVERTER.NAME=VALUE", many=True),
        flag="--option",
        default=(),
    )
    output: str | Path | None = option(
        "File or folder to write; without one the model lies in a folder that goes with the result.",
        Value(arguments.path, metavar="OUTPUT"),
        "output",
        typed="File or folder to write.",
        default=None,
    )
    samples: int | None = samples(8, ", and all of the data")
    check: bool = option(
        "Compare the result with the original.",
        flag="--no-check",
        typed="Don't compare the result with the original.",
        default=True,
    )
    mend: bool = option(
        "Look for another way if the conversion fails.",
        flag="--no-repair",
        typed="Don't look for another way if the conversion fails.",
        default=True,
    )
    seconds: float = option(
        "If the conversion fails, look for another way for up to S seconds.", SECONDS, searches=True, default=120.0
    )


@options("output")
class Inputs(Fed):
    """Of `inputs`."""

    model: Any = model(_ONE, kw_only=False)
    output: str | Path | None = option(
        "File for the arrays (.npz); without one they are the result alone.",
        FILE,
        typed="File for the arrays (.npz).",
        default=None,
    )


@options()
class Inspect(Loaded):
    """Of `inspect`."""

    model: Any = model(_ONE, kw_only=False)


@options(
    "compiler",
    seldom="importer required_pass disabled_pass trials database threads unfused unscheduled stable float64",
)
class Compiled(Options):
    """How TVM compiles."""

    target: str = option(
        'Code to generate: llvm, opencl or cuda, with attributes: "llvm -mcpu=native".',
        Value(arguments.text, metavar="TARGET"),
        default="llvm",
    )
    setting: str = option(
        "Optimization level.",
        Value(arguments.text, choices=("O0", "O1", "O2", "O3", "tuned")),
        flag="--opt",
        default="O2",
    )
    importer: str | None = option(
        "Convert the model to this format first.",
        Value(arguments.text, choices=("onnx", "torch", "tflite")),
        usual="the model's own, or onnx",
        default=None,
    )
    required_pass: Sequence[str] = option("Run this pass.", _PASSES, default=())
    disabled_pass: Sequence[str] = option("Skip this pass.", _PASSES, default=())
    trials: int = option("Candidates to measure with `setting` tuned.", COUNT, default=64)
    database: str | Path | None = option("Start `setting` tuned from an earlier tuning.", FOLDER, default=None)
    threads: int | None = option("Threads that a kernel may use.", COUNT, usual="all that TVM has", default=None)
    unfused: Sequence[str] = option("Don't fuse this operator.", _OPERATORS, default=())
    unscheduled: Sequence[str] = option("Give this operator no schedule (on the CPU).", _OPERATORS, default=())
    stable: Sequence[str] = option(
        "Compute this operator of an ONNX model in a form that keeps its digits.", _OPERATORS, default=()
    )
    float64: Sequence[str] = option("Compute this operator of an ONNX model in float64.", _OPERATORS, default=())
    debug_enabled: bool = option("Keep the result of each kernel, as files.", flag="--debug", default=False)

    @property
    def compiler(self) -> dict[str, Any]:
        """Those that somebody chose, as a backend of a configuration has them."""
        names = [name for name, _, default in Compiled.declared() if getattr(self, name) != default]
        return {name: getattr(self, name) for name in names}


@options("output", seldom="batch_size")
class Build(Compiled, Loaded):
    """Of `build`."""

    model: Any = model(_ONE, kw_only=False)
    output: str | Path | None = option(
        "Folder to write; without one the build lies in a folder that goes with the result.",
        FOLDER,
        typed="Folder to write.",
        default=None,
    )
    batch_size: int = option(_BATCH, COUNT, "inputs", default=1)


@options("models", seldom="batch_size")
class Execute(Placed, Labelled):
    """Of `execute`."""

    drawn: ClassVar[int] = 8

    model: Any = model(_ONE, kw_only=False)
    tvm: Mapping[str, Any] | None = option(
        "Options of TVM, those of `build` and `device`: where it runs.",
        Value(arguments.OPTIONS),
        "compiler",
        default=None,
        flag="",  # in the shell each is an option of its own
    )
    samples: int | None = samples(8, ", and all of the data")
    batch_size: int = option(_BATCH, COUNT, "inputs", default=1)
