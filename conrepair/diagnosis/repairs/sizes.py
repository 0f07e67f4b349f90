"""Give a target the sizes that its source has: of its inputs, where they're declared otherwise, and of the batch."""

from __future__ import annotations

import functools
import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conrepair.diagnosis.localization.judge.conclusion import of_other_sizes
from conrepair.diagnosis.localization.models import as_fed
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.diagnosis.localization.run.baked_batch import opened_batch, with_baked
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.edits import FileEdit, SetAttributes, SetInputShapes, in_words
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.outcomes import PATCH, Agreement
from conrepair.diagnosis.repairs.patch import Patch, read_patch, write_patch
from conrepair.diagnosis.repairs.preparation import fed_by
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.diagnosis.repairs.search import STEM
from conrepair.diagnosis.repairs.storage import storage_of
from conrepair.diagnosis.repairs.verify import NO_AGREEMENT, is_of_use, undone, unseen_samples
from conrepair.formats.editing.editor import Editor
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import NotEditableError
from conrepair.formats.models.identity import copy_model, model_sha256
from conrepair.formats.models.registry import framework
from conrepair.ground.data.declared_sizes import Sizes, sizes_wanted
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.kinds import EditKind
from conrepair.ground.runtime.errors import ConrepairError, InferenceError, ModelLoadError


@dataclass(frozen=True)
class OtherSizes:
    """A target that can't take what its source is fed, for sizes that stand in its file.

    Attributes:
        found: What is said of it.
        make: Makes a copy with the right ones in a folder: the edits, and what it's fed then.
        sort: Of these edits.
        gain: What they are good for.
    """

    found: Localization
    make: Callable[[Path], tuple[Sequence[FileEdit], FedModel]]
    sort: EditKind
    gain: str


def other_sizes(source: FedModel, target: FedModel, options: Options) -> OtherSizes | None:
    """Whether a target's inputs are of other sizes than its source's; None where they aren't.

    Args:
        source: The model that is right.
        target: The model in question.
        options: Of the localization.

    Raises:
        DataError: if the source can't take the data.
    """
    wanted = sizes_wanted(as_fed(source), target.inputs)
    if wanted is None:
        return None
    found = of_other_sizes(source.inputs, target.inputs, wanted, options)
    make = functools.partial(_resized, source, target, wanted)
    return OtherSizes(found, make, "sizes", "it takes inputs of the original's shape")


def one_batch_alone(
    source: FedModel, target: FedModel, room: Path, look: Callable[[FedModel], Localization]
) -> OtherSizes | None:
    """Whether shapes in a target's file hold it to one number of samples; None where none do.

    Args:
        source: The model that is right.
        target: The model in question.
        room: For a copy without them.
        look: Localizes what else is wrong of such a copy.
    """
    opened = opened_batch(source, target, room, STEM)
    if opened is None:
        return None
    baked, follows = opened
    edits = [SetAttributes(shape.node, {"shape": shape.wanted}) for shape in baked.shapes]
    found = with_baked(look(follows), baked)
    return OtherSizes(found, lambda _: (edits, follows), "attributes", "it takes batches of any size")


def repair_resized(
    source: FedModel,
    target: FedModel,
    sizes: OtherSizes,
    folder: Path,
    options: RepairOptions,
    fix: Callable[[FedModel, Path, RepairOptions], RepairResult],
) -> RepairResult:
    """Repair the sizes of a target's inputs, then what is at fault behind them.

    Args:
        source: The model that is right.
        target: The model in question; its file isn't changed.
        sizes: Of `other_sizes`.
        folder: Receives the repaired model, and the patch.
        options: Samples, time.
        fix: Repairs a target whose sizes are right, into a folder.

    Raises:
        UsageError: if models of the target's format can't be edited.
        DataError: if the data doesn't fit.
        OSError: if there's no room.
    """
    started = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    before = _agreement_before(source, target, sizes, options)
    unrepaired = RepairResult(
        before=sizes.found, after=sizes.found, unseen_before=before, unseen_after=before, tried=1
    )
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        copy, behind = Path(scratch) / "resized", Path(scratch) / "behind"
        copy.mkdir()
        try:
            if options.edits is not None and sizes.sort not in options.edits:
                what = "sizes of inputs" if sizes.sort == "sizes" else sizes.sort
                raise NotEditableError(f"{what} aren't among the edits that you allow")
            first, resized = sizes.make(copy)
            left = replace(options, seconds=max(options.seconds - (time.monotonic() - started), 0.0))
            result = fix(resized, behind, left)
        except (NotEditableError, InferenceError, ModelLoadError) as error:
            return replace(unrepaired, seconds=time.monotonic() - started, refused=(str(error),))
        tried, after = result.tried + 1, result.unseen_after
        if before.samples and not is_of_use(after, before, clean=not result.after.faults):
            why = undone(after, before)
            seconds = time.monotonic() - started
            effects = (*result.effects, why)
            return replace(unrepaired, effects=effects, tried=tried, seconds=seconds, undone=why)
        shutil.copytree(behind, folder, dirs_exist_ok=True)
        made = result.model or resized.model
        path = folder / Path(made.path).name
        if result.model is None:
            copy_model(Path(made.path), path)
    model = replace(made, path=str(path), sha256=model_sha256(path))
    effects, storage = result.effects, None
    if result.delivery is None:
        edits = () if result.patch is None else read_patch(folder / PATCH)[0].edits
        effects = (*(f"{in_words(edit)}: {sizes.gain}" for edit in first), *effects)
        write_patch(Patch((*first, *edits)), folder / PATCH, target.model.sha256, effects)
        storage = storage_of(open_editor(target.model).graph, target.model, model)
    return replace(
        result,
        before=sizes.found,
        edits=(*map(in_words, first), *result.edits),
        effects=effects,
        model=model,
        unseen_before=before,
        tried=tried,
        seconds=time.monotonic() - started,
        patch=str(folder / PATCH),
        storage=storage,
    )


def _agreement_before(source: FedModel, target: FedModel, sizes: OtherSizes, options: RepairOptions) -> Agreement:
    """How far a target agrees that's fed photos in its own size; of other sizes, it can't take anything else."""
    if sizes.sort == "sizes" and target.recipe is None:
        return NO_AGREEMENT
    unseen = unseen_samples(source, target, options)
    return unseen.agreement_if_any(*(unseen.answers(side, side.model) for side in (source, target)))


def _resized(
    source: FedModel, target: FedModel, wanted: Sizes, folder: Path
) -> tuple[Sequence[SetInputShapes], FedModel]:
    """A copy of a target with its source's sizes in a folder, and what it's fed then."""
    editor = open_editor(target.model)
    edit = SetInputShapes(_in_order(editor, target.inputs, wanted))
    patch = Patch((edit,))
    made = patch.make(editor, folder, STEM)
    # By what it's made of: Keras and TensorFlow write other bytes each time, and a search that goes on must know it.
    model = replace(made, sha256=hashlib.sha256(f"{target.model.sha256} {patch.digest}".encode()).hexdigest())
    inputs = tuple(
        replace(spec, shape=tuple(old if new is None else new for old, new in zip(spec.shape, shape, strict=True)))
        for spec, shape in zip(target.inputs, wanted, strict=True)
    )
    resized = replace(target, model=model, inputs=inputs)
    try:
        framework(model.framework).load(model)
    except ConrepairError as error:
        raise NotEditableError(f"with the original's input shapes the file can't be loaded: {error}") from error
    if target.recipe is None or source.recipe is None:
        return (edit,), replace(resized, data=source.data)
    recipe = replace(target.recipe, size=source.recipe.size)
    fed = fed_by(recipe, source, resized, folder / "photos")
    if fed is None:
        raise NotEditableError("there are no photos to preprocess in the original's size")
    return (edit,), fed


def _in_order(editor: Editor, inputs: tuple[TensorSpec, ...], wanted: Sizes) -> Sizes:
    """The sizes in the order of the file's inputs."""
    names = editor.graph.inputs
    given = {spec.name: shape for spec, shape in zip(inputs, wanted, strict=True)}
    if set(given) == set(names):
        return tuple(given[name] for name in names)
    fits = [
        known is not None and len(known) == len(spec.shape) and all(
            not isinstance(size, int) or size == held for size, held in zip(spec.shape, known, strict=True)
        )
        for spec, known in zip(inputs, (editor.graph.tensors[name].shape for name in names), strict=True)
    ]  # fmt: skip
    if not all(fits):
        raise NotEditableError(f"which of the inputs {', '.join(names)} stands for which of the original isn't known")
    return wanted
