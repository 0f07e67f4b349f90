"""The statistics of suspicion between two opened networks: run both on all data, draw inputs, look at the layers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.align.alignment import Alignment
from conrepair.diagnosis.localization.align.layout import Layout
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.align.outputs import partners
from conrepair.diagnosis.localization.align.weights import weight_of
from conrepair.diagnosis.localization.ranking.suspicion_draws import SuspicionSettings, draw_inputs
from conrepair.diagnosis.localization.ranking.suspiciousness import LayerDifferences, Suspiciousness, rank_layers
from conrepair.diagnosis.localization.run.opening import OpenedNetwork, WholeRun
from conrepair.diagnosis.localization.run.pieces import Pieces, packed
from conrepair.ground.data.feeds import Batch, Chosen, FeedSource, batches
from conrepair.ground.graph.layer_graph import Array, Node
from conrepair.verdicts.evaluate.answers import as_scores

Flags = npt.NDArray[np.bool_]


def _differ(one: Array, two: Array, layout: Layout | None, tolerance: float) -> Flags | None:
    scores = as_scores(one), as_scores(two)
    if scores[0] is not None and scores[1] is not None:
        return np.asarray(scores[0].argmax(axis=1) != scores[1].argmax(axis=1))
    if layout is not None and layout.target == two.shape:
        two = layout.to_source(two)
    if one.shape != two.shape or not one.ndim:
        return None
    left, right = (array.reshape(len(array), -1) for array in (one, two))
    if left.dtype.kind in "iub" and right.dtype.kind in "iub":
        return np.asarray((left != right).any(axis=1))
    left, right = left.astype(np.float64), right.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.linalg.norm(right - left, axis=1)
        # NaN is a disagreement too, so the comparison is turned round.
        return np.asarray(~(errors <= tolerance * np.linalg.norm(left, axis=1)))


_KEPT = 512 << 20  # bytes of differences at a time; more layers than that take another run


@dataclass(frozen=True)
class Observed:
    """A network and all that it's fed.

    Attributes:
        opened: The network.
        reader: The dataset, fitted to it.
        size: Of its batches.
    """

    opened: OpenedNetwork
    reader: FeedSource
    size: int

    def batches(self, chosen: Sequence[int] | None = None) -> Iterator[Batch]:
        """All samples, or some of them."""
        reader = self.reader if chosen is None else Chosen(self.reader, chosen)
        yield from batches(reader, self.opened.inputs, self.size)


def suspicious_layers(
    source: Observed, target: Observed, alignment: Alignment, settings: SuspicionSettings, tolerance: float
) -> Suspiciousness:
    """Rank the layers by how much more they differ where the models disagree.

    Both models run on all data once; layers are then compared on the inputs that were drawn, each model having run
    from its inputs on, some layers at a time.

    Args:
        source: The network that is right.
        target: The network in question.
        alignment: Which tensors stand for one another.
        settings: Sizes of the samples, repetitions, seed.
        tolerance: Relative L2 up to which answers that are no class scores agree.
    """
    flags = _flags(source, target, alignment, tolerance)
    if flags is None:
        shortage = "layers are not ranked: the models have no outputs that can be compared."
        return Suspiciousness((), (), 0, 0, settings, shortage)
    draws = draw_inputs(flags, settings)
    return rank_layers(_differences(source, target, alignment, draws.inputs), draws, settings)


def _flags(source: Observed, target: Observed, alignment: Alignment, tolerance: float) -> Flags | None:
    """Whether the models disagree on each sample, on any output; None when no output can be compared.

    Where an output is class scores, the best class counts; where it's whole numbers, all of them; otherwise the
    relative error of each sample.
    """
    networks = source.opened.network, target.opened.network
    names = partners(*networks, {pair.target: pair.source for pair in alignment.pairs})
    known = {(pair.source, pair.target): pair.layout for pair in (*alignment.pairs, *alignment.outputs)}
    layouts = [known.get((networks[0].output_names[one], networks[1].output_names[two])) for one, two in names]
    runs = WholeRun(source.opened), WholeRun(target.opened)
    found: list[Flags] = []
    for ours, theirs in zip(source.batches(), target.batches(), strict=False):
        outputs = [runs[0](ours.feeds), runs[1](theirs.feeds)]
        if not source.reader.axes:  # a sample is a complete run, and its outputs have no axis of samples
            outputs = [{name: array[None] for name, array in side.items()} for side in outputs]
        pairs = [(outputs[0][one], outputs[1][two]) for one, two in names]
        flags = [_differ(*pair, layout, tolerance) for pair, layout in zip(pairs, layouts, strict=True)]
        told = [item for item in flags if item is not None]
        if not told:
            return None
        found.append(np.logical_or.reduce(told)[: ours.valid])
    return np.concatenate(found)


def _differences(
    source: Observed, target: Observed, alignment: Alignment, chosen: Sequence[int]
) -> Iterator[LayerDifferences]:
    """Of all pairs that something computes, in the target's order."""
    inputs = set(source.opened.network.graph.inputs), set(target.opened.network.graph.inputs)
    pairs = [
        pair
        for pair in alignment.pairs
        if pair.source not in inputs[0]
        and pair.target not in inputs[1]
        and (not source.reader.axes or (pair.layout.source and pair.layout.source[0] == source.size))
    ]
    shapes = (pair.layout.source[1 if source.reader.axes else 0 :] for pair in pairs)
    sizes = [len(chosen) * math.prod(shape) * np.dtype(np.float32).itemsize for shape in shapes]
    for group in packed(zip(pairs, sizes, strict=True), _KEPT):
        captured = _captured(source, target, group, chosen)
        for pair in group:
            yield _described(source.opened, target.opened, pair, captured.pop(pair.target))


def _captured(source: Observed, target: Observed, pairs: Sequence[Pair], chosen: Sequence[int]) -> dict[str, Array]:
    """Differences [samples, ...] in the source's layout, by the target's tensors."""
    found: dict[str, list[Array]] = {pair.target: [] for pair in pairs}
    sides = (source, [pair.source for pair in pairs]), (target, [pair.target for pair in pairs])
    pieces = [Pieces.in_a_row(side.opened.network, list(dict.fromkeys(names)), keep=True) for side, names in sides]
    for ours, theirs in zip(source.batches(chosen), target.batches(chosen), strict=True):
        values = _run(source, pieces[0], ours)
        others = _run(target, pieces[1], theirs)
        for pair in pairs:
            difference = pair.layout.to_source(others[pair.target]) - values[pair.source]
            rows = difference[None] if not source.reader.axes else difference[: ours.valid]
            found[pair.target].append(np.asarray(rows, np.float32))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _run(side: Observed, pieces: Pieces, batch: Batch) -> dict[str, Array]:
    return pieces.values({side.opened.input_tensors[name]: array for name, array in batch.feeds.items()})


def _described(source: OpenedNetwork, target: OpenedNetwork, pair: Pair, differences: Array) -> LayerDifferences:
    ours, theirs = source.network.graph, target.network.graph
    layers = ours.layer_of(pair.source), theirs.layer_of(pair.target)
    apart = _weights_apart(ours.producers.get(pair.source), theirs.producers.get(pair.target))
    return LayerDifferences(*layers, differences, pair.layout.source[1:], pair.layout.target[1:], apart)


def _weights_apart(ours: Node | None, theirs: Node | None) -> float | None:
    """Mean absolute difference of the weights; None where one has none, or others."""
    one, two = (None if node is None else weight_of(node) for node in (ours, theirs))
    if one is None or two is None or one.shape != two.shape:
        return None
    return float(np.abs(np.asarray(two.numpy(), np.float64) - one.numpy()).mean())
