"""The ways to be smaller."""

from __future__ import annotations

from conrepair.cases.smaller.attributes import ATTRIBUTES
from conrepair.cases.smaller.nodes import NODES
from conrepair.cases.smaller.options import OPTIONS
from conrepair.cases.smaller.shapes import SHAPES
from conrepair.cases.smaller.values import VALUES, WEIGHTS

__all__ = ["WAYS"]

WAYS = (NODES, OPTIONS, SHAPES, ATTRIBUTES, WEIGHTS, VALUES)
"""What makes the others quicker comes first."""
