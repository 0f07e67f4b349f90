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
from conrepair_lab.tracing.search.names import MethodName, ObjectiveName

EXACT = "exact"
"""The name of float64 as the other side."""

_SYSTEM = Value(arguments.text, metavar="SYSTEM")


@options("search", seldom="accuracy granularity method objective weights seed builds")
class Trace(Loaded):
    """Of `trace`."""

    model: Any = model("An ONNX file, or a folder of them.", kw_only=False)
    setting: str = option(
        "System that runs the model, with its setting: tvm-O3, tvm-fast, ort-all, torch-compile; O3 alone is TVM's.",
        _SYSTEM,
        "models",
        default="tvm-O3",
    )
    against: str | None = option(
        "System to compare it with, or `exact` for float64.",
        _SYSTEM,
        "models",
        usual="the same system with its optimizations off: tvm-O0, ort-none, ...",
        default=None,
    )
    switch: str | None = option(
        "Compare `setting` with and without this pass, optimization or option.",
        Value(arguments.text, metavar="NAME"),
        "models",
        flag="--pass",
        default=None,
    )
    accuracy: str | Path | None = option(
        "Known errors of operators (accuracy.json of `conrepair accuracy`), which aren't reported again.",
        FILE,
        "models",
        usual="16 ulps for each function",
        default=None,
    )
    granularity: int | None = option(
        "Most operators that TVM fuses into a kernel: the fewer, the more precisely an error is located.",
        COUNT,
        "models",
        default=None,
    )
    method: str = option(
        "Method that searches for inputs that show an error.",
        Value(arguments.text, choices=get_args(MethodName)),
        default="mega",
    )
    objective: str = option(
        "What the search maximizes: the mean or the largest relative error; guide (the magnitude of the largest "
        "relative error, and a little of the others); ulps (units in the last place); steps (of integer outputs); "
        "answers (the share of changed top-1 predictions); flip (a changed prediction by the smallest change of a "
        "given sample).",
        Value(arguments.text, choices=get_args(ObjectiveName)),
        default="guide",
    )
    evaluations: int = option("Number of inputs to try.", COUNT, default=1000)
    seconds: float = option("Seconds for the search.", SECONDS, default=60.0, searches=True)
    low: float = option("Lower bound of inputs.", NUMBER, default=-5.0)
    high: float = option("Upper bound of inputs.", NUMBER, default=5.0)
    data: Any = option(
        "Inputs to start from (.npz/.npy, first axis samples); how many of their predictions change is reported.",
        DATA,
        usual="random inputs",
        default=None,
    )
    weights: bool = option("Also vary the weights, by up to half of their value.", default=False)
    seed: int = option("Seed of the search.", SEED, default=0)
    builds: int | None = option(
        "Most builds or sessions to find which passes or options cause the error.",
        COUNT,
        usual="200, or 25 within rounding error",
        default=None,
    )
    timeout: float = option("Seconds for each step, in worker processes.", SECONDS, "general", default=600.0, flag="")

    def __post_init__(self) -> None:
        """Check what belongs together."""
        super().__post_init__()
        if self.low >= self.high:
            raise UsageError(f"low is {self.low:g} and high is {self.high:g}: low must be below high")
        if self.objective == "flip" and self.data is None:
            raise UsageError("objective flip needs samples (data): give some, or choose objective answers")


@options("search")
class Accuracy(Options):
    """Of `accuracy`."""

    systems: Sequence[str] = option(
        "Systems with their settings (ort-all, tvm-O0, torch-eager); default: each that's installed, with its "
        "optimizations off and on, and on the GPU where there is one.",
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
