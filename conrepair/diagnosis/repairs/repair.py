"""Repair a target: localize, search edits, verify on other samples, write the result as the target came."""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conrepair.diagnosis.localization.localize import Looked
from conrepair.diagnosis.localization.models import localize_models, of_one_batch
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.baking import bake
from conrepair.diagnosis.repairs.bench import Bench
from conrepair.diagnosis.repairs.edits import Edit, SetRange, in_words
from conrepair.diagnosis.repairs.options import Ran, RepairOptions
from conrepair.diagnosis.repairs.outcomes import CONVERTED, PATCH, RECIPE, SAME_GRAPH, Agreement, Delivery
from conrepair.diagnosis.repairs.patch import Patch, write_patch
from conrepair.diagnosis.repairs.preparation import fed_otherwise, prepared_wrongly, repair_preparation
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.diagnosis.repairs.search import STEM, SearchOutcome, search
from conrepair.diagnosis.repairs.sizes import one_batch_alone, other_sizes, repair_resized
from conrepair.diagnosis.repairs.state import PARAMETER, Taken
from conrepair.diagnosis.repairs.storage import storage_of
from conrepair.diagnosis.repairs.verify import (
    Unseen,
    is_of_use,
    is_the_source,
    undone,
    unseen_samples,
)
from conrepair.formats.converters.routes import find_route
from conrepair.formats.editing.editor import Editor
from conrepair.formats.editing.operation import NotEditableError
from conrepair.formats.models.identity import model_sha256, move_model, place_model
from conrepair.formats.models.model import ChangedModel, Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.pictures.recipe import recipe_fields, write_recipe
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.record import graph_record
from conrepair.ground.runtime.errors import ConrepairError, ConversionError, DataError, ModelLoadError
from conrepair.ground.runtime.files.journal import Journal
from conrepair.ground.runtime.processes.memory import large_blocks_returned
from conrepair.ground.runtime.words import percent

# Which proposals fix what a localization has told, and which fix something beside it or behind it.


def beside(taken: Sequence[Taken], before: Localization, editor: Editor) -> tuple[str, ...]:
    """Faults that only their repair has shown, in words: a piece with two of them is told by one.

    A proposal is of a fault that was told where it changes the layer that this names, or what the source computes in
    its piece. Of several in one piece one is that of its fault, and each other one has repaired another; so has one
    that fixes what was hidden by something in front of it. Ranges are of one calibration, wherever they're set.

    Args:
        taken: What fixes the target, in order.
        before: What was said of it.
        editor: Of the target as it came.
    """
    named = {layer for fault in before.faults for layer in fault.target_layers[:1]}
    named |= {layer for fault in before.faults for _, layer in fault.differences}
    known = {layer for fault in before.faults for layer in fault.target_layers}
    ends = {fault.source_tensor for fault in before.faults}
    told = [item for item in taken if not item.reach or _places(item, editor) & named]
    calibrated = any(map(_calibrates, told))
    pieces = {name for item in told for name in _piece(item)}
    found = []
    for item in taken:
        if any(item is other for other in told) or (calibrated and _calibrates(item)):
            continue
        if _piece(item) & pieces or not (_piece(item) & ends or _places(item, editor) & known):
            found.append("; ".join(map(in_words, item.edits)))
        pieces |= _piece(item)
    return tuple(found)


def _calibrates(item: Taken) -> bool:
    return bool(item.edits) and all(isinstance(edit, SetRange) for edit in item.edits)


def _piece(item: Taken) -> frozenset[str]:
    """The operators of the segment that a proposal reaches."""
    return frozenset(name for name in item.reach if not name.startswith(PARAMETER))


def _places(item: Taken, editor: Editor) -> set[str]:
    """What the file calls the layers that a proposal changes."""
    return set[str]().union(*(_names(edit, editor) for edit in item.edits))


def _names(edit: Edit, editor: Editor) -> frozenset[str]:
    name = str(getattr(edit, "node", "") or getattr(edit, "tensor", ""))
    node = next((item for item in editor.graph.nodes if item.name == name), None)
    if node is not None:
        return editor.names(node) | {node.name}
    return editor.tensor_names(name) | {name} if name in editor.graph.tensors else frozenset({name})


# A target whose format can't be edited, as an ONNX file that computes the same and can.

_SAME = 1e-4  # relative L2 that a conversion of single precision stays below
_SAMPLES = 8


def as_onnx(target: FedModel, folder: Path, reason: str) -> tuple[FedModel, Delivery]:
    """Convert a target, with its faults, and make sure that nothing else changes.

    Args:
        target: The model in question.
        folder: Receives the files.
        reason: Why it can't be edited.

    Raises:
        ConversionError: if no route gives a file that computes the same.
        ConfigError: if there's no route.
    """
    route = find_route(target.model.framework, "onnx", model=target.model)
    folder.mkdir(parents=True, exist_ok=True)
    model = route.convert(target.model, folder)
    first = Unseen(0, _SAMPLES)
    found = first.agreement(first.answers(target, target.model), first.answers(target, model))
    if not found.error <= _SAME or found.top1_differing:
        words = f"{route.name} gives a model that isn't the same: its outputs differ by {percent(found.error)}"
        raise ConversionError(words)
    inputs = _sized(framework("onnx").describe(model).inputs, target.inputs)
    converted = replace(target, model=model, inputs=inputs)
    return converted, Delivery("onnx", route.name, reason, found.error)


def _sized(inputs: tuple[TensorSpec, ...], known: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    """Inputs with the sizes and ranges that are known of the target's."""
    named = {spec.name: spec for spec in known}
    pairs = ((spec, named.get(spec.name, known[place])) for place, spec in enumerate(inputs))
    return tuple(replace(other, name=spec.name, dtype=spec.dtype) for spec, other in pairs)


_OTHER = "onnx"  # what is delivered where the target's format can't be edited
_REASONS = 3
_IN_FILE = 0.7  # of the time, where a recipe may have to be searched in what's left
_MORE = 4  # times the samples, where what was found on them doesn't hold on others


def repair_models(
    source: FedModel,
    target: FedModel,
    folder: Path,
    options: RepairOptions,
    journal: Journal | None = None,
    *,
    looked: Looked | None = None,
) -> RepairResult:
    """Repair a target, in its own format where that can be.

    Where its inputs are declared with other sizes than its source's, they get these first. Where what was found
    doesn't hold on samples that took no part, it's searched once more, looking at more samples.

    Args:
        source: The model that is right.
        target: The model in question; its file isn't changed.
        folder: Receives the repaired model, where its file is changed, and the patch.
        options: Samples, time.
        journal: Of the search, which one that was stopped goes on with.
        looked: What a localization came to, where it's known; of other models, data or options it's no use.

    Raises:
        ModelLoadError: if a model can't be opened.
        UsageError: if models of the target's format can't be edited.
        DataError: if the data doesn't fit.
        OSError: if there's no room.
    """
    with tempfile.TemporaryDirectory() as room:
        source = of_one_batch(source, target, Path(room))
        sizes = other_sizes(source, target, options.localization)
        if sizes is None:
            look = functools.partial(_looked_at, source, options=options.localization)
            sizes = one_batch_alone(source, target, Path(room) / "open-batch", look)
        if sizes is not None:
            fix = functools.partial(_searched_twice, source, journal=journal)
            return repair_resized(source, target, sizes, folder, options, fix)
        return _searched_twice(source, target, folder, options, journal, looked)


def _looked_at(source: FedModel, target: FedModel, options: Options) -> Localization:
    with tempfile.TemporaryDirectory() as room:
        return localize_models(source, target, Path(room), options)


def _searched_twice(
    source: FedModel,
    target: FedModel,
    folder: Path,
    options: RepairOptions,
    journal: Journal | None,
    looked: Looked | None = None,
) -> RepairResult:
    """Search, and once more on more samples where what was found doesn't hold on others."""
    result = _repaired(source, target, folder, options, journal, looked)
    left, samples = options.seconds - result.seconds, _MORE * options.localization.samples
    others = min(source.data.count, target.data.count) - samples
    if result.undone is None or result.interrupted or left <= 0 or others <= 0:
        return result
    wider = replace(options, localization=replace(options.localization, samples=samples), seconds=left)
    again = _repaired(source, target, folder, wider, journal)
    return replace(
        again if again.edits else result,
        effects=(*result.effects, *again.effects),
        tried=result.tried + again.tried,
        seconds=result.seconds + again.seconds,
        in_time=again.in_time,
        interrupted=again.interrupted,
        recalled=result.recalled + again.recalled,
    )


def _repaired(
    source: FedModel,
    target: FedModel,
    folder: Path,
    options: RepairOptions,
    journal: Journal | None,
    looked: Looked | None = None,
) -> RepairResult:
    """Search a repair once, and verify it."""
    started = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    end = started + options.seconds
    with large_blocks_returned(), tempfile.TemporaryDirectory(dir=folder) as scratch:
        room = Path(scratch)
        bench = Bench(source, target, room, options.localization, looked)
        first = bench.localize(target.model)
        feeds_may_change = options.edits is None or "recipe" in options.edits
        preparation, in_file = None, options
        # Where both models get the same inputs, the fault is in the file, and is fixed there if it can be.
        if feeds_may_change and fed_otherwise(source, target):
            preparation = repair_preparation(bench, source, target.model, first, room / "before", end=end)
        elif feeds_may_change and target.photos and prepared_wrongly(first):
            in_file = replace(options, seconds=_IN_FILE * options.seconds)
        searched = _searched(bench, source, room, in_file, journal, end)
        outcome, bench = searched.outcome, searched.bench
        found, model, edits = outcome.after, None, outcome.patch.edits
        if edits:
            model = outcome.state.model
        if preparation is None and feeds_may_change and found.result.faults:
            # Layers at fault hide what a recipe would bring, and how photos must be prepared.
            fix = functools.partial(repair_preparation, bench, source, end=end)
            preparation = fix(model or target.model, found, room / "after")
            if edits and preparation is None:
                preparation = fix(target.model, first, room / "alone")
                if preparation is not None:  # it does without the edits what they didn't do
                    model, edits = None, ()
            found = found if preparation is None else preparation.found
        set_recipe = () if preparation is None else (preparation.edit,)
        patch = Patch((*set_recipe, *edits))
        not_baked = None
        if preparation is not None and options.bake_recipe:
            fed = replace(bench.target, recipe=target.recipe, data=target.data)
            try:
                with_recipe = room / "baked"
                with_recipe.mkdir()
                baked = bake(bench, fed, preparation.edit.recipe, patch.of_file, found, with_recipe, STEM)
                patch, model, found = baked.patch, baked.model, baked.found
            except NotEditableError as error:
                not_baked = str(error)
        if isinstance(model, ChangedModel):
            (room / "whole").mkdir()
            model = patch.make(bench.editor.again(), room / "whole", STEM)
        unseen = unseen_samples(source, bench.target, options)
        edited = (model or target.model) if patch.edits else None
        as_source = edited is not None and is_the_source(source, bench.target, edited)

        def proved(ran: tuple[Ran | None, Ran | None]) -> tuple[Agreement, Agreement]:
            right = list(unseen.as_it_came(source, ran[0]))
            before = unseen.agreement(right, unseen.as_it_came(target, ran[1]))
            if edited is None:
                return before, before
            return before, unseen.agreement_if_any(
                right, right if as_source else unseen.answers(bench.target, edited)
            )

        before, after = proved(options.ran)
        # What ran before did so in other batches, on which answers may depend.
        if edited is not None and after.error and any(options.ran):
            before, after = proved((None, None))
        effects = outcome.effects if edits else ()
        if preparation is not None:
            effects = (f"{in_words(preparation.edit)}: {preparation.gain}", *effects)
        if as_source:
            effects = (*effects, SAME_GRAPH)
        why_undone = None
        if patch.edits and not is_of_use(after, before, clean=not found.result.faults):
            # What was judged on a few samples doesn't hold on others: the target stays as it came.
            why_undone = undone(after, before)
            effects = (*effects, why_undone)
            patch, model, found, after = Patch(), None, first, before
        graphs = {}
        if model is not None:
            graphs[model.sha256] = graph_record(found.graph)  # as long as the candidate's file is there
            model = replace(model, path=str(move_model(Path(model.path), folder)))
        if patch.edits:
            edited = bench.target.model
            if searched.delivery is not None:
                edited = _placed(edited, folder / CONVERTED)
            write_patch(patch, folder / PATCH, edited.sha256, effects, first.result.rules)
    return RepairResult(
        before=first.result,
        after=replace(found.result, graphs=graphs),
        edits=tuple(map(in_words, patch.edits)),
        effects=effects,
        model=model,
        unseen_before=before,
        unseen_after=after,
        tried=outcome.tried + len(set_recipe),
        seconds=time.monotonic() - started,
        in_time=outcome.in_time,
        interrupted=outcome.interrupted,
        recalled=outcome.recalled,
        recipe=None if patch.recipe is None else recipe_fields(patch.recipe),
        patch=str(folder / PATCH) if patch.edits else None,
        delivery=None if model is None else searched.delivery,
        storage=None if model is None else storage_of(bench.editor.graph, target.model, model),
        not_baked=not_baked,
        refused=outcome.refused if found.result.faults else (),
        undone=why_undone,
        failed=outcome.failed if found.result.faults else (),
        beside=beside(outcome.taken, first.result, bench.editor) if edits and patch.edits else (),
    )


def _placed(model: Model, path: Path) -> Model:
    place_model(Path(model.path), path)
    return replace(model, path=str(path), sha256=model_sha256(path))


@dataclass(frozen=True)
class _Searched:
    """What a search came to, and in which format.

    Attributes:
        outcome: Of the search.
        bench: Judges what was edited: the target, or an ONNX file that computes the same.
        delivery: Why it's not the target itself.
    """

    outcome: SearchOutcome
    bench: Bench
    delivery: Delivery | None = None


def _searched(
    bench: Bench, source: FedModel, scratch: Path, options: RepairOptions, journal: Journal | None, end: float
) -> _Searched:
    """Search in the target's own format; where that can't express what is needed, in ONNX."""
    target = bench.target
    look = functools.partial(search, journal=journal, kinds=options.edits)
    own, reason = None, ""
    try:
        outcome = look(bench, target.model, scratch, seconds=options.seconds)
        own, reason = _Searched(outcome, bench), "; ".join(outcome.refused[:_REASONS])
        ended = not outcome.in_time or outcome.interrupted
        if not outcome.after.result.faults or ended or not reason or target.model.framework == _OTHER:
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
    again = look(other, converted.model, room, seconds=max(end - time.monotonic(), 0.0))
    if own is not None and again.after.result.faults:
        return own
    again.tried += 0 if own is None else own.outcome.tried
    return _Searched(again, other, delivery)


def apply_patch(patch: Patch, target_hash: str, model: Model, folder: Path) -> Model | None:
    """Make the same edits again, and write the recipe that the patch sets.

    Args:
        patch: From `read_patch`.
        target_hash: Of the model that it's for.
        model: Must be that model.
        folder: Receives the changed copy, and `recipe.json`; made where it isn't there.

    Returns:
        The copy; None where the patch changes nothing in the file.

    Raises:
        DataError: if the patch is for another model.
        NotEditableError: if its format can't express an edit.
    """
    if model.sha256 != target_hash:
        wanted, found = target_hash[:16], model.sha256[:16]
        raise DataError(
            f"the patch is for another model: its sha256 is {wanted}..., that of {model.path} is {found}... Its "
            "edits name layers of that model, so search for a repair of this one."
        )
    folder.mkdir(parents=True, exist_ok=True)
    if patch.recipe is not None:
        write_recipe(patch.recipe, folder / RECIPE)
    return patch.apply(model, folder, STEM) if patch.of_file else None
