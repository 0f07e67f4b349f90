"""Localize between two models on disk."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from conrepair.diagnosis.localization.judge.by_files import compared_by_files
from conrepair.diagnosis.localization.judge.conclusion import of_other_sizes
from conrepair.diagnosis.localization.localize import Looked, localize_target
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.recipes.finding import find_recipe
from conrepair.diagnosis.localization.result import Localization
from conrepair.diagnosis.localization.run.baked_batch import opened_batch, with_baked
from conrepair.diagnosis.localization.run.fed_model import FedModel, concrete
from conrepair.diagnosis.localization.run.opening import (
    OpenedNetwork,
    batch_size,
    batches_of,
    feeds_of,
    open_model,
    reader_of,
    second_opinion,
)
from conrepair.diagnosis.localization.run.recorded import RecordedNetwork, RecordedSide
from conrepair.diagnosis.localization.run.reference import Reference
from conrepair.diagnosis.localization.run.watched import watched
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import NotEditableError
from conrepair.formats.models.formats import RECORDED
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.declared_sizes import sizes_wanted
from conrepair.ground.data.feeds import batches, open_feeds
from conrepair.ground.data.recorded import outputs_among, read_recorded
from conrepair.ground.data.stored_values import real_values
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.kinds import OF_INPUTS
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.graph.record import graph_record
from conrepair.ground.runtime.errors import DataError, ModelLoadError, UsageError
from conrepair.ground.runtime.processes.memory import large_blocks_returned
from conrepair.verdicts.evaluate.fitted_grid import fitted_grid
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging.arithmetic import FLOAT32

_EIGHT_BITS = "int8"  # the arithmetic of a device that gives integers
_IN_INTEGERS = (
    "can't tell which layer: a runtime computes a quantized model in integers only where no tensor between is an "
    "output, and layers differ where these are made outputs. Compare the model before it's quantized on this backend"
)


@large_blocks_returned()
def localize_models(
    source: FedModel,
    target: FedModel,
    folder: Path,
    options: Options,
    *,
    advance: Callable[[str], None] = lambda _: None,
    leave: Callable[[Looked], None] = lambda _: None,
) -> Localization:
    """Find the faulty layers of a converted model.

    Args:
        source: The model that is right.
        target: The model in question.
        folder: For activations and conversions; the caller removes it.
        options: Samples, margins, intent.
        advance: Called with what is being done.
        leave: Called with what a repair can go on from, where it's of these files themselves.

    Raises:
        ModelLoadError: if one can't be opened.
        DataError: if the data doesn't fit, or both models have batches of their own.
    """
    if _is_seen(source) or _is_seen(target):
        if options.static:
            raise UsageError("recorded outputs aren't files whose layers can be compared. Leave `static` out.")
        return _localize_recorded(source, target, folder, options)
    fed, whose = as_fed(source), (source.looked_into, target.looked_into)
    sizes = sizes_wanted(fed, target.inputs)
    if sizes is not None:
        return of_other_sizes(source.inputs, target.inputs, sizes, options)
    advance("opening the models")
    opened = opened_batch(source, target, folder / "open-batch", "target")
    if opened is not None:
        baked, follows = opened
        behind = localize_models(source, follows, folder / "followed", options, advance=advance)
        graphs = {whose[1] if key == follows.looked_into else key: graph for key, graph in behind.graphs.items()}
        return with_baked(dataclasses.replace(behind, graphs=graphs), baked)
    given, source = source, of_one_batch(source, target, folder / "batch")
    samples = min(source.data.count, target.data.count, options.samples)
    size = batch_size(source, target, options.batch_size, samples)
    ours = open_model(source.model, concrete(source, size), folder / "source-onnx")
    theirs = open_model(target.model, concrete(target, size), folder / "target-onnx", target.build)
    work = folder / "activations"
    sides = (source, ours), (target, theirs)
    notes = tuple(filter(None, (ours.note, theirs.note)))
    graphs = {sha256: graph_record(opened.network.graph) for sha256, (_, opened) in zip(whose, sides, strict=True)}
    if options.static:
        told = compared_by_files(ours.network, theirs.network)
        return dataclasses.replace(told, notes=notes, options=options, graphs=graphs)
    reference = Reference(ours.network, work / "source", second_opinion=lambda: second_opinion(ours))
    feeds = feeds_of(*sides, size, samples)
    found = localize_target(reference, theirs.network, feeds, work, options, keep=True, advance=advance)
    # A conversion's file goes with the folder, and what's cut of it later is read from there.
    own_files = source is given and not ours.note and not theirs.note
    if own_files and target.build is None:
        leave(Looked((source, target), options, (ours, theirs), reference, found))
    notes = (*found.result.notes, *notes)
    result = dataclasses.replace(found.result, notes=notes, samples=samples, graphs=graphs, kept=found.kept)
    if result.is_right and not options.quantized:
        advance("comparing the files")
        told = compared_by_files(ours.network, theirs.network)
        if told.verdict is Verdict.EQUIVALENT:
            result = dataclasses.replace(result, reason=f"{result.reason}; {told.reason}")
    if target.photos and any(fault.kind in OF_INPUTS for fault in result.faults):
        advance("searching recipes")
        result = _with_recipe(result, sides, size, samples, options)
    return result


def _localize_recorded(source: FedModel, target: FedModel, folder: Path, options: Options) -> Localization:
    """Find the faulty layers where one side is recorded outputs and tensors, or can only be seen as it runs."""
    is_right = _is_seen(source)
    if is_right and options.tolerance.arithmetic not in {"", FLOAT32.name}:
        raise UsageError(
            "the arithmetic is the converted model's, and the recorded outputs are the original. Exchange the two."
        )
    fed, other = (target, source) if is_right else (source, target)
    if _is_seen(fed):
        raise UsageError("both sides are recorded outputs, so there are no layers to compare. Use `compare`.")
    ran = other.model.framework != RECORDED
    samples = min(fed.data.count, options.samples)
    size = batch_size(fed, other if ran else fed, options.batch_size, samples)
    opened = open_model(fed.model, concrete(fed, size), folder / "onnx")
    network, work = opened.network, folder / "activations"
    names, feeds = list(network.output_names), list(batches_of(fed, opened, size, samples))
    reference = Reference(network, work / "network", second_opinion=lambda: second_opinion(opened))
    hidden: Sequence[str] | None = None
    if other.on is not None:
        rows, hidden = watched(other, opened, feeds, folder / "watched")
    else:
        arrays = _observed(other, fed.model, size, samples) if ran else read_recorded(Path(other.model.path))
        places = list(range(samples) if ran else fed.data.order)[:samples]
        places += places[-1:] * (-samples % size)  # the last batch is filled up with the last sample
        if ran and not arrays.keys() & names:  # outputs come first, in order
            arrays = dict(zip([*names, *list(arrays)[len(names) :]], arrays.values(), strict=True))
        if not (ran or is_right) and (reals := _real_outputs(reference, feeds[0], arrays, places[:size])):
            arrays |= reals
            tolerance = dataclasses.replace(options.tolerance, arithmetic=options.tolerance.arithmetic or _EIGHT_BITS)
            options = dataclasses.replace(options, tolerance=tolerance)
        starts = (places[start : start + size] for start in range(0, samples, size))
        rows = [{name: array[part] for name, array in arrays.items()} for part in starts]
    recorded = RecordedNetwork(rows[0], names, size)
    side = RecordedSide(reference, recorded, work, options, is_right=is_right, hidden=hidden)
    found = side.localize(zip(feeds, rows, strict=True))
    notes = tuple(filter(None, (*found.notes, opened.note)))
    if other.on is not None and options.quantized and found.faults:
        found = dataclasses.replace(found, verdict=Verdict.UNDECIDED, reason=_IN_INTEGERS, faults=())
    return dataclasses.replace(
        found, notes=notes, samples=samples, graphs={fed.looked_into: graph_record(network.graph)}
    )


def _real_outputs(
    reference: Reference, feeds: Mapping[str, Array], arrays: Mapping[str, Array], places: Sequence[int]
) -> dict[str, Array]:
    """Recorded integers as the real numbers that they stand for beside the original's, for its first batch."""
    ends, found = reference.network.output_names, dict[str, Array]()
    own = reference.batch(0, feeds)
    own.compute(list(ends.values()))
    for output, name in outputs_among(arrays, list(ends)).items():
        grid = fitted_grid(own[ends[output]], arrays[name][places]) if output in ends else None
        if grid is not None:
            found[name] = real_values(arrays[name], grid)
    return found


def _is_seen(subject: FedModel) -> bool:
    """Whether a model's tensors are given by their names, and none can be fed."""
    kind = subject.model.framework
    return subject.on is not None or kind == RECORDED or framework(kind).observes


def _observed(subject: FedModel, beside: Model, size: int, samples: int) -> dict[str, Array]:
    """All that can be seen of a model while it runs, by name, samples first."""
    inputs, run = concrete(subject, size), framework(subject.model.framework).observed(subject.model, beside)
    reader = open_feeds(subject.data, inputs, subject.recipe)
    reader.count = min(reader.count, samples)
    parts: dict[str, list[Array]] = {}
    for batch in batches(reader, inputs, size):
        for name, array in run(batch.feeds).items():
            if array.shape[:1] == (size,):  # others have no samples
                parts.setdefault(name, []).append(array[: batch.valid])
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def of_one_batch(source: FedModel, target: FedModel, folder: Path) -> FedModel:
    """The source as it is, or a copy of it that takes as many samples at a time as the target always does.

    Args:
        source: The model that is right.
        target: The model in question.
        folder: Receives the copy.

    Raises:
        DataError: if both have fixed batches that differ, and the source's can't be changed.
    """
    ours, theirs = source.fixed_batch, target.fixed_batch
    if ours is None or theirs is None or ours == theirs or target.build is not None:
        return source
    shapes = [
        tuple(theirs if axis == source.axes[spec.name] else None for axis in range(len(spec.shape)))
        for spec in source.inputs
    ]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        editor = open_editor(dataclasses.replace(source.model, inputs=concrete(source, ours)))
        editor.set_input_shapes(shapes)
        model = editor.save(folder, "source")
    except (NotEditableError, ModelLoadError, UsageError) as error:
        raise DataError(
            f"the models have fixed batches of {ours} and {theirs}; what they compute can't be compared layer by "
            f"layer. Export one of them with the other's batch, or an open one. ({error})"
        ) from error
    inputs = tuple(
        dataclasses.replace(spec, shape=tuple(size or own for size, own in zip(shape, spec.shape, strict=True)))
        for spec, shape in zip(source.inputs, shapes, strict=True)
    )
    return dataclasses.replace(source, model=model, inputs=inputs)


def as_fed(source: FedModel) -> tuple[TensorSpec, ...]:
    """A source's inputs with the sizes that its data has; those that it leaves open for photos are any."""
    return source.inputs if source.data.kind == "photos" else concrete(source, 1)


def _with_recipe(
    result: Localization,
    sides: tuple[tuple[FedModel, OpenedNetwork], tuple[FedModel, OpenedNetwork]],
    size: int,
    samples: int,
    options: Options,
) -> Localization:
    """The result with the recipe that the target should be fed by."""
    (source, ours), (target, theirs) = sides
    if source.recipe is None or target.recipe is None:
        return result
    recipes = source.recipe, target.recipe
    rows = batches(reader_of(source, ours, samples), ours.inputs, size)
    try:
        found = find_recipe(
            ours, theirs, rows, target.photos[:samples], recipes, options, output_error=result.output_error
        )
    except DataError as error:
        return dataclasses.replace(result, notes=(*result.notes, f"recipes could not be searched: {error}"))
    faults = list(result.faults)
    place = next(place for place, fault in enumerate(faults) if fault.kind in OF_INPUTS)
    known = faults[place].evidence
    words = f"{'' if found.found else 'recipes were searched: '}{found.evidence}"
    # What was found by a formula of the feeds stays first: it says the same in fewer words.
    first = found.found and "no formula" in known[0]
    faults[place] = dataclasses.replace(faults[place], evidence=(words, *known) if first else (*known, words))
    return dataclasses.replace(result, faults=tuple(faults), recipe=found)
