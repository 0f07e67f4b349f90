"""The sorts of faults that conversions have, and of edits that repair them."""

from __future__ import annotations

import enum
from typing import Literal


class Kind(enum.StrEnum):
    """The kind of a fault, as a diagnosis calls it."""

    PREPROCESSING = "preprocessing"
    INPUT = "input"
    STRUCTURE = "structure"
    PARAMETERS = "parameters"
    HYPERPARAMETERS = "hyperparameters"
    GRAPH = "graph"
    PRECISION = "precision"
    COMPILATION = "compilation"


OF_INPUTS = frozenset({Kind.PREPROCESSING, Kind.INPUT})
"""Kinds of what's done to inputs, by who feeds them or by the first operators of a file."""

EditKind = Literal[
    "recipe", "inputs", "sizes", "outputs", "parameters", "precision", "attributes", "transposes", "operators"
]
"""What an edit of a repair changes; "operators" are all but those that only reorder axes, "precision" is other scales
of quantized tensors, or none, "sizes" are those that a file declares for its inputs."""
