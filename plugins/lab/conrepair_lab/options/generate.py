"""The options of networks that are made up: of `conrepair generate`, a configuration, and `conrepair.generated`."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from conrepair.application.verbs.option import COUNT, OR_NONE, SECONDS, SEED, SHARE, Options, Value, option, options
from conrepair.formats.models.formats import other_formats
from conrepair.ground.intake import arguments
from conrepair.ground.runtime.errors import UsageError
from conrepair_lab.generate.wishes import Wishes

CASES = "onnx"
"""In place of a model to learn of: ONNX's own cases."""


def comma_names(name: str, value: Any) -> tuple[str, ...]:
    """Names, each once; a text may hold several, separated by commas."""
    texts = arguments.NAMES(name, value)
    for text in texts:
        if not text.strip(" ,"):
            raise UsageError(f"{name} {text!r}: there's no name in it. Leave it out, or separate names by commas.")
    return tuple(dict.fromkeys(item.strip() for text in texts for item in text.split(",") if item.strip()))


def _formats(name: str, value: Any) -> tuple[str, ...]:
    """Formats that networks are converted to; ONNX is what they are."""
    try:
        return other_formats(comma_names(name, value))
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error


def _shares(metavar: str, example: str) -> Value:
    """Shares by name, or the words of a shell that say them as an example does."""

    def share(name: str, text: str) -> tuple[str, float]:
        known, equals, number = text.rpartition("=")
        try:
            if equals:
                return known.strip(), float(number)
        except ValueError as error:
            raise UsageError(f"{name} {text}: {number!r} is no number; write it as in '{example}'") from error
        raise UsageError(f"{name} {text}: write NAME=SHARE, as in '{example}'")

    def read(name: str, value: Any) -> Any:
        words = arguments.NAMES(name, value) if isinstance(value, list) else None
        return arguments.SHARES(name, value if words is None else dict(share(name, text) for text in words))

    return Value(read, metavar=metavar, many=True)


def _ranks(text: str) -> tuple[int, int]:
    """A number of axes, or the fewest and the most.

    Raises:
        ArgumentTypeError: if it's neither.
    """
    found = re.fullmatch(r"(\d)(?:-(\d))?", text.strip(), re.ASCII)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} isn't a number of axes, or the fewest and the most, as in 1-4")
    return int(found[1]), int(found[2] or found[1])


RANKS = Value(arguments.pair, _ranks, "N[-N]")
FORMS, PATTERNS = _shares("FORM=SHARE", "size of zero=0.1"), _shares("PATTERN=SHARE", "conv and batch norm=0.5")
_MODELS = Value(arguments.FILES, metavar="MODEL", many=True)
_NAMES = Value(comma_names, metavar="NAME,...", many=True)


@options(
    "models",
    seldom="opset exclude ranks elements learn grown_from changes single symbolic deep large folded extremes forms "
    "patterns woven backward",
)
class Networks(Options):
    """What networks should be like."""

    count: int | None = option(
        "Number of networks to try.", OR_NONE, usual="without end", default=None, kw_only=False
    )
    nodes: int = option("Number of operators of each network.", COUNT, default=Wishes.nodes)
    seed: int = option("Seed of the networks.", SEED, default=0)
    opset: int = option("Opset of ONNX's operators.", COUNT, default=Wishes.opset)
    operators: Sequence[str] = option("Only these operators.", _NAMES, usual="all", default=())
    exclude: Sequence[str] = option("None of these operators.", _NAMES, default=())
    dtypes: Sequence[str] = option("Only these element types, such as float32.", _NAMES, usual="all", default=())
    ranks: tuple[int, int] = option(
        "Number of axes of tensors: the fewest and the most.", RANKS, usual="0-6", default=Wishes.ranks
    )
    elements: int = option("Largest number of elements of a tensor.", COUNT, default=Wishes.most)
    learn: Sequence[str | Path] = option(
        "Use operators as they are used in a model, in the models of a folder, or in ONNX's own test cases (onnx).",
        _MODELS,
        default=(),
    )
    grown_from: Sequence[str | Path] = option(
        "Make each network by changing a part (of at most `nodes` operators) of a model, or of one in a folder.",
        _MODELS,
        flag="--from",
        default=(),
    )
    changes: int = option(
        "Number of changes to each network that is made from a model.", OR_NONE, default=Wishes.changes
    )
    support: str | None = option(
        "Only operators and settings that TARGET takes: onnxruntime, tvm, a format (keras, torch, tflite) or a "
        "converter (onnx-onnxslim...). Models of one operator find that out.",
        Value(arguments.text, metavar="TARGET"),
        default=None,
    )
    single: bool = option(
        "Networks of one input and one output; their other inputs become weights.", default=Wishes.single
    )
    symbolic: float = option(
        "Share of networks with open sizes, in half of them the batch, where operators allow it.",
        SHARE,
        default=Wishes.symbolic,
    )
    deep: float = option(
        "Share of networks that are deep: operators are added to the end of the longest chain.",
        SHARE,
        default=Wishes.deep,
    )
    large: float = option(
        "Share of networks with some tensors of up to a million elements.", SHARE, default=Wishes.large
    )
    folded: float = option(
        "Share of networks in which nodes may depend on weights alone, and outputs on no input.",
        SHARE,
        default=Wishes.folded,
    )
    extremes: float = option(
        "Share of networks with some inputs and weights at the limits of their range.",
        SHARE,
        default=Wishes.extremes,
    )
    forms: Mapping[str, float] | None = option(
        "Share of networks with an unusual but valid form, such as a size of 0, by its name (docs/generate.md).",
        FORMS,
        flag="--form",
        default=None,
    )
    patterns: Mapping[str, float] | None = option(
        "Share of networks with a pattern, by its name (docs/generate.md).", PATTERNS, flag="--pattern", default=None
    )
    woven: float = option(
        "Probability, for each five nodes, that a pattern is put in: nodes that trigger an optimization, or that are "
        "common in real networks.",
        SHARE,
        default=Wishes.woven,
    )
    backward: float = option(
        "Probability that an operator is added in front of an input, and not behind a tensor.",
        SHARE,
        default=Wishes.backward,
    )

    @property
    def wishes(self) -> Wishes:
        """What the generator is told."""
        other: dict[str, Any] = {"most": self.elements, "quotas": self.forms or {}, "patterns": self.patterns or {}}
        names = {item.name for item in dataclasses.fields(Wishes)} - other.keys()
        return Wishes(**other, **{name: getattr(self, name) for name in names})


@options("models")
class OneByOne(Networks):
    """Of `conrepair.generated`, which makes networks in this process."""

    functions: Sequence[Callable[[Any], Any]] = option(
        "Your own filters: functions with one parameter, `network` or `setting`, that return whether to keep it.",
        Value(arguments.FUNCTIONS),
        flag="",
        default=(),
    )
    judge: bool = option(
        "Also run each network with ONNX Runtime's optimizations and with ONNX's reference.",
        group="output",
        flag="",
        default=False,
    )


@options("models", seldom="functions trust")
class Programmed(Networks):
    """What functions of a user's own narrow."""

    functions: Sequence[str] = option(
        "Your own filter: a function with one parameter, `network`, `setting` (an operator's attributes and types) "
        "or, in campaigns, `finding`, that returns whether to keep it (docs/generate.md). Needs `trust`.",
        Value(arguments.NAMES, metavar="FILE.py:NAME", many=True),
        flag="--function",
        default=(),
    )
    trust: bool = option(
        "Run the programs that `functions` names, unconfined: only your own, or those of somebody whose programs you "
        "would run (docs/security.md).",
        default=False,
    )


@options("search", seldom="network_seconds")
class Generate(Programmed):
    """Of `conrepair generate` and the configuration's section of that name, which write networks to a folder."""

    section: ClassVar[str] = "generate"

    count: int = option("Number of networks.", COUNT, "models", default=100)
    to: Sequence[str] = option(
        "Also convert each network to these formats: torch, keras, savedmodel, tflite.",
        Value(_formats, metavar="FORMAT,...", many=True),
        "models",
        default=(),
    )
    workers: int = option("Worker processes.", COUNT, key="limits.workers", default=2)
    seconds: float | None = option(
        "Start no new network after S seconds.", SECONDS, usual="no limit", searches=True, default=None
    )
    network_seconds: float = option(
        "Time limit in seconds for each network and each conversion.", SECONDS, flag="--each", default=60.0
    )
