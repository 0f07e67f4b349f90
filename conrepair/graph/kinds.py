"""The sorts of faults that conversions have."""

from __future__ import annotations

import enum

__all__ = ["OF_INPUTS", "Kind"]


class Kind(enum.StrEnum):
    """What sort of thing is wrong, as a diagnosis calls it."""

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
