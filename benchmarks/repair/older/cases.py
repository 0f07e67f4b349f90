"""The conversions of the older ConRepAIr.

It converted between Keras, PyTorch, TensorFlow and TFLite, each to each, three networks. Results were published of 15
of these conversions. Each is there with the right preprocessing and with a wrong one, and with one fault of each sort
that it names: in weights, in hyperparameters, in the structure (here: the order of dimensions), in the graph.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["CASES", "FAULTS", "FAULTY", "RIGHT", "OlderCase", "chosen"]

RIGHT, _WRONG = "torchvision", "keras:tf"
FAULTS = ("weights", "hyperparameters", "structure", "graph")
"""Sorts of faults, each put into a conversion that is fed rightly."""

_FORMATS = ("keras", "torch", "tf", "tflite")
_PUBLISHED = {
    "mobilenet-v2": ("keras>tflite", "keras>torch", "tf>keras", "tf>tflite", "torch>keras", "torch>tf"),
    "resnet101": (
        *("keras>tflite", "keras>torch", "tf>keras", "tf>tflite", "tflite>keras", "torch>tf"),
        "torch>tflite",
    ),
    "inception-v3": ("tf>tflite", "torch>keras"),
}


@dataclass(frozen=True)
class OlderCase:
    """A conversion, and how the target is fed.

    Attributes:
        model: Of the benchmark.
        source: Format.
        target: Format.
        recipe: By which the target gets its photos; the source gets them by the right one.
        fault: What is wrong with the target, one of `FAULTS`; "" for none.
    """

    model: str
    source: str
    target: str
    recipe: str
    fault: str = ""

    @property
    def name(self) -> str:
        """Unique."""
        fed = "right" if self.recipe == RIGHT else "wrong"
        return f"{self.model}:{self.source}>{self.target}:{self.fault or fed}"

    @property
    def published(self) -> bool:
        """Whether it's one of the 15 that the older tool has results of."""
        return f"{self.source}>{self.target}" in _PUBLISHED[self.model]


CASES = tuple(
    sorted(
        (
            OlderCase(model, *pair, recipe)
            for model in _PUBLISHED
            for pair in itertools.permutations(_FORMATS, 2)
            for recipe in (RIGHT, _WRONG)
        ),
        key=lambda case: not case.published,
    )
)
"""Without faults in the target; the published ones come first."""

FAULTY = tuple(dataclasses.replace(case, fault=fault) for case in CASES if case.recipe == RIGHT for fault in FAULTS)
"""With one fault."""


def chosen(models: Sequence[str], names: Sequence[str] | None) -> list[OlderCase]:
    """The cases that are asked for.

    Args:
        models: Names; those that the older tool didn't have are left out.
        names: Of cases; None: all of the models.

    Raises:
        ValueError: for a name that no case has.
    """
    cases = (*CASES, *FAULTY)
    if unknown := set(names or ()) - {case.name for case in cases}:
        raise ValueError(f"there is no case {min(unknown)}; --list names them")
    return [case for case in cases if (case.model in models if names is None else case.name in names)]
