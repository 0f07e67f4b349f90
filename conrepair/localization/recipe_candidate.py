"""What a search of recipes tries, gives and may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from conrepair.data.pictures.recipe import Recipe
from conrepair.localization.recipe_feeds import Arrangement


@dataclass(frozen=True)
class Budget:
    """What a search may cost; the confirmation of the best on all photos comes on top.

    Attributes:
        runs: Runs of the target.
        seconds: Wall time.
    """

    runs: int = 1000
    seconds: float = math.inf


@dataclass(frozen=True)
class RecipeCandidate:
    """A recipe that was tried.

    Attributes:
        recipe: With its size.
        arrangement: How the finished picture is fed: as it is, or as a target takes it that has its axes wrong.
        error: Of the target's answers under it, relative.
        agreement: Share of the photos with the wanted best class; None where outputs aren't classes.
        photos: How many photos it was judged on.
        fitted: Its numbers are of no name but were fitted to the answers.
    """

    recipe: Recipe
    arrangement: Arrangement = "as it is"
    error: float = math.inf
    agreement: float | None = None
    photos: int = 0
    fitted: bool = False


@dataclass(frozen=True)
class RecipeSearch:
    """What came out of a search.

    Attributes:
        found: The first candidate explains the answers: its error is down to rounding; or it's another recipe than
            the start, none that was fitted, and its error is small and below all others' by a clear margin.
        candidates: Best first; those judged on all photos before the others.
        start: The recipe that the search began with, on all photos.
        changes: What the best does that the start doesn't, in words; empty when the start is the best.
        evidence: In words.
        runs: How often the target was run.
        complete: The search wasn't cut off by its budget.
    """

    found: bool
    candidates: tuple[RecipeCandidate, ...]
    start: RecipeCandidate
    changes: tuple[str, ...]
    evidence: str
    runs: int
    complete: bool

    @property
    def best(self) -> RecipeCandidate:
        """The first of the candidates."""
        return self.candidates[0]
