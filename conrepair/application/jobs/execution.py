"""The jobs that compile a model, and run it over a dataset."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.application.jobs.description import of_what_stays
from conrepair.application.jobs.recorder import Recorder, SizesVaryError
from conrepair.application.jobs.stepwise import Stepwise
from conrepair.application.jobs.values import Compiled, RunRecord, RunRequest
from conrepair.formats.backends.all_backends import backend, compiler
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.ground.data.feeds import OPEN_BATCHES, Batch, FeedSource, batches, first_batch, open_feeds
from conrepair.ground.data.sample_axes import OutputAxes, fixed_batch, with_batch
from conrepair.ground.data.sequences import Sequences, step_of
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import InferenceError
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.verdicts.evaluate.run import Run

_REPEATED, _MOST_REPEATED = 32, 64  # runs of a random model's first batch, whose distributions are compared
_VALUES_REPEATED = 4096  # of an output in all runs, below which there are more of them
_OTHER_BATCHES = (1, 2, 3, 4, 8, 32)  # that a model may take which refuses the wanted one


@of_what_stays
def compile(  # noqa: A001 (the name of the job)
    folder: Path, model: Model, backend: str, options: Mapping[str, Any], batch_size: int
) -> Compiled:
    """Compile a model.

    Args:
        folder: Receives what the compiler makes.
        model: What to compile.
        backend: The compiler.
        options: Of it, complete.
        batch_size: For models that leave it open.
    """
    record = compiler(backend).compile(model, dict(options), batch_size, folder)
    return Compiled(record, sha256_of(folder))


@of_what_stays
def execute(folder: Path, model: Model, request: RunRequest) -> RunRecord:
    """Run a model over a dataset.

    Args:
        folder: Receives one `output_<index>.npy` for each output (where sizes vary: its rows, and in
            `lengths_<index>.npy` how many each sample has) and `seconds.npy` (float64 per sample, as the device
            measured it where it does); `again_<index>.npy` where the first batch, run a second time in the end, gives
            something else, and `repeated_<index>.npy`, what more runs of it give; with the option "debug_enabled"
            what each kernel computes of the first "debug_samples".
        model: What to run.
        request: Where, and on what.
    """
    return executed(folder, model, request, backend(request.backend).load(model, dict(request.options)))


def executed(folder: Path, model: Model, request: RunRequest, runnable: Runnable) -> RunRecord:
    """Run a model over a dataset, whatever made it ready to run.

    Args:
        folder: As of `execute`.
        model: As of `execute`.
        request: As of `execute`.
        runnable: The model, made ready.
    """
    options, size = request.options, request.batch_size
    inputs = with_declared_layouts(runnable.inputs, model)
    source = open_feeds(request.data, inputs, request.recipe)
    is_open = bool(source.axes) and fixed_batch(inputs, source.axes) is None
    if request.rows is not None and is_open:
        inputs, is_open = with_batch(inputs, source.axes, request.rows), False
    steps = request.steps
    axes = OutputAxes(inputs, runnable.outputs, source.axes)
    if steps > 1:
        source = Sequences(source, steps, drawn=request.data.kind == "synthetic")
        runnable, axes = Stepwise(runnable, steps, axes, source.axes), OutputAxes((), (), {})
    source.count = min(source.count, request.limit or source.count)
    again = not options.get("second_opinion")
    spend = math.inf if request.spend is None else request.spend
    execution, refused = _Execution(runnable, axes, source, folder, again, spend), dict[int, str]()
    try:
        recorder, run_seconds, repeats = execution.over(inputs, size)
    except InferenceError:
        taken, refused = _batch_that_runs(model, runnable, source, inputs, size)
        if taken is None:
            raise
        inputs = with_batch(inputs, source.axes, taken)  # so the last one is filled up
        recorder, run_seconds, repeats = execution.over(inputs, taken)
    if request.other_batches and is_open:
        refused |= _refused(runnable, source, [other for other in OPEN_BATCHES if other not in refused])
    samples, count = source.count, recorder.finish()
    if options.get("debug_enabled"):
        source.count = min(count, options["debug_samples"])
        shown = [batch.feeds for batch in batches(source, inputs, size)]
        if isinstance(runnable, Stepwise):
            shown = [step_of(feeds, 0) for feeds in shown]
        captured = runnable.runnable if isinstance(runnable, Stepwise) else runnable
        compiler(request.backend).capture(captured, shown, len(shown), folder)
    run = Run(
        name="",
        folder=Path(),
        outputs=tuple(runnable.outputs),
        ordered=runnable.ordered,
        steps=steps,
        count=count,
        starts=tuple(recorder.starts),
        repeats=repeats,
    )
    return RunRecord(run=run, samples=samples, run_seconds=run_seconds, refused=refused, matching=source.matching)


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
    from conrepair.formats.onnx.read.plain import batch_numbers, written_shapes  # with what reads networks

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


def with_declared_layouts(inputs: tuple[TensorSpec, ...], model: Model) -> tuple[TensorSpec, ...]:
    """Take over the layouts declared for a model; they are its source's: not where a converter moved the axis.

    Args:
        inputs: As it was loaded.
        model: With the declared ones.
    """
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
