"""Whether two models give the same answers, on samples that took no part in finding or fixing a fault."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from conrepair.diagnosis.localization.align.outputs import named_alike
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import Ran, RepairOptions
from conrepair.diagnosis.repairs.outcomes import Agreement
from conrepair.formats.models.identity import model_files
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.models.runnable import Runnable
from conrepair.formats.onnx.load.proto_file import nodes_of, read_proto
from conrepair.formats.onnx.passes.fold_constants import UNSTEADY
from conrepair.ground.data.feeds import batches, open_feeds
from conrepair.ground.data.sample_axes import OutputAxes, fixed_batch, shared_axes, with_axes_of
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.metrics.running_error import RunningError
from conrepair.ground.runtime.errors import InferenceError, ModelLoadError
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.evaluate.answers import right_answers
from conrepair.verdicts.evaluate.pairing import fit, pair_outputs

if TYPE_CHECKING:
    import onnx

_BATCH = 8
_FLUCTUATION = 1.1  # times an error, and
_ANSWERS = 1  # so many answers, that two targets may differ by which are as good: what rounding puts here or there
_READ_WHOLE = 1 << 28  # bytes of a file
_NEARER = 0.8  # times an error: less than that is no gain on other samples


@dataclass(frozen=True)
class SampledAnswers:
    """A model's answers to samples that follow one another.

    Attributes:
        samples: How many.
        outputs: By name. One whose rows are no multiple of that is of all samples together.
        ordered: Whether the outputs have an order, and not names alone.
    """

    samples: int
    outputs: Mapping[str, Array]
    ordered: bool = True

    def rows(self, begin: int, end: int) -> SampledAnswers:
        """The answers to some of the samples."""

        def cut(array: Array) -> Array:
            if not array.ndim or len(array) % self.samples:
                return array
            each = len(array) // self.samples
            return array[begin * each : end * each]

        return replace(self, samples=end - begin, outputs={name: cut(array) for name, array in self.outputs.items()})


NO_AGREEMENT = Agreement(0, math.inf, None)
"""Of a model that can't be run."""


def agreement(
    right: Iterable[SampledAnswers], given: Iterable[SampledAnswers], labels: Sequence[int | None] = ()
) -> Agreement:
    """Compare answers to the same samples.

    Args:
        right: The source's, from `Unseen.answers`, in the same batches.
        given: The target's.
        labels: Of the samples, in their order; None where one isn't known.
    """
    errors: dict[str, RunningError] = {}
    labelled, true = 0, 0
    differing, scores, samples, whole = 0, False, 0, True
    for one_side, other in zip(right, given, strict=False):
        ours, theirs = one_side.outputs, other.outputs
        pairs, unpaired = pair_outputs(ours, theirs, ordered=(one_side.ordered, other.ordered))
        whole = whole and not unpaired
        for pair in pairs:
            one, two = fit(pair, ours[pair.reference], theirs[pair.candidate])
            measured = errors.setdefault(pair.reference, RunningError())
            if one.shape != two.shape:  # more rows, or fewer
                measured.mismatched += max(one.size, two.size)
                continue
            measured.add(one, two)
            if one.ndim == 2 and one.shape[1] > 1 and one.dtype.kind == "f":
                scores = True
                differing += int((one.argmax(1) != two.argmax(1)).sum())
        known = labels[samples : samples + one_side.samples]
        counted = right_answers(next(iter(theirs.values())), known) if known else None
        if counted is not None:
            true, labelled = true + counted[0], labelled + counted[1]
        samples += one_side.samples
    error = max((item.relative_l2 for item in errors.values()), default=0.0) if whole else float("inf")
    return Agreement(samples, error, differing if scores else None, labelled, true if labelled else None)


def is_worse(after: Agreement, before: Agreement) -> bool:
    """Whether a target agrees less with its source than another one, by more than chance.

    Args:
        after: Of the one.
        before: Of the other, on the same samples.
    """
    more = (after.top1_differing or 0) - (before.top1_differing or 0)
    return not after.error <= _FLUCTUATION * before.error or more > _ANSWERS


def undone(after: Agreement, before: Agreement) -> str:
    """The reason why a repair isn't delivered, in words.

    Args:
        after: What it comes to on samples that took no part.
        before: The target as it came.
    """
    words = f"undone: outputs differ by {percent(after.error)} on unseen samples, {percent(before.error)} before"
    if after.top1_differing is None:
        return words
    return f"{words}; {after.top1_differing} top-1 predictions differ, {before.top1_differing or 0} before"


def is_the_source(source: FedModel, target: FedModel, model: Model) -> bool:
    """Whether a file has the source's graph to the bit, of no chance, and is fed the same: it gives what that gives.

    Args:
        source: The model that is right.
        target: What was fed as the file is.
        model: The file; one of a format that isn't read so, or with weights outside, is taken for another.
    """
    paths = [Path(source.model.path), Path(model.path)]
    if {source.model.framework, model.framework} != {"onnx"} or target.build is not None:
        return False
    if (source.data, source.recipe) != (target.data, target.recipe):
        return False
    if any(len(model_files(path)) > 1 or path.stat().st_size > _READ_WHOLE for path in paths):
        return False
    one, two = map(read_proto, paths)
    random = any(node.op_type in UNSTEADY for graph in (one.graph, *one.functions) for node in nodes_of(graph))
    return not random and _computed(one) == _computed(two)


def _computed(proto: onnx.ModelProto) -> tuple[Any, ...]:
    """All of an ONNX file that its answers depend on."""
    opsets = {item.domain: item.version for item in proto.opset_import}
    for node in proto.graph.node:
        if not node.domain:
            node.ClearField("domain")  # written or not, it's ONNX's own
    return proto.ir_version, opsets, proto.graph, list(proto.functions)


def is_better(after: Agreement, before: Agreement) -> bool:
    """Whether a target agrees more with its source than another one, by more than chance.

    Args:
        after: Of the one.
        before: Of the other, on the same samples.
    """
    fewer = (before.top1_differing or 0) - (after.top1_differing or 0)
    return not is_worse(after, before) and (after.error <= _NEARER * before.error or fewer > _ANSWERS)


def is_of_use(after: Agreement, before: Agreement, *, clean: bool) -> bool:
    """Whether a target is to be delivered in the place of the one that came.

    Args:
        after: Of the one.
        before: Of the other, on the same samples.
        clean: Whether nothing is at fault any more: then it's enough that it agrees no less.
    """
    runs = after.samples == before.samples
    return runs and (not is_worse(after, before) if clean else is_better(after, before))


def shared_batch(*sides: Sequence[TensorSpec]) -> int:
    """How many samples models are to be given at a time: as many as one of them always takes.

    Args:
        sides: The inputs of each.
    """
    fixed = [fixed_batch(inputs, shared_axes(inputs)) for inputs in sides]
    return min((size for size in fixed if size is not None), default=_BATCH)


# The samples that took no part in finding a repair.


@dataclass(frozen=True)
class Unseen:
    """Samples that took no part.

    Attributes:
        begin: The first of them in the dataset.
        count: How many at most.
        batch_size: Of models that leave it open.
        labels: Of these samples; None where one isn't known.
    """

    begin: int
    count: int
    batch_size: int = _BATCH
    labels: tuple[int | None, ...] = ()

    def as_it_came(self, subject: FedModel, known: Ran | None) -> Iterator[SampledAnswers]:
        """What a model gives to these samples, as it came: it isn't run where it has given that already.

        Args:
            subject: The model.
            known: What it has given, if this one did.
        """
        given = {} if known is None else _given(subject, known)
        if known is None or not given:
            yield from self.answers(subject, subject.model)
            return
        order, end = [*subject.data.order], self.begin + self.count
        for start in range(self.begin - self.begin % self.batch_size, min(end, len(order)), self.batch_size):
            places = order[max(start, self.begin) : min(start + self.batch_size, end)]
            yield SampledAnswers(len(places), {name: array[places] for name, array in given.items()}, known.ordered)

    def answers(self, subject: FedModel, model: Model, runnable: Runnable | None = None) -> Iterator[SampledAnswers]:
        """Outputs of a model, batch by batch, without the rows that only fill a batch up.

        Args:
            subject: What the model is fed.
            model: The subject's, or a changed copy of it.
            runnable: To run in place of the model in its own library: what was compiled of it.

        Raises:
            ModelLoadError: if the model can't be loaded.
            InferenceError: if it can't be run.
            DataError: if the data doesn't fit.
        """
        runnable = runnable or framework(model.framework).load(model)
        # By name, or, where saving has renamed them, in order.
        given, wanted = ([spec.name for spec in specs] for specs in (subject.inputs, runnable.inputs))
        inputs = dict(named_alike(given, wanted))
        reader = open_feeds(subject.data, subject.inputs, subject.recipe)
        reader.count = min(reader.count, self.begin + self.count)
        axes = OutputAxes(subject.inputs, runnable.outputs, reader.axes)
        for batch in batches(reader, subject.inputs, self.batch_size):
            skipped = max(self.begin - batch.start, 0)
            if skipped >= batch.valid:
                continue
            feeds = {inputs[name]: array for name, array in batch.feeds.items()}
            outputs = runnable.run(feeds)
            rows = {name: axes.in_front(name, array, batch.size) for name, array in outputs.items()}
            yield SampledAnswers(batch.size, rows, runnable.ordered).rows(skipped, batch.valid)

    def agreement(self, right: Iterable[SampledAnswers], given: Iterable[SampledAnswers]) -> Agreement:
        """As `verify.agreement`, with these samples' labels."""
        return agreement(right, given, labels=self.labels)

    def agreement_if_any(self, right: Iterable[SampledAnswers], given: Iterable[SampledAnswers]) -> Agreement:
        """The same; `NO_AGREEMENT` where one of them runs where layers are looked at, and not on these samples."""
        try:
            return self.agreement(right, given)
        except (InferenceError, ModelLoadError):
            return NO_AGREEMENT


def _given(subject: FedModel, known: Ran) -> dict[str, Array]:
    """What a model has given, by name; nothing where another one did, or not each sample has a row as it came."""
    paths = [Path(known.path, f"output_{index}.npy") for index in range(len(known.outputs))]
    if known.sha256 != subject.model.sha256 or subject.fixed_batch is not None or not all(map(Path.is_file, paths)):
        return {}
    found = {spec.name: np.load(path, mmap_mode="r") for spec, path in zip(known.outputs, paths, strict=True)}
    whole = all(len(found[spec.name]) == subject.data.count for spec in known.outputs)
    return found if whole and all(str(found[spec.name].dtype) == spec.dtype for spec in known.outputs) else {}


def unseen_samples(source: FedModel, target: FedModel, options: RepairOptions) -> Unseen:
    """Those behind the samples that layers are looked at with; these again where the dataset has no more.

    Args:
        source: The model that is right.
        target: The model in question.
        options: Samples, and their labels.
    """
    seen = options.localization.samples
    begin = seen if min(source.data.count, target.data.count) > seen else 0
    batch = shared_batch(source.inputs, with_axes_of(target.inputs, source.inputs))
    return Unseen(begin, options.unseen, batch, options.labels[begin:])
