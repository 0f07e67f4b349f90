"""The conversions of the older ConRepAIr.

It converted between Keras, PyTorch, TensorFlow and TFLite, each to each, three networks. Results were published of 15
of these conversions.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["CASES", "RIGHT", "OlderCase", "chosen"]

RIGHT, _WRONG = "torchvision", "keras:tf"
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
    """

    model: str
    source: str
    target: str
    recipe: str

    @property
    def name(self) -> str:
        """Unique."""
        return f"{self.model}:{self.source}>{self.target}:{'right' if self.recipe == RIGHT else 'wrong'}"

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
"""The published ones come first."""


def chosen(models: Sequence[str], names: Sequence[str] | None) -> list[OlderCase]:
    """The cases that are asked for.

    Args:
        models: Names; those that the older tool didn't have are left out.
        names: Of cases; None: all of the models.

    Raises:
        ValueError: for a name that no case has.
    """
    if unknown := set(names or ()) - {case.name for case in CASES}:
        raise ValueError(f"there is no case {min(unknown)}; --list names them")
    return [case for case in CASES if (case.model in models if names is None else case.name in names)]
