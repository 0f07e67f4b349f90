"""Repair a target: localize, search edits, verify on other samples, write the result as the target came."""

from __future__ import annotations

import functools
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from conrepair.editors.operation import NotEditableError
from conrepair.frameworks.model import Model
from conrepair.localize.localize import Found
from conrepair.localize.models import Subject
from conrepair.localize.options import Options
from conrepair.repair.bench import Bench
from conrepair.repair.delivery import Delivery, as_onnx
from conrepair.repair.edits import in_words
from conrepair.repair.patch import Patch, write_patch
from conrepair.repair.result import RepairResult
from conrepair.repair.search import Outcome, search
from conrepair.repair.verify import agreement, answers
from conrepair.runtime.errors import ConrepairError, DataError, ModelLoadError
from conrepair.runtime.memory import large_blocks_returned

__all__ = ["PATCH", "RepairOptions", "apply_patch", "repair_models"]

_STEM = "repaired"
_OTHER = "onnx"  # what is delivered where the target's format can't be edited
_REASONS = 3


@dataclass(frozen=True)
class RepairOptions:
    """What a repair may take.

    Attributes:
        localization: Samples and margins of every localization on the way.
        seconds: After which no further candidate is begun.
        unseen: Samples behind those that are localized by, to verify on; those are looked at again where the
            dataset has no more.
    """

    localization: Options = field(default_factory=Options)
    seconds: float = 600.0
    unseen: int = 64


PATCH = "patch.json"
"""The file that a repair's edits are kept in, beside the repaired model."""


def repair_models(source: Subject, target: Subject, folder: Path, options: RepairOptions) -> RepairResult:
    """Mend a target, in its own format where that can be.

    Args:
        source: The model that is right.
        target: The model in question; its file isn't changed.
        folder: Receives the repaired model and its patch.
        options: Samples, time.

    Raises:
        ModelLoadError: if a model can't be opened.
        UsageError: if models of the target's format can't be edited.
        DataError: if the data doesn't fit.
    """
    started = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    with large_blocks_returned(), tempfile.TemporaryDirectory(dir=folder) as scratch:
        found = _searched(source, target, Path(scratch), options)
        outcome, subject, model = found.outcome, found.target, None
        if outcome.patch.edits:
            model = outcome.patch.apply(subject.model, folder, _STEM)
            write_patch(outcome.patch, folder / PATCH, subject.model.sha256)
            if model.sha256 != outcome.state.sha256:  # another file than the one that was judged
                outcome = replace(outcome, state=replace(outcome.state, found=found.bench.localize(model)))
        begin = options.localization.samples
        begin = begin if min(source.data.count, target.data.count) > begin else 0
        unseen = functools.partial(answers, begin=begin, count=options.unseen)
        right = list(unseen(source, source.model))
        before = agreement(right, unseen(target, target.model))
        after = before if model is None else agreement(right, unseen(subject, model))
    return RepairResult(
        found.before.result,
        outcome.after.result,
        tuple(map(in_words, outcome.patch.edits)),
        outcome.effects,
        model,
        before,
        after,
        outcome.tried,
        time.monotonic() - started,
        outcome.in_time,
        None if model is None else found.delivery,
    )


@dataclass(frozen=True)
class _Searched:
    """What a search came to, and in which format.

    Attributes:
        outcome: Of the search.
        before: What localization says of the target.
        target: What was edited: the target, or an ONNX file that computes the same.
        bench: Judges that.
        delivery: Why it's not the target itself.
    """

    outcome: Outcome
    before: Found
    target: Subject
    bench: Bench
    delivery: Delivery | None = None


def _searched(source: Subject, target: Subject, scratch: Path, options: RepairOptions) -> _Searched:
    """Search in the target's own format; where that can't express what is needed, in ONNX."""
    end = time.monotonic() + options.seconds
    bench = Bench(source, target, scratch, options.localization)
    own, reason = None, ""
    try:
        outcome = search(bench, target.model, scratch, seconds=options.seconds)
        own, reason = _Searched(outcome, outcome.before, target, bench), "; ".join(outcome.refused[:_REASONS])
        if not outcome.after.result.faults or not outcome.in_time or not reason or target.model.framework == _OTHER:
            return own
    except (NotEditableError, ModelLoadError) as error:
        if target.model.framework == _OTHER:
            raise
        reason = str(error)
        refusal = error
    # Without an ONNX file that computes the same, what the own format gave is all.
    try:
        converted, delivery = as_onnx(target, scratch / _OTHER, reason)
    except ConrepairError:
        if own is None:
            raise ModelLoadError(reason) from refusal
        return own
    room = scratch / "delivered"
    room.mkdir()
    other = Bench(source, converted, room, options.localization)
    again = search(other, converted.model, room, seconds=max(end - time.monotonic(), 0.0))
    if own is not None and again.after.result.faults:
        return own
    again.tried += 0 if own is None else own.outcome.tried
    return _Searched(again, again.before if own is None else own.before, converted, other, delivery)


def apply_patch(patch: Patch, target_hash: str, model: Model, folder: Path) -> Model:
    """Make the same edits again.

    Args:
        patch: From `read_patch`.
        target_hash: Of the model that it's for.
        model: Must be that model.
        folder: Receives the changed copy; made where it isn't there.

    Raises:
        DataError: if the patch is for another model.
        NotEditableError: if its format can't express an edit.
    """
    if model.sha256 != target_hash:
        wanted, found = target_hash[:16], model.sha256[:16]
        raise DataError(
            f"the patch is for a model with the sha256 {wanted}..., {model.path} has {found}... "
            "Edits name layers of the model that they were found for; repair this one anew."
        )
    folder.mkdir(parents=True, exist_ok=True)
    return patch.apply(model, folder, _STEM)
