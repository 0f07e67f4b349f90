"""What became of a repair, as values that a file can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conrepair.frameworks.model import Model
from conrepair.localize.result import Localization
from conrepair.repair.delivery import Delivery
from conrepair.repair.storage import Storage
from conrepair.repair.verify import Agreement

__all__ = ["RepairResult"]


@dataclass(frozen=True)
class RepairResult:
    """What was wrong, what was changed, and what that bought.

    Attributes:
        before: The target as it came.
        after: With the edits.
        edits: In words; none where nothing was wrong, or nothing helped.
        effects: What each step of the search bought, in words.
        model: The repaired model; None where its file isn't changed.
        not_baked: Why the recipe isn't in the model, where it was asked to be; None else.
        unseen_before: The answers on samples that took no part.
        unseen_after: The same with the edits.
        tried: Candidates that were judged.
        seconds: All in all.
        in_time: Whether the search ended by itself.
        interrupted: Whether somebody ended the search.
        recalled: Candidates of `tried` that an earlier run had judged, which didn't end.
        recipe: By which the target is to be fed, as a configuration has it; None where that stays as it was.
        patch: File of the edits; None without.
        delivery: Why the repaired model isn't in the target's own format; None where it is.
        storage: What became of a quantized target's storage; None of others, and where its file isn't changed.
    """

    before: Localization
    after: Localization
    edits: tuple[str, ...]
    effects: tuple[str, ...]
    model: Model | None
    unseen_before: Agreement
    unseen_after: Agreement
    tried: int
    seconds: float
    in_time: bool
    interrupted: bool = False
    recalled: int = 0
    recipe: Mapping[str, Any] | None = None
    patch: str | None = None
    delivery: Delivery | None = None
    storage: Storage | None = None
    not_baked: str | None = None

    @property
    def mended(self) -> bool:
        """Whether no layer, and no input, is at fault any more."""
        return not self.after.faults
