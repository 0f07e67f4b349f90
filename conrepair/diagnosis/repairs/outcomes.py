"""What parts of a repair come to, as values that a file can hold: reading them imports nothing that computes."""

from __future__ import annotations

from dataclasses import dataclass

from conrepair.formats.models.model import Model

PATCH = "patch.json"
"""The file that a repair's edits are kept in, beside the repaired model."""

RECIPE = "recipe.json"
"""The file of the recipe that a patch sets, beside it."""

CONVERTED = "converted.onnx"
"""What a patch is for, beside it, where the target itself can't be edited."""

SAME_GRAPH = "the file has the original's graph, bit by bit, so that no output can differ"
"""An effect of a repair, in words."""


@dataclass(frozen=True)
class Delivery:
    """Why a repair isn't in the target's own format.

    Attributes:
        framework: The format that it's in.
        route: Converters that the target went through before it was repaired.
        reason: What the target's own format can't express.
        error: Relative L2 between the target's outputs and the converted file's, before the repair.
    """

    framework: str
    route: str
    reason: str
    error: float


@dataclass(frozen=True)
class Storage:
    """How a target was stored, and how its repaired copy is.

    Attributes:
        quantized_before: Weights that were stored in few bits; 0 of a target of real numbers.
        quantized: The same now.
        bytes_before: Size of the target's files.
        bytes: Of the copy's.
    """

    quantized_before: int
    quantized: int
    bytes_before: int
    bytes: int

    def __post_init__(self) -> None:
        """Check what a document may have otherwise.

        Raises:
            ValueError: if the target's files were empty.
        """
        if self.bytes_before < 1:
            raise ValueError(f"a model's file can't have {self.bytes_before} bytes")


@dataclass(frozen=True)
class Agreement:
    """How far two models agree.

    Attributes:
        samples: How many were compared.
        error: Largest relative L2 of an output; infinite where values aren't finite, or an output has no partner.
        top1_differing: How many answers differ, of outputs that are scores of classes; None where there are none.
        labelled: How many of the samples have a known label.
        right: How many of these the one in question answers rightly; None where none has a label, or there are no
            scores.
    """

    samples: int
    error: float
    top1_differing: int | None
    labelled: int = 0
    right: int | None = None


@dataclass(frozen=True)
class Advice:
    """Another way to convert.

    Attributes:
        words: What is done otherwise.
        conversion: The route.
        tried: Whether it was converted anew and compared with the source.
        avoids: Whether no layer is at fault then.
        outcome: What came of it, or why it wasn't tried.
        model: What it made, where that avoids the fault; None else.
    """

    words: str
    conversion: str
    tried: bool
    avoids: bool
    outcome: str
    model: Model | None = None
