"""A form of an operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Form"]


@dataclass(frozen=True)
class Form:
    """A way to compute operators that loses digits.

    Attributes:
        operators: Which, parted by commas.
        words: The form, and what it loses.
        compute: Of inputs and constants, in their element type.
    """

    operators: str
    words: str
    compute: Callable[..., Any]
