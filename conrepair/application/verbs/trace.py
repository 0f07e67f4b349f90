"""The options of tracing and of accuracy tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

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
)
from conrepair.application.verbs.options import Loaded
from conrepair.ground.intake import arguments
from conrepair.ground.runtime.errors import UsageError
from conrepair.laboratory.tracing.search.names import MethodName, ObjectiveName

EXACT = "exact"
"""The name of float64 as the other side."""

_SYSTEM = Value(arguments.text, metavar="SYSTEM")


@options("search", seldom="accuracy granularity method objective weights seed builds")
class Trace(Loaded):
    """Of `trace`."""

    model: Any = model("An ONNX file, or a folder of them.", kw_only=False)
    setting: str = option(
        "How the model is run: a system and its setting (tvm-O3, tvm-fast, ort-all, torch-compile), or a setting of "
        "TVM (O3).",
        _SYSTEM,
        "models",
        default="tvm-O3",
    )
    against: str | None = option(
        "What that's compared with: another system, or `exact` for float64.",
        _SYSTEM,
        "models",
        usual="the same system with its optimizations off: tvm-O0, ort-none, ...",
        default=None,
    )
    switch: str | None = option(
        "Try this pass, optimization or option alone: `setting` with and without it.",
        Value(arguments.text, metavar="NAME"),
        "models",
        flag="--pass",
        default=None,
    )
    accuracy: str | Path | None = option(
        "Errors of operators that are known (accuracy.json of `conrepair accuracy`): what these explain isn't wrong.",
        FILE,
        "models",
        usual="16 units in the last place of each function",
        default=None,
    )
    granularity: int | None = option(
        "Most operators that TVM fuses into a kernel: the smaller, the finer an error is told.",
        COUNT,
        "models",
        default=None,
    )
    method: str = option(
        "How inputs are searched that bring an error to light.",
        Value(arguments.text, choices=get_args(MethodName)),
        default="mega",
    )
    objective: str = option(
        "What the search makes as large as it can: guide (the order of magnitude of the largest relative error, and "
        "a little of all others), the mean or the largest relative error, units in the last place, steps of outputs "
        "in whole numbers, the share of answers (largest elements) that change, or flip (a changed answer by the "
        "smallest change of a given sample).",
        Value(arguments.text, choices=get_args(ObjectiveName)),
        default="guide",
    )
    evaluations: int = option("Inputs that are tried.", COUNT, default=1000)
    seconds: float = option("Seconds for the search of inputs.", SECONDS, default=60.0, searches=True)
    low: float = option("Lower bound of inputs.", NUMBER, default=-5.0)
    high: float = option("Upper bound of inputs.", NUMBER, default=5.0)
    data: Any = option(
        "Inputs to start from (.npz/.npy, first axis samples): how many of their answers change is said first.",
        DATA,
        usual="random inputs",
        default=None,
    )
    weights: bool = option("Search the weights, too, up to half of their size around them.", default=False)
    seed: int = option("Seed of the search.", SEED, default=0)
    builds: int | None = option(
        "Most builds, or sessions, that are made to find which switches are to blame.",
        COUNT,
        usual="200, or 25 where rounding explains the deviation",
        default=None,
    )
    timeout: float = option("Seconds for each step, in worker processes.", SECONDS, "general", default=600.0, flag="")

    def __post_init__(self) -> None:
        """Check what belongs together."""
        super().__post_init__()
        if self.low >= self.high:
            raise UsageError(f"low is {self.low:g} and high {self.high:g}: give a range that has numbers in it")
        if self.objective == "flip" and self.data is None:
            raise UsageError("flip is the smallest change of given samples: give them (--data), or take answers")


@options("search")
class Accuracy(Options):
    """Of `accuracy`."""

    systems: Sequence[str] = option(
        "Systems with their settings (ort-all, tvm-O0, torch-eager); default: each that's installed, plain, "
        "as usual, and on the GPU where there is one.",
        Value(arguments.NAMES, metavar="SYSTEM", many=True),
        "models",
        flag="",  # in the shell they stand behind the verb
        default=(),
    )
    dtypes: Sequence[str] = option(
        "Element type.",
        Value(arguments.NAMES, metavar="TYPE", many=True),
        flag="--dtype",
        usual="float32",
        default=(),
    )
    operators: Sequence[str] = option(
        "Operator of ONNX to measure.",
        Value(arguments.NAMES, metavar="OPERATOR", many=True),
        flag="--operator",
        default=(),
    )
    timeout: float = option("Seconds for each system.", SECONDS, "general", default=600.0, flag="")
    output: str | Path | None = option(
        "Folder for accuracy.json, accuracy.md and accuracy.svg.", FOLDER, "output", default=None
    )
