"""Localize between two models on disk."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conrepair.data.feeds import DataReference, batches, open_feeds
from conrepair.data.recipe import Recipe
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Model
from conrepair.localize.localize import localize_networks
from conrepair.localize.measurement import Feeds
from conrepair.localize.opening import Opened, open_model, second_opinion
from conrepair.localize.options import Options
from conrepair.localize.result import Localization
from conrepair.runtime.errors import DataError
from conrepair.runtime.memory import large_blocks_returned

__all__ = ["Subject", "localize_models"]


@dataclass(frozen=True)
class Subject:
    """A model and what it's fed.

    Attributes:
        model: On disk.
        inputs: As its file says, with declared sizes filled in.
        data: The dataset.
        recipe: How photos become tensors.
    """

    model: Model
    inputs: tuple[TensorSpec, ...]
    data: DataReference
    recipe: Recipe | None


def localize_models(
    source: Subject,
    target: Subject,
    folder: Path,
    options: Options,
    *,
    advance: Callable[[str], None] = lambda _: None,
) -> Localization:
    """Say where a target stops being its source.

    Args:
        source: The model that is right.
        target: The model in question.
        folder: For activations and conversions; the caller removes it.
        options: Samples, margins, intent.
        advance: Called with what is being done.

    Raises:
        ModelLoadError: if one can't be opened.
        DataError: if the data doesn't fit, or both models have batches of their own.
    """
    with large_blocks_returned():
        return _localize(source, target, folder, options, advance)


def _localize(
    source: Subject, target: Subject, folder: Path, options: Options, advance: Callable[[str], None]
) -> Localization:
    advance("opening the models")
    samples = min(source.data.count, target.data.count, options.samples)
    size = batch_size(source.inputs, target.inputs, options.batch_size, samples)
    ours = open_model(source.model, concrete(source, size), folder / "source-onnx")
    theirs = open_model(target.model, concrete(target, size), folder / "target-onnx")
    work = folder / "activations"
    work.mkdir(parents=True, exist_ok=True)
    result = localize_networks(
        ours.network,
        theirs.network,
        _feeds((source, ours), (target, theirs), size, samples),
        work,
        options,
        second_opinion=lambda: None if ours.note else second_opinion(source.model, ours.inputs),
        advance=advance,
    )
    notes = tuple(filter(None, (ours.note, theirs.note)))
    return dataclasses.replace(result, notes=(*result.notes, *notes), samples=samples)


def batch_size(source: Sequence[TensorSpec], target: Sequence[TensorSpec], wanted: int, samples: int) -> int:
    """The batch that both models take: a fixed one where one of them has it.

    Raises:
        DataError: if both have one, and they differ.
    """
    fixed = {spec.shape[0] for spec in (*source, *target) if spec.shape and isinstance(spec.shape[0], int)}
    if len(fixed) > 1 and _batched(source) and _batched(target):
        raise DataError(
            f"the models have fixed batches of {' and '.join(map(str, sorted(fixed)))}; what they compute can't be "
            "compared layer by layer. Export one of them with the other's batch, or an open one."
        )
    if len(fixed) == 1:
        return int(next(iter(fixed)))
    return 1 if fixed else max(1, min(wanted, samples))


def _batched(inputs: Sequence[TensorSpec]) -> bool:
    return len({spec.shape[0] if spec.shape else None for spec in inputs}) == 1


def concrete(subject: Subject, size: int) -> tuple[TensorSpec, ...]:
    """A model's inputs with a batch, and open sizes as the data has them."""
    reader = open_feeds(subject.data, subject.inputs, subject.recipe)
    rows = reader.read(0, 1)
    result = []
    for spec in subject.inputs:
        shape = rows[spec.name].shape[1:] if reader.whole else (size, *rows[spec.name].shape[1:])
        result.append(dataclasses.replace(spec, shape=tuple(int(extent) for extent in shape)))
    return tuple(result)


def _feeds(
    source: tuple[Subject, Opened], target: tuple[Subject, Opened], size: int, samples: int
) -> Iterator[Feeds]:
    sides = [_batches(subject, opened, size, samples) for subject, opened in (source, target)]
    yield from zip(*sides, strict=False)


def _batches(subject: Subject, opened: Opened, size: int, samples: int) -> Iterator[Mapping[str, object]]:
    """Feeds by the graph's tensors, the last batch filled up."""
    reader = open_feeds(subject.data, opened.inputs, subject.recipe)
    reader.count = min(reader.count, samples)
    for batch in batches(reader, opened.inputs, size):
        yield {opened.input_tensors[name]: array for name, array in batch.feeds.items()}
