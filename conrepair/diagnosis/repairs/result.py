"""What became of a repair, as values that a file can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from conrepair.diagnosis.localization.result import Localization
from conrepair.diagnosis.repairs.outcomes import Agreement, Delivery, Storage
from conrepair.formats.models.model import Model
from conrepair.verdicts.evaluate.verdict import Verdict


@dataclass(frozen=True, kw_only=True, repr=False)
class RepairResult:
    """The result of a repair: faults, edits, and the effect of each edit.

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
        storage: How the target's file and its repaired copy are stored; None where its file isn't changed, or the
            copy is of another format.
        refused: Where something is left: what was proposed and the format can't express.
        undone: Why what was found isn't delivered; None where it is, or nothing was found.
        failed: Where something is left: what went wrong with candidates, in words. That's ours, or a framework's.
        beside: Faults that no localization told, as their edits in words: beside or behind those that it did.
    """

    before: Localization
    after: Localization
    edits: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    model: Model | None = None
    unseen_before: Agreement
    unseen_after: Agreement
    tried: int
    seconds: float = 0.0
    in_time: bool = True
    interrupted: bool = False
    recalled: int = 0
    recipe: Mapping[str, Any] | None = None
    patch: str | None = None
    delivery: Delivery | None = None
    storage: Storage | None = None
    not_baked: str | None = None
    refused: tuple[str, ...] = ()
    undone: str | None = None
    failed: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<RepairResult {len(self.edits)} edits; before {self.before!r}; after {self.after!r}>"

    @property
    def found(self) -> int:
        """How many faults are known: those that were told, and those that only their repair has shown."""
        return len(self.before.faults) + len(self.beside)

    @property
    def holds(self) -> bool:
        """Whether the samples that took no part show no more than those that layers were looked at with."""
        return holds_elsewhere(self.after, self.unseen_after.error)

    @property
    def places(self) -> int:
        """How many layers were said to be at fault."""
        ruled = {layer for rule in self.before.rules for layer in rule.layers}
        alone = {(fault.target_layers or (fault.target_tensor,))[0] for fault in self.before.alone}
        return len(ruled | alone)

    @property
    def mended(self) -> bool:
        """Whether it's proven that nothing is at fault any more, and other samples don't say otherwise."""
        return self.after.is_right and self.holds


def holds_elsewhere(found: Localization, error: float) -> bool:
    """Whether other samples show no more than rounding explains.

    Args:
        found: Of a target without a fault.
        error: Relative L2 of its outputs on the others.
    """
    if found.verdict is Verdict.QUANTIZED:
        return True  # by its bits, which clip on some samples what they don't on others
    return error <= max(found.options.same, found.options.noise_margin * found.output_floor)


def with_form(changes: tuple[str, ...], copy: Model, found: Localization, done: RepairResult | None) -> RepairResult:
    """A repair of a copy as one of the target that the copy was made of.

    Args:
        changes: What the copy has otherwise, in words.
        copy: The model that could be looked into.
        found: Of its layers.
        done: What was repaired in it; None where nothing was wrong.

    Returns:
        The same without a patch: that would be for a file which nobody has.
    """
    unknown = Agreement(0, math.inf, None)  # it can't be run
    if done is not None:
        model = done.model or copy
        return replace(
            done,
            edits=(*changes, *done.edits),
            beside=(*changes, *done.beside),
            model=model,
            patch=None,
            unseen_before=unknown,
        )
    return RepairResult(
        before=found,
        after=found,
        edits=changes,
        model=copy,
        unseen_before=unknown,
        unseen_after=Agreement(found.samples, found.output_error, None),
        tried=len(changes),
        beside=changes,
    )
