"""All records."""

from __future__ import annotations

from collections.abc import Mapping

from conrepair.ground.operators.functions import FUNCTIONS
from conrepair.ground.operators.layers import LAYERS
from conrepair.ground.operators.moves import MOVES
from conrepair.ground.operators.pairs import PAIRS
from conrepair.ground.operators.record import Operator
from conrepair.ground.operators.rows import ROWS

OPERATORS: Mapping[str, Operator] = {**FUNCTIONS, **PAIRS, **ROWS, **MOVES, **LAYERS}
"""By name."""

ROUNDED = {
    name: item
    for name, item in {**FUNCTIONS, **ROWS}.items()
    if (item.operands == 1 or item.family == "softmax") and not item.exact
}
"""Functions of one number, and of rows, whose results are rounded."""
