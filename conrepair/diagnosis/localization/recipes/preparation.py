"""Inputs that a target is fed otherwise than its source: is that meant, or is it what's wrong?

A target that has the normalization inside is rightly fed with other numbers. One whose layers are right only when
they get the source's numbers is prepared wrongly, and no layer of it is at fault.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from conrepair.diagnosis.localization.align.alignment import Alignment, align
from conrepair.diagnosis.localization.align.layout import Layout, layouts
from conrepair.diagnosis.localization.align.matching import Pair, feeding_of
from conrepair.diagnosis.localization.align.outputs import named_alike
from conrepair.diagnosis.localization.numbers import pairing, preparing
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.recipes.input_relation import explain_inputs
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.diagnosis.localization.run.activations import Activations, Isolation, as_stored
from conrepair.diagnosis.localization.run.measurement import Feeds
from conrepair.formats.networks.network import Network
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.metrics.running_error import relative_l2
from conrepair.ground.runtime.errors import InferenceError
from conrepair.ground.runtime.words import percent

# How an input of the target differs from the source's, in words.


def _in_words(pair: Pair, feeds: Feeds) -> tuple[Kind, str]:
    """What was done to an input, and which kind of fault that is.

    Args:
        pair: The input, in the layout that the target should be fed by.
        feeds: One batch for each network.
    """
    expected, given = feeds[0][pair.source], pair.layout.to_source(feeds[1][pair.target])
    error = relative_l2(expected, given)
    relation = explain_inputs(expected, given, tolerance=preparing.EXPLAINED)
    if relation is not None and relation.is_identity:
        return Kind.PREPROCESSING, (
            f"the input `{pair.target}` is nearly that of the original, `{pair.source}` (relative error "
            f"{percent(error)}): constants are rounded in another way, or pictures are decoded by another library"
        )
    if relation is None:
        alike = correlation(expected, given)
        likely = ". Another way of resizing or cropping is likely" if alike > preparing.PICTURE else ""
        return Kind.PREPROCESSING, (
            f"the input `{pair.target}` isn't that of the original, `{pair.source}` (relative error "
            f"{percent(error)}, correlation {alike:.2f}), and no formula makes one from the other{likely}"
        )
    kind = Kind.INPUT if relation.arranged.words else Kind.PREPROCESSING
    words = f"`{pair.target}`: {relation.evidence}"
    if np.array_equal(feeds[0][pair.source], feeds[1][pair.target]):
        words = f"a Transpose is missing behind `{pair.target}`, which gets the original's input without it: {words}"
    return kind, words


def correlation(one: Array, two: Array) -> float:
    """Of the values; 0 where it means nothing."""
    left, right = (np.asarray(array, np.float64).reshape(-1) for array in (one, two))
    left, right = left - left.mean(), right - right.mean()
    scale = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(left @ right) / scale if scale and math.isfinite(scale) else 0.0


_TRIED = 3  # layouts of an input


@dataclass(frozen=True)
class Prepared:
    """An alignment, and what it says of the inputs.

    Attributes:
        alignment: Of both networks; inputs that are meant to be other numbers are no pairs of it.
        faults: Inputs that are prepared wrongly.
        notes: Inputs of which nothing can be said.
    """

    alignment: Alignment
    faults: tuple[LocatedFault, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Different:
    """An input that differs."""

    pair: Pair
    layouts: tuple[Layout, ...]
    error: float
    allowed: float


def align_with_inputs(source: Activations, target: Activations, folder: Path, options: Options) -> Prepared:
    """Align two networks whose inputs may have been prepared in two ways.

    Args:
        source: One batch through the network that is right.
        target: The same batch through the network in question.
        folder: For activations; the caller removes it.
        options: Margins.
    """
    alignment = align(source, target, folder, quantized=options.quantized)
    different = _different(source, target, options)
    if not different:
        return Prepared(alignment)
    names = {item.pair.target for item in different}
    own = replace(
        alignment, pairs=tuple(pair for pair in alignment.pairs if _means_itself(pair, names, source.network))
    )
    with_own = _error_behind(source, target, own, names)
    if with_own <= max(item.allowed for item in different):
        return Prepared(own)
    found, with_sources = own, math.inf
    for place in range(min(_TRIED, max(len(item.layouts) for item in different))):
        given = [item.layouts[min(place, len(item.layouts) - 1)] for item in different]
        pairs = [replace(item.pair, layout=layout) for item, layout in zip(different, given, strict=True)]
        try:
            again = _aligned_as_source(
                source, target, folder / f"prepared-{place}", pairs, quantized=options.quantized
            )
            error = _error_behind(source, target, again, names)
        except InferenceError:  # the target can't be fed so
            continue
        if error < with_sources:
            found, with_sources = again, error
        if with_sources <= pairing.EQUAL:
            break
    return _decided((source.feeds, target.feeds), different, (alignment, found), (with_own, with_sources))


def _decided(
    feeds: Feeds,
    different: Sequence[_Different],
    alignments: tuple[Alignment, Alignment],
    errors: tuple[float, float],
) -> Prepared:
    """Which of the two feeds makes the layers behind the inputs right."""
    own, found = alignments
    with_own, with_sources = errors
    certain = with_sources <= pairing.EQUAL and with_own > preparing.BETTER * with_sources
    if not certain and not with_sources <= preparing.MAYBE * with_own:
        words = (
            "the first layers are wrong with the inputs of either model: can't tell whether preprocessing is, too ("
        )
        better = found if _proven(found) >= _proven(own) else own
        return Prepared(better, (), tuple(words + _in_words(item.pair, feeds)[1] + ")" for item in different))
    layout_of = {pair.target: pair.layout for pair in found.pairs}
    faults = []
    for item in different:
        pair = replace(item.pair, layout=layout_of.get(item.pair.target, item.pair.layout))
        kind, words = _in_words(pair, feeds)
        behind = (
            f"fed with the original's input, the first layers are right (relative error {percent(with_sources)}); "
            f"with the converted model's own they are wrong ({percent(with_own)})"
        )
        ours, theirs = ((name, (name,)) for name in (pair.source, pair.target))
        fault = LocatedFault.of_error(kind, ours, theirs, (words, behind), item.error)
        confidence = 1.0 if certain else 0.5
        faults.append(replace(fault, noise_floor=item.allowed, confidence=confidence, at_input=True))
    return Prepared(found, tuple(faults))


def _proven(alignment: Alignment) -> int:
    """How many pairs have equal values."""
    return sum(pair.confidence == 1.0 for pair in alignment.pairs)


def _different(source: Activations, target: Activations, options: Options) -> list[_Different]:
    """The inputs, paired by name or place, that aren't the same numbers in the layout that one would expect."""
    result = []
    names = source.network.input_names, target.network.input_names
    for one, two in named_alike(list(names[0]), list(names[1])):
        ours, theirs = names[0][one], names[1][two]
        tensor = target.network.graph.tensors[theirs]
        if not (source.network.graph.tensors[ours].is_real and tensor.is_real) or ours not in source.feeds:
            continue
        expected, given = source.feeds[ours], target.feeds[theirs]
        choices = layouts(expected.shape, given.shape)
        if not choices:
            continue
        error = relative_l2(expected, choices[0].to_source(given))
        allowed = max(options.noise_margin * preparing.ROUNDING, preparing.STORED.get(tensor.dtype, 0.0))
        likely = sorted(choices, key=lambda layout: -correlation(expected, layout.to_source(given)))
        formats = {source.network.channels, target.network.channels}
        readers = {node.op for node in target.network.graph.consumers[theirs]}
        told = options.quantized or len(formats) < 2 or "" in formats or "Transpose" in readers
        if error <= allowed and not told:
            # Sizes don't say in which format's layout the target reads what it's given as it lies: the usual ones.
            choices, likely = choices[1:], list(choices[1:])
            error = max((relative_l2(expected, layout.to_source(given)) for layout in choices), default=0.0)
        if error > allowed:
            ordered = tuple(dict.fromkeys([choices[0], *likely]))
            pair = Pair(ours, theirs, choices[0], 1.0, "inputs of both models")
            result.append(_Different(pair, ordered, error, allowed))
    return result


def _means_itself(pair: Pair, names: set[str], source: Network) -> bool:
    """Not an input that differs and was paired for want of better: that stays what the target is fed."""
    return pair.target not in names or (pair.source not in source.graph.inputs and pair.confidence == 1.0)


def _aligned_as_source(
    source: Activations, target: Activations, folder: Path, inputs: Sequence[Pair], *, quantized: bool
) -> Alignment:
    """The alignment when the target is fed with the source's inputs."""
    given = dict(target.feeds)
    for pair in inputs:
        tensor = target.network.graph.tensors[pair.target]
        given[pair.target] = as_stored(pair.layout.to_target(source.feeds[pair.source]), tensor)
    fed = Activations(target.network, given, folder / "target")
    alignment = align(source, fed, folder, quantized=quantized)
    forced = {pair.target for pair in inputs}
    rest = [pair for pair in alignment.pairs if pair.target not in forced]
    return replace(alignment, pairs=(*inputs, *rest))


def _error_behind(source: Activations, target: Activations, alignment: Alignment, names: set[str]) -> float:
    """What the first cuts behind some inputs differ by: the middle one of them; infinite where nothing was paired."""
    cuts = [*alignment.pairs, *alignment.outputs]
    graph = target.network.graph
    feeding = feeding_of(graph, alignment.pairs)
    first = [pair for pair in cuts if names.intersection(feeding.get(pair.target, ()))]
    if not first:
        return math.inf
    source.compute([pair.source for pair in cuts])
    by_target = {pair.target: pair for pair in first}
    isolated = Isolation(target.network, alignment.pairs, list(by_target))
    errors = [
        relative_l2(source[by_target[name].source], by_target[name].layout.to_source(array))
        for name, array in isolated.run(source.__getitem__, target.feeds)
        if array.size == source[by_target[name].source].size
    ]
    return statistics.median(errors) if errors else math.inf
