"""What a search of recipes finds, as a value that a file can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["RecipeFinding"]


@dataclass(frozen=True, kw_only=True)
class RecipeFinding:
    """What came out of a search of recipes.

    Attributes:
        recipe: The best one's fields, with its size.
        arrangement: How the finished picture must be fed: "as it is", or what was done to it.
        found: Whether it explains the answers; otherwise it's only the best of those that were tried.
        changes: What it does that the target's own recipe doesn't, in words.
        error: Relative error of the target's answers under it.
        error_before: The same under the target's own recipe.
        photos: How many it was judged on.
        runs: How often the target was run.
        complete: The search wasn't cut off by its budget.
        evidence: In words.
    """

    recipe: dict[str, Any]
    arrangement: str
    found: bool
    changes: tuple[str, ...]
    error: float
    error_before: float | None
    photos: int
    runs: int
    complete: bool
    evidence: str
