"""Whether two models give the same answers, on samples that took no part in finding or mending a fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.data.feeds import batches, open_feeds
from conrepair.data.tensor_spec import TensorSpec
from conrepair.evaluate.pairing import fit, pair_outputs
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.graph.layer_graph import Array
from conrepair.localize.models import Subject
from conrepair.metrics.running_error import RunningError

__all__ = ["Agreement", "agreement"]

_BATCH = 8


@dataclass(frozen=True)
class Agreement:
    """How far two models agree.

    Attributes:
        samples: How many were compared.
        error: Largest relative L2 of an output; infinite where values aren't finite, or an output has no partner.
        top1_differing: How many answers differ, of outputs that are scores of classes; None where there are none.
    """

    samples: int
    error: float
    top1_differing: int | None


def agreement(source: Subject, target: Subject, model: Model, *, begin: int, count: int) -> Agreement:
    """Compare answers.

    Args:
        source: The model that is right.
        target: The model in question, as it came: what it's fed.
        model: The target, or a changed copy of it.
        begin: First sample of the dataset.
        count: How many at most.

    Raises:
        ModelLoadError: if a model can't be loaded.
        InferenceError: if one can't be run.
        DataError: if the data doesn't fit.
    """
    errors: dict[str, RunningError] = {}
    differing, scores, samples, whole = 0, False, 0, True
    sides = _answers(source, source.model, begin, count), _answers(target, model, begin, count)
    for ours, theirs in zip(*sides, strict=False):
        valid = min(len(next(iter(ours.values()))), len(next(iter(theirs.values()))))
        ours, theirs = ({name: array[:valid] for name, array in side.items()} for side in (ours, theirs))
        pairs, unpaired = pair_outputs(ours, theirs)
        whole = whole and not unpaired
        for pair in pairs:
            one, two = fit(pair, ours[pair.reference], theirs[pair.candidate])
            errors.setdefault(pair.reference, RunningError()).add(one, two)
            if one.ndim == 2 and one.shape[1] > 1 and one.dtype.kind == "f":
                scores = True
                differing += int((one.argmax(1) != two.argmax(1)).sum())
        samples += valid
    error = max((item.relative_l2 for item in errors.values()), default=0.0) if whole else float("inf")
    return Agreement(samples, error, differing if scores else None)


def _answers(subject: Subject, model: Model, begin: int, count: int) -> Iterator[Mapping[str, Array]]:
    """Outputs of a model, batch by batch, without the rows that only fill a batch up."""
    runnable = framework(model.framework).load(model)
    inputs = _named_as(subject.inputs, runnable.inputs)
    reader = open_feeds(subject.data, subject.inputs, subject.recipe)
    reader.count = min(reader.count, begin + count)
    for batch in batches(reader, subject.inputs, _BATCH):
        skipped = max(begin - batch.start, 0)
        if skipped >= batch.valid:
            continue
        feeds = {inputs[name]: array for name, array in batch.feeds.items()}
        outputs = runnable.run(feeds)
        yield {name: _rows(array, batch.size, skipped, batch.valid) for name, array in outputs.items()}


def _rows(array: Array, size: int, begin: int, end: int) -> Array:
    return array[begin:end] if array.ndim and len(array) == size else np.asarray(array)


def _named_as(given: Sequence[TensorSpec], wanted: Sequence[TensorSpec]) -> dict[str, str]:
    """Inputs by name, or, where saving has renamed them, in order."""
    names, others = [spec.name for spec in given], [spec.name for spec in wanted]
    return dict(zip(names, names if set(names) == set(others) else others, strict=True))
