"""The options of campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conrepair.application.verbs.option import (
    COUNT,
    DATA,
    FILE,
    FOLDER,
    OR_NONE,
    SECONDS,
    SHARE,
    Value,
    option,
    options,
)
from conrepair.ground.intake import arguments
from conrepair.ground.runtime.errors import UsageError
from conrepair_lab.options.generate import Programmed, comma_names

USUAL = ("ort-none", "ort-all", "convert-onnxslim", "convert-onnxsim", "convert-version")
"""Systems that are tried where none are named."""

_STEPS = 3  # of a screen


@options("models", seldom="data alone varied special slower releases network_seconds reduction_seconds")
class Fuzz(Programmed):
    """Of `fuzz`."""

    models: Sequence[str | Path] = option(
        "ONNX files to try, in place of generated networks; or one configuration (.json) with a section `fuzz`.",
        Value(arguments.FILES, metavar="MODEL|CONFIG", many=True),
        flag="",  # in the shell they stand behind the verb
        default=(),
    )
    data: Any = option(
        "Inputs for `models` (.npz/.npy, first axis samples): the first four samples are used.",
        DATA,
        usual="random inputs",
        default=None,
    )
    systems: Sequence[str] = option(
        "Systems to test, each with its setting (ort-all, tvm-O3, torch-compile, convert-onnxslim). ort-all@1.20.1 "
        "is another release, which is installed in an environment of its own.",
        Value(comma_names, metavar="SYSTEM,...", many=True),
        usual=", ".join(USUAL),
        default=(),
    )
    screen: int = option(
        "Patterns are screened first: their results with optimizations are compared with those without, after each "
        "small change. 0: no; 1: single changes; 2: also of other sizes, element types and alternatives; 3: also two "
        "changes at a time.",
        OR_NONE,
        default=1,
    )
    special: bool = option(
        "Also feed special values (NaN, infinities, the largest numbers), and report what comes of them last.",
        default=False,
    )
    count: int = option("Number of networks of `nodes` operators.", OR_NONE, default=100)
    alone: int = option("Number of networks of one operator, which are tested first.", OR_NONE, default=100)
    varied: float = option(
        "Share of networks that each system also runs with random options (some passes off, less fusion), share that "
        "it also runs with weights in place of inputs, and share with another number of threads.",
        SHARE,
        default=0.3,
    )
    slower: bool = option(
        "Also report settings that take more than twice as long as with optimizations off.", default=False
    )
    known: str | Path | None = option(
        "List of known findings (JSON): they are marked, and don't change the exit code.",
        FILE,
        flag="--baseline",
        default=None,
    )
    recheck: str | Path | None = option(
        "Only test the findings of this folder again, with the libraries that are installed now.",
        FOLDER,
        default=None,
    )
    releases: int | None = option(
        "With `recheck`: find the releases of the library in which each finding appears and disappears, by trying up "
        "to N releases before and N after the one it was found in, each in an environment of its own.",
        COUNT,
        usual="the installed release",
        default=None,
    )
    workers: int = option("Worker processes.", COUNT, "search", key="limits.workers", default=2)
    seconds: float | None = option(
        "Start nothing new after S seconds.", SECONDS, "search", usual="no limit", searches=True, default=None
    )
    network_seconds: float = option(
        "Time limit in seconds for each network on each system.", SECONDS, "search", flag="--each", default=60.0
    )
    reduction_seconds: float = option(
        "Seconds for making the network of a finding smaller.", SECONDS, "search", flag="--reduce", default=60.0
    )

    def __post_init__(self) -> None:
        """Check what has to be more than nothing."""
        super().__post_init__()
        for name in ("network_seconds", "reduction_seconds"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} is 0: give a number of seconds above 0")
        if self.screen > _STEPS:
            raise UsageError(f"screen is {self.screen}: give 0 to {_STEPS}")
        if self.releases is not None and self.recheck is None:
            raise UsageError("releases needs recheck: give the folder of the findings, too")
        if self.data is not None and not self.models:
            raise UsageError("data needs models of your own; generated networks have their own inputs")

    @property
    def entries(self) -> tuple[str, ...]:
        """The systems with their settings."""
        return tuple(self.systems) or USUAL

    @property
    def identity(self) -> dict[str, Any]:
        """What a campaign is told from others by: its networks and systems, not how long it goes."""
        told = {
            "seed": self.seed,
            "wishes": asdict(self.wishes),
            "systems": list(self.entries),
            "varied": self.varied,
        }
        return told | {name: True for name in ("slower", "special") if getattr(self, name)}
