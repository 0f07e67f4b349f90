"""All cases, by family."""

from __future__ import annotations

from conrepair_lab.accuracy.operators.case import Case
from conrepair_lab.accuracy.operators.elementwise import BINARY, UNARY
from conrepair_lab.accuracy.operators.normalizations import NORMALIZATIONS
from conrepair_lab.accuracy.operators.sums import PRODUCTS, REDUCTIONS, WINDOWS

_ALL = (UNARY, BINARY, REDUCTIONS, NORMALIZATIONS, PRODUCTS, WINDOWS)
FAMILIES: dict[str, tuple[Case, ...]] = {cases[0].family: cases for cases in _ALL}
