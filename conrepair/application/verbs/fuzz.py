"""The options of campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conrepair.application.verbs.generate import Programmed, comma_names
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

USUAL = ("ort-none", "ort-all", "convert-onnxslim", "convert-onnxsim", "convert-version")
"""Systems that are tried where none are named."""


@options("models", seldom="data alone slips bare varied slower releases network_seconds reduction_seconds")
class Fuzz(Programmed):
    """Of `fuzz`."""

    models: Sequence[str | Path] = option(
        "ONNX files to try, in place of generated networks; or one configuration (.json) with a section `fuzz`.",
        Value(arguments.FILES, metavar="MODEL|CONFIG", many=True),
        flag="",  # in the shell they stand behind the verb
        default=(),
    )
    data: Any = option(
        "Inputs to feed to `models` (.npz/.npy, first axis samples), the first four.",
        DATA,
        usual="random inputs",
        default=None,
    )
    systems: Sequence[str] = option(
        "Systems with their settings (ort-all, tvm-O3, torch-compile, convert-onnxslim), separated by commas; "
        "ort-all@1.20.1 is another release, in an environment of its own.",
        Value(comma_names, metavar="SYSTEM,...", many=True),
        usual=", ".join(USUAL),
        default=(),
    )
    count: int = option("Networks of `nodes` operators.", OR_NONE, default=100)
    alone: int = option("Networks of one operator, which come first.", OR_NONE, default=100)
    slips: float = option("Share of patterns in which one node isn't as it should be.", SHARE, default=0.5)
    bare: float = option(
        "Share of the networks of several operators that are one pattern and nothing else.", SHARE, default=0.5
    )
    varied: float = option(
        "Share of the networks that a system runs with drawn options (passes left out, less fused), share with "
        "inputs that are weights, and share that runs with another number of threads, too. Above 0 what is built is "
        "fed odd numbers (NaN, infinities, zeros) besides.",
        SHARE,
        default=0.3,
    )
    slower: bool = option(
        "Suspect settings that take more than twice as long as those with most left out, too.", default=False
    )
    known: str | Path | None = option(
        "Known findings (JSON): they're named as such, and don't fail.", FILE, flag="--baseline", default=None
    )
    recheck: str | Path | None = option(
        "Try the findings of a folder again, by what's installed, and nothing else.", FOLDER, default=None
    )
    releases: int | None = option(
        "With recheck: since which release of their library findings are seen, and until which, by asking up to N "
        "before theirs and N behind it, each in an environment of its own.",
        COUNT,
        usual="what is installed is asked",
        default=None,
    )
    workers: int = option("Worker processes.", COUNT, "search", key="limits.workers", default=2)
    seconds: float | None = option(
        "Begin nothing more after S seconds.", SECONDS, "search", usual="no limit", searches=True, default=None
    )
    network_seconds: float = option(
        "Time limit in seconds for each network on each system.", SECONDS, "search", flag="--each", default=60.0
    )
    reduction_seconds: float = option(
        "Seconds in which a case is made smaller.", SECONDS, "search", flag="--reduce", default=60.0
    )

    def __post_init__(self) -> None:
        """Check what has to be more than nothing."""
        super().__post_init__()
        for name in ("network_seconds", "reduction_seconds"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} is 0: give more seconds")
        if self.releases is not None and self.recheck is None:
            raise UsageError("releases are those of findings: give their folder, too (recheck)")
        if self.data is not None and not self.models:
            raise UsageError("data is fed to models of your own: give these, too; generated networks have inputs")

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
        return told | ({"slower": True} if self.slower else {})
