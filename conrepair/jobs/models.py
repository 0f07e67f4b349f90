"""What workers do: build, describe, convert, execute. Plain values in, files and plain values out."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.backends.all_backends import COMPILERS, backend
from conrepair.converters.all_converters import converter
from conrepair.converters.base import Converter
from conrepair.data.calibration import CalibrationFeeds
from conrepair.data.feeds import OPEN_BATCHES, Batch, DataReference, FeedSource, batches, first_batch, open_feeds
from conrepair.data.pictures.recipe import Recipe
from conrepair.data.sample_axes import OutputAxes, fixed_batch, with_batch
from conrepair.data.sequences import Sequences, step_of
from conrepair.data.synthetic import SyntheticRange
from conrepair.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.frameworks.builders import build_from_factory
from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Model, Provenance, from_json, to_json
from conrepair.frameworks.outlines.outline import Outline
from conrepair.frameworks.outlines.unrun import describe_unrun
from conrepair.frameworks.registry import framework
from conrepair.frameworks.runnable import Runnable
from conrepair.jobs.recorder import Recorder, SizesVaryError
from conrepair.jobs.stepwise import Stepwise
from conrepair.networks.onnx_plain import batch_numbers, written_shapes
from conrepair.report.encode import encode
from conrepair.runtime.errors import ConrepairError, InferenceError, ModelLoadError, SourceChangedError
from conrepair.runtime.files import sha256_of
from conrepair.runtime.handing_on import leave, take
from conrepair.runtime.journal import Journal
from conrepair.runtime.notes import collected_notes

_REPEATED, _MOST_REPEATED = 32, 64  # runs of a random model's first batch, whose distributions are compared
_VALUES_REPEATED = 4096  # of an output in all runs, below which there are more of them

__all__ = [
    "attempt",
    "baked",
    "build",
    "compile",
    "contents",
    "conversion_payload",
    "convert",
    "describe",
    "draw_inputs",
    "execute",
    "executed",
    "localize",
    "outline",
    "repair",
    "rounding",
]


# What in a model's file holds it to one number of samples.


def baked(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Find it, in a model that leaves its batch open and fails with some.

    Args:
        payload: As of an execution.
        folder: Not used.

    Returns:
        "words"; "" where it isn't found.
    """
    from conrepair.localization.baked_batch import baked_batch
    from conrepair.localization.fed_model import FedModel, concrete

    model, data = from_json(Model, payload["model"]), from_json(DataReference, payload["data"])
    recipe = None if payload["recipe"] is None else from_json(Recipe, payload["recipe"])
    subject = FedModel(model, framework(model.framework).load(model).inputs, data, recipe)
    found = baked_batch(model, concrete(subject, 1), subject.axes)
    return {"words": "" if found is None else str(found)}


_OTHER_BATCHES = (1, 2, 3, 4, 8, 32)  # that a model may take which refuses the wanted one


def build(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Call a factory, load or draw its weights, save what it made.

    Args:
        payload: The arguments of `build_from_factory`.
        folder: Receives the weights or the model.

    Returns:
        "model" (its path relative to the folder) and "description".
    """
    model = build_from_factory(folder=folder, **payload)
    if payload["weights"] is not None:
        _check_unchanged(payload["weights"]["path"], payload["weights"]["sha256"])
    return _described(model, folder)


def describe(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Describe an existing model.

    Args:
        payload: "model"; "unrun" where nothing of it may be run for that.
        folder: Not used.

    Returns:
        "model" as given, "description", and what isn't said of one that isn't run, as "missing".
    """
    model = from_json(Model, payload["model"])
    found = describe_unrun(model) if payload.get("unrun") else Outline(framework(model.framework).describe(model))
    _check_unchanged(model.path, model.sha256)
    return {"model": payload["model"], "description": to_json(found.description), "missing": list(found.missing)}


def conversion_payload(
    model: Model,
    step: Converter,
    options: Mapping[str, Any],
    inputs: Iterable[TensorSpec],
    data: tuple[DataReference, Recipe | None] | None = None,
) -> dict[str, Any]:
    """The argument of `convert`.

    Args:
        model: What to convert.
        step: The converter.
        options: Complete.
        inputs: The source's, for formats that don't record them.
        data: A dataset to calibrate with, and how its photos become tensors; plays a role only when the options
            want samples.
    """
    payload = {
        "model": to_json(model.bare),
        "converter": step.name,
        "options": dict(options),
        "versions": step.versions(),
        "inputs": [to_json(spec) for spec in inputs],
    }
    if step.calibrates(options) and data is not None:
        reference, recipe = data
        payload["calibration"] = {
            "data": to_json(reference),
            "recipe": None if recipe is None else dataclasses.asdict(recipe),
            "samples": step.calibrates(options),
        }
    return payload


def convert(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run one converter, then load and describe what it made.

    Args:
        payload: From `conversion_payload`.
        folder: Receives the target.

    Returns:
        "model" (its path relative to the folder) and "description".
    """
    source = from_json(Model, payload["model"])
    step = converter(payload["converter"])
    started = time.perf_counter()
    with collected_notes() as notes:
        name = _run_converter(step, source, folder, payload)
    seconds = time.perf_counter() - started
    if model_sha256(Path(source.path)) != source.sha256:
        raise SourceChangedError(f"{step.name} changed its input {source.path}; its result was not used.")
    model = Model(
        framework=step.target,
        path=str(folder / name),
        sha256=model_sha256(folder / name),
        inputs=tuple(from_json(TensorSpec, spec) for spec in payload["inputs"]),
        provenance=Provenance(
            source.sha256, step.name, payload["versions"], payload["options"], seconds, tuple(notes)
        ),
    )
    try:
        return _described(model, folder)
    except ConrepairError as error:
        raise ModelLoadError(f"{step.name} wrote a model that doesn't load. {error}") from error


def compile(payload: dict[str, Any], folder: Path) -> dict[str, Any]:  # noqa: A001 (the name of the job)
    """Compile a model.

    Args:
        payload: "model", "backend", "options", "batch_size".
        folder: Receives what the compiler makes.

    Returns:
        "build" (what the compiler says) and "sha256" (of the folder).
    """
    model = from_json(Model, payload["model"])
    record = COMPILERS[payload["backend"]].compile(model, payload["options"], payload["batch_size"], folder)
    _check_unchanged(model.path, model.sha256)
    return {"build": record, "sha256": sha256_of(folder)}


def execute(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run a model over a dataset.

    Args:
        payload: "model", "backend", "options", "data", "recipe" (or None), "batch_size", "limit" (or None),
            "steps" (in a row that make a sample; outputs have them behind the samples), "rows" (that a batch has even
            where the model leaves that open; or None), "other_batches" (whether others are tried, too, where the
            model leaves their size open), and, where that's bounded, "spend": no batch is begun that would end after
            so many seconds.
        folder: Receives one `output_<index>.npy` for each output (where sizes vary: its rows, and in
            `lengths_<index>.npy` how many each sample has) and `seconds.npy` (float64 per sample, as the device
            measured it where it does); `again_<index>.npy` where the first batch, run a second time in the end, gives
            something else, and `repeated_<index>.npy`, what more runs of it give; with the option "debug_enabled"
            what each kernel computes of the first "debug_samples".

    Returns:
        "outputs" (specs, in order), "ordered" (whether they have an order, and not names alone), "steps", "count" (of
        samples that ran), "samples" (that there are), "starts" (first sample of each batch), "load_seconds",
        "run_seconds" (from the first batch to the last), "repeats" (whether the first batch gave the same bits twice;
        true for a second opinion, which isn't asked), "matching" (as `Matching`),
        "refused" (sizes of batches that it fails with, where others run, and what it says).
    """
    return executed(payload, folder, lambda model: backend(payload["backend"]).load(model, payload["options"]))


def executed(payload: dict[str, Any], folder: Path, load: Callable[[Model], Runnable]) -> dict[str, Any]:
    """Run a model over a dataset, whatever makes it ready to run.

    Args:
        payload: As of `execute`.
        folder: As of `execute`.
        load: Makes it ready.

    Returns:
        As of `execute`.
    """
    model = from_json(Model, payload["model"])
    reference = from_json(DataReference, payload["data"])
    recipe = None if payload["recipe"] is None else from_json(Recipe, payload["recipe"])
    started = time.perf_counter()
    runnable = load(model)
    load_seconds = time.perf_counter() - started
    inputs = _with_declared_layouts(runnable.inputs, model)
    source = open_feeds(reference, inputs, recipe)
    is_open = bool(source.axes) and fixed_batch(inputs, source.axes) is None
    if payload.get("rows") is not None and is_open:
        inputs, is_open = with_batch(inputs, source.axes, payload["rows"]), False
    steps = payload.get("steps", 1)
    axes = OutputAxes(inputs, runnable.outputs, source.axes)
    if steps > 1:
        source = Sequences(source, steps, drawn=reference.kind == "synthetic")
        runnable, axes = Stepwise(runnable, steps, axes, source.axes), OutputAxes((), (), {})
    source.count = min(source.count, payload["limit"] or source.count)
    again, spend = not payload["options"].get("second_opinion"), payload.get("spend", math.inf)
    execution, refused = _Execution(runnable, axes, source, folder, again, spend), dict[int, str]()
    try:
        recorder, run_seconds, repeats = execution.over(inputs, payload["batch_size"])
    except InferenceError:
        size, refused = _batch_that_runs(model, runnable, source, inputs, payload["batch_size"])
        if size is None:
            raise
        inputs = with_batch(inputs, source.axes, size)  # so the last one is filled up
        recorder, run_seconds, repeats = execution.over(inputs, size)
    if payload.get("other_batches") and is_open:
        refused |= _refused(runnable, source, [size for size in OPEN_BATCHES if size not in refused])
    samples, count = source.count, recorder.finish()
    if payload["options"].get("debug_enabled"):
        source.count = min(count, payload["options"]["debug_samples"])
        shown = [batch.feeds for batch in batches(source, inputs, payload["batch_size"])]
        if isinstance(runnable, Stepwise):
            shown = [step_of(feeds, 0) for feeds in shown]
        captured = runnable.runnable if isinstance(runnable, Stepwise) else runnable
        COMPILERS[payload["backend"]].capture(captured, shown, len(shown), folder)
    _check_unchanged(model.path, model.sha256)
    if reference.kind == "tensors":
        _check_unchanged(reference.path, reference.sha256)
    return {
        "outputs": [to_json(spec) for spec in runnable.outputs],
        "ordered": runnable.ordered,
        "steps": steps,
        "count": count,
        "samples": samples,
        "starts": recorder.starts,
        "load_seconds": load_seconds,
        "run_seconds": run_seconds,
        "repeats": repeats,
        "refused": {str(size): words for size, words in refused.items()},
        "matching": {"guesses": source.matching.guesses, "others": source.matching.others},
    }


@dataclasses.dataclass(frozen=True)
class _Execution:
    """A model that is run over a dataset.

    Attributes:
        runnable: The model.
        axes: Where its outputs have their samples.
        source: The dataset.
        folder: Receives the outputs.
        again: Whether the first batch is run a second time in the end.
        spend: No batch is begun that would end after so many seconds.
    """

    runnable: Runnable
    axes: OutputAxes
    source: FeedSource
    folder: Path
    again: bool
    spend: float

    def over(self, inputs: Sequence[TensorSpec], size: int) -> tuple[Recorder, float, bool]:
        """Run all samples, singly where sizes vary: what's recorded, seconds, and whether the first batch repeats."""
        started = time.perf_counter()
        try:
            recorder, first = self._record(inputs, size, singly=False)
        except SizesVaryError:
            recorder, first = self._record(inputs, 1, singly=True)
        run_seconds = time.perf_counter() - started
        if first is None or not self.again:
            return recorder, run_seconds, True
        outputs = self.runnable.run(first.feeds)
        repeats = recorder.repeats(first.valid, first.size, outputs)
        if not repeats:
            fewest = min((array.size for array in outputs.values()), default=1)
            count = min(max(_REPEATED, _VALUES_REPEATED // (fewest or 1)), _MOST_REPEATED)
            recorder.repeated(first.valid, first.size, (self.runnable.run(first.feeds) for _ in range(count)))
        return recorder, run_seconds, repeats

    def _record(self, inputs: Sequence[TensorSpec], size: int, *, singly: bool) -> tuple[Recorder, Batch | None]:
        """Run all batches; what's recorded, and the first one."""
        fixed = fixed_batch(inputs, self.source.axes) is not None
        recorder = Recorder(self.folder, self.source.count, self.axes, fixed=fixed, singly=singly)
        started = time.perf_counter()
        first: Batch | None = None
        for batch in batches(self.source, inputs, size):
            if first is None:
                # A copy, since some models write into their inputs.
                copies = {name: np.array(array) for name, array in batch.feeds.items()}
                first = dataclasses.replace(batch, feeds=copies)
            before = time.perf_counter()
            outputs = self.runnable.run(batch.feeds)
            seconds = time.perf_counter() - before
            if self.runnable.device_seconds is not None:
                seconds = self.runnable.device_seconds
            recorder.record(batch.start, batch.valid, batch.size, outputs, seconds)
            now = time.perf_counter()
            if now - started + (now - before) > self.spend:
                break
        return recorder, first


def _batch_that_runs(
    model: Model, runnable: Runnable, source: FeedSource, inputs: Sequence[TensorSpec], wanted: int
) -> tuple[int | None, dict[int, str]]:
    """A number of samples that a model takes which leaves it open, and failed; with those that it failed with.

    None where it takes none, or where that's not what it failed for.
    """
    if not source.axes or fixed_batch(inputs, source.axes) is not None:
        return None, {}
    refused = _refused(runnable, source, filter(None, (min(wanted, source.count), source.count % wanted)))
    if not refused:
        return None, {}
    written = batch_numbers(written_shapes(model.path), source.axes.values()) if model.framework == "onnx" else []
    others = (size for size in dict.fromkeys((wanted, *written, *_OTHER_BATCHES)) if size not in refused)
    size = next((size for size in others if not _refused(runnable, source, [size])), None)
    return size, refused


def _refused(runnable: Runnable, source: FeedSource, sizes: Iterable[int]) -> dict[int, str]:
    """The numbers of samples with which a model fails, and what it says."""
    found = {}
    for size in sizes:
        try:
            runnable.run(first_batch(source, size))
        except InferenceError as error:
            found[size] = str(error)
    return found


def contents(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Say what a file holds that can't be run.

    Args:
        payload: "model".
        folder: Unused.

    Returns:
        "description", "missing"; an empty dict for a file that can't be read either.
    """
    from conrepair.frameworks.outlines.outline import outline as read_outline

    found = read_outline(from_json(Model, payload["model"]))
    if found is None:
        return {}
    return {"description": to_json(found.description), "missing": list(found.missing)}


def draw_inputs(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Choose which inputs to draw for a model and what was made of it.

    Args:
        payload: "source" and "targets" (each with "model" and "inputs"), "limits", "count", "batch".
        folder: Not used.

    Returns:
        "chosen".
    """
    from conrepair.networks.synthetic_inputs import Reader, choose_inputs

    source = from_json(Reader, payload["source"])
    targets = [from_json(Reader, target) for target in payload["targets"]]
    limits = from_json(SyntheticRange, payload["limits"])
    chosen = choose_inputs(source, targets, limits, payload["count"], batch=payload["batch"])
    for reader in (source, *targets):
        _check_unchanged(reader.model.path, reader.model.sha256)
    return {"chosen": to_json(chosen)}


def localize(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Say where a target stops being its source.

    Args:
        payload: "source" and "target" (each with "model", "inputs", "data", "recipe"), "options".
        folder: For activations.

    Returns:
        "localization".
    """
    from conrepair.localization.fed_model import FedModel
    from conrepair.localization.models import localize_models
    from conrepair.localization.options import Options

    source, target = (from_json(FedModel, payload[side]) for side in ("source", "target"))
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        options, keep = from_json(Options, payload["options"]), partial(leave, "repair")
        result = localize_models(source, target, Path(scratch), options, leave=keep)
    for subject in (source, target):
        _check_unchanged(subject.model.path, subject.model.sha256)
    return {"localization": encode(result)}


def rounding(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Measure what rounding does to a model's outputs, what they are exactly, and in other arithmetics.

    Args:
        payload: "source" (as for `localize`), "options".
        folder: Receives a folder for each run, with one `output_<index>.npy` for each output.

    Returns:
        "runs": by name ("rounded", "exact", "bounds", "own", and arithmetics), each with "outputs" (specs, in order),
        "count", "starts" and "repeats" as of an execution; none where the model can only be looked into through a
        conversion, or computes nothing. "kernel": which of its runtime's is off, in words.
    """
    from conrepair.localization.fed_model import FedModel
    from conrepair.localization.models import outputs_again
    from conrepair.localization.options import Options

    source = from_json(FedModel, payload["source"])
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        again = outputs_again(source, Path(scratch), from_json(Options, payload["options"]))
    _check_unchanged(source.model.path, source.model.sha256)
    if again is None:
        return {"runs": {}, "kernel": ""}
    found = again.measured
    runs: dict[str, Any] = {}
    for name, parts in found.runs.items():
        (folder / name).mkdir()
        count = min(again.count, again.size * len(parts))
        recorder = Recorder(folder / name, count, again.axes, fixed=True)
        for start, arrays in zip(range(0, count, again.size), parts, strict=True):
            recorder.record(start, min(again.size, count - start), again.size, arrays, 0.0)
        recorder.finish()
        specs = [
            dataclasses.replace(spec, dtype=str(parts[0][spec.name].dtype))
            for spec in again.specs
            if spec.name in parts[0]
        ]
        outputs = [to_json(spec) for spec in specs]
        runs[name] = {"outputs": outputs, "count": count, "starts": recorder.starts, "repeats": True}
    return {"runs": runs, "kernel": found.kernel}


def repair(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Repair a target in its own format.

    Args:
        payload: As for `localize`; and "seconds", "unseen", "edits", "bake_recipe", "labels" (of the samples), and
            "journal", the folder that the search is kept in until it's finished, and "whose" it is.
        folder: Receives the repaired model and its patch.

    Returns:
        "repair", whose model and patch have paths relative to `folder`; "unfinished", whether it was interrupted.
    """
    from conrepair.localization.fed_model import FedModel
    from conrepair.repairs.build import repair_build
    from conrepair.repairs.options import RepairOptions
    from conrepair.repairs.repair import repair_models
    from conrepair.report.row_paths import placed, relative_to

    source, target = (from_json(FedModel, payload[side]) for side in ("source", "target"))
    options = from_json(RepairOptions, {**payload, "localization": payload["options"]})
    journal = Journal(Path(payload["journal"]), payload["whose"])
    if target.build is None:
        result = repair_models(source, target, folder, options, journal, looked=take())
    else:
        result = repair_build(source, target, folder, options, journal)
    for subject in (source, target):
        _check_unchanged(subject.model.path, subject.model.sha256)
    return {"repair": encode(placed(result, relative_to(folder))), "unfinished": result.interrupted}


def outline(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write an ONNX model so that it can be cut anywhere.

    Args:
        payload: "model".
        folder: Receives it.

    Returns:
        "model" (its path relative to the folder) and "nodes".
    """
    from conrepair.repairs.conversion.piece import outline as write_outline

    model = from_json(Model, payload["model"])
    path = folder / "outline.onnx"
    nodes = write_outline(model.path, model.inputs, path)
    _check_unchanged(model.path, model.sha256)
    made = Model("onnx", path.name, model_sha256(path))
    return {"model": to_json(made), "nodes": nodes}


def attempt(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Take some nodes of a graph through converters; what comes out isn't kept.

    Args:
        payload: "model" (from `outline`), "nodes" (places; None for all), "steps" (each as in `conversion_payload`),
            "run" (whether the result is run too).
        folder: For what is made on the way.

    Returns:
        Nothing: that it returns is the result.
    """
    from conrepair.onnx_passes.files import load, save
    from conrepair.repairs.conversion.piece import piece

    here = from_json(Model, payload["model"])
    with tempfile.TemporaryDirectory(dir=folder) as name:
        scratch = Path(name)
        if payload["nodes"] is not None:
            path = scratch / "piece.onnx"
            save(piece(load(here.path), set(payload["nodes"])), path)
            here = Model("onnx", str(path), model_sha256(path))
        inputs = [to_json(spec) for spec in framework("onnx").describe(here).inputs]
        for place, step in enumerate(payload["steps"]):
            own = scratch / str(place)
            own.mkdir()
            made = convert({"model": to_json(here), "inputs": inputs, **step}, own)["model"]
            here = from_json(Model, made | {"path": str(own / made["path"])})
        if payload["run"]:
            runnable = framework(here.framework).load(here)
            runnable.run({spec.name: _zeros(spec) for spec in runnable.inputs})
    return {}


def _zeros(spec: TensorSpec) -> npt.NDArray[Any]:
    return np.zeros([size if isinstance(size, int) else 2 for size in spec.shape], numpy_dtype(spec.dtype))


def _check_unchanged(path: str, sha256: str) -> None:
    """Refuse a result whose source was replaced while the job read it: the store would keep it for the older one."""
    if model_sha256(Path(path)) != sha256:
        raise SourceChangedError(f"{path} was changed while it was read; the result was not used. Run again.")


def _run_converter(step: Converter, source: Model, folder: Path, payload: Mapping[str, Any]) -> str:
    """Call the converter, with samples when its options want some and there is data."""
    given, wanted = [payload["options"]], payload.get("calibration")
    if wanted is not None:
        inputs = _with_declared_layouts(framework(source.framework).load(source).inputs, source)
        recipe = None if wanted["recipe"] is None else from_json(Recipe, wanted["recipe"])
        feeds = open_feeds(from_json(DataReference, wanted["data"]), inputs, recipe)
        given.append(CalibrationFeeds(feeds, inputs, wanted["samples"]))
    with _readable(source) as read:
        return step.convert(read, folder, *given)


def _readable(source: Model) -> contextlib.AbstractContextManager[Model]:
    """A model for the tools that read its file."""
    if source.framework != "onnx":
        return contextlib.nullcontext(source)
    from conrepair.frameworks.onnx_files.readable import read_copy

    return read_copy(source)


def _with_declared_layouts(inputs: tuple[TensorSpec, ...], model: Model) -> tuple[TensorSpec, ...]:
    """Take over the layouts declared for a model; they are its source's: not where a converter moved the axis."""
    declared = {spec.name: spec for spec in model.inputs if spec.layout}
    return tuple(
        dataclasses.replace(spec, layout=declared[spec.name].layout)
        if spec.name in declared and _same_sizes(spec, declared[spec.name])
        else spec
        for spec in inputs
    )


def _same_sizes(one: TensorSpec, two: TensorSpec) -> bool:
    pairs = zip(one.shape, two.shape, strict=False)
    fit = all(isinstance(a, str) or isinstance(b, str) or a == b for a, b in pairs)
    return fit and len(one.shape) == len(two.shape)


def _described(model: Model, folder: Path) -> dict[str, Any]:
    description = framework(model.framework).describe(model)
    relative = dataclasses.replace(model, path=Path(model.path).relative_to(folder).as_posix())
    return {"model": to_json(relative), "description": to_json(description)}
