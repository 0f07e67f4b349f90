"""Keep for reports what both sides have at layers at fault and at outputs: little, and made of what is there."""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.faces.region import Region
from conrepair.diagnosis.localization.faces.steps.readings import paired_nodes
from conrepair.diagnosis.localization.judge.agreement import AnswerPairs
from conrepair.diagnosis.localization.located import Guilty
from conrepair.diagnosis.localization.run.kept import Element, Histogram, KeptLayer, KeptParameter, Picture
from conrepair.diagnosis.localization.run.scatter import scatter_of
from conrepair.ground.graph.channels import channel_axis
from conrepair.ground.graph.layer_graph import Array, LayerGraph
from conrepair.verdicts.evaluate.whole_numbers import are_texts

_LAYERS = 8
_OUTPUTS = 2
_PICTURES = 8  # for each layer
_POINTS = 48  # of a picture, in either direction
_WORST = 20
_BINS = 48
_PARAMETERS = 8
_COUNTED = 1 << 20  # values that a histogram is made of
_LEVELS = 127
_ODD = -128
_DIGITS = 7

Values = npt.NDArray[np.floating]


def kept_layers(
    source: LayerGraph, guilty: Sequence[Guilty], pairs: Sequence[Pair], answers: AnswerPairs
) -> tuple[KeptLayer, ...]:
    """Keep the guiltiest layers, and outputs that are none of them; of texts there's nothing to show.

    Args:
        source: The graph that is right.
        guilty: Pieces of the target, with what both sides have at their ends.
        pairs: All that were measured, the outputs among them.
        answers: What both gave for the first batch.
    """
    worst = sorted(guilty, key=lambda piece: -piece.judged.introduced)[:_LAYERS]
    kept = []
    for piece in worst:
        region, pair = piece.region, piece.judged.cut.pair
        if are_texts(region.expected, region.computed):
            continue
        axis = channel_axis(source, pair.source, region.expected.ndim)
        layer = kept_layer(pair, region.expected, region.computed, axis=axis)
        kept.append(dataclasses.replace(layer, parameters=tuple(_parameters(region))))
    known = {piece.judged.cut.pair for piece in worst}
    others = [pair for pair in pairs if pair not in known]
    outputs = [(pair, *arrays) for pair in others if (arrays := answers.first(pair.source, pair.target))]
    for pair, expected, given in outputs[:_OUTPUTS]:
        if are_texts(expected, given):
            continue
        computed = pair.layout.to_source(given) if given.size == expected.size else given
        axis = channel_axis(source, pair.source, expected.ndim)
        kept.append(kept_layer(pair, expected, computed, axis=axis, full_run=True))
    return tuple(kept)


def kept_layer(pair: Pair, expected: Array, computed: Array, *, axis: int, full_run: bool = False) -> KeptLayer:
    """Keep a pair of tensors.

    Args:
        pair: Their names.
        expected: What the source has.
        computed: What the target has, in the source's layout where it has the source's size.
        axis: Which one has the channels, where there are samples, channels and more.
        full_run: Whether both ran from their inputs on.
    """
    one, two = _real(expected), _real(computed)
    with np.errstate(all="ignore"):  # numbers that are none are shown as such
        kept = KeptLayer(
            source_tensor=pair.source,
            target_tensor=pair.target,
            full_run=full_run,
            dtype=str(expected.dtype),
            target_dtype=str(computed.dtype),
            shape=tuple(expected.shape),
            target_shape=tuple(computed.shape),
            values=_histogram(one, two),
        )
        if one.shape != two.shape or not one.size:
            return kept
        return _compared(kept, one, two, axis)


def _compared(kept: KeptLayer, one: Values, two: Values, axis: int) -> KeptLayer:
    """With elements, and pictures: of the sample that differs most where a sample has more than one axis."""
    difference = _difference(one, two)
    worst = _worst(one, two, difference)
    sides, has_channels = [one, difference], one.ndim >= 4
    sample = int(np.argmax(_mean_squares(difference))) if one.ndim > 2 else None
    if sample is not None:
        sides = [side[sample] for side in sides]
    channels = [np.moveaxis(side, axis - 1, 0) if has_channels else side[None] for side in sides]
    errors = np.sqrt(_mean_squares(channels[1]))
    chosen = np.argsort(-errors, kind="stable")[:_PICTURES]
    maps = [_shrunk(*(_flat(side[place]) for side in channels)) for place in chosen]
    scales = _largest([values for values, _ in maps]), _largest([more for _, more in maps])
    pictures = [
        Picture(
            channel=int(place) if has_channels else None,
            error=_short(errors[place]),
            height=values.shape[0],
            width=values.shape[1],
            source=_points(values, scales[0]),
            difference=_points(more, scales[1]),
        )
        for place, (values, more) in zip(chosen, maps, strict=True)
    ]
    return dataclasses.replace(
        kept,
        sample=sample,
        scale=scales[0],
        difference_scale=scales[1],
        pictures=tuple(pictures),
        worst=worst,
        scatter=scatter_of(one, two),
    )


def _real(array: Array) -> Values:
    short = array.dtype.kind == "f" and array.dtype.itemsize <= np.dtype(np.float32).itemsize
    return np.asarray(array, np.float32 if short else np.float64)


def _difference(one: Values, two: Values) -> Values:
    """What the second has more; infinite where only one of them is a number."""
    difference = two - one
    odd = ~np.isfinite(difference)
    if odd.any():
        same = odd & ((one == two) | (np.isnan(one) & np.isnan(two)))
        difference[odd] = np.inf
        difference[same] = 0
    return difference


def _worst(one: Values, two: Values, difference: Values) -> tuple[Element, ...]:
    sizes = np.abs(difference).reshape(-1)
    count = min(_WORST, sizes.size)
    places = np.argpartition(sizes, sizes.size - count)[-count:]
    places = places[np.lexsort((places, -sizes[places]))]
    return tuple(
        Element(
            index=tuple(map(int, np.unravel_index(place, one.shape))),
            source=_short(one.reshape(-1)[place]),
            target=_short(two.reshape(-1)[place]),
        )
        for place in places[sizes[places] > 0]
    )


def _mean_squares(array: Values) -> Values:
    """Of each entry of the first axis."""
    rows = np.ascontiguousarray(array).reshape(len(array), -1)
    return np.asarray(np.einsum("ij,ij->i", rows, rows) / rows.shape[1])


def _flat(array: Values) -> Values:
    """With two axes: all but the last as rows."""
    return array.reshape(-1, array.shape[-1] if array.ndim else 1)


def _shrunk(values: Values, difference: Values) -> tuple[Values, Values]:
    """Blocks as points: of each the element that differs most."""
    high, wide = (math.ceil(size / _POINTS) for size in values.shape)
    rows, columns = math.ceil(values.shape[0] / high), math.ceil(values.shape[1] / wide)
    margins = (0, rows * high - values.shape[0]), (0, columns * wide - values.shape[1])

    def blocks(array: Values, beyond: float) -> Values:
        padded = np.pad(array, margins, constant_values=beyond).reshape(rows, high, columns, wide)
        return padded.transpose(0, 2, 1, 3).reshape(rows, columns, high * wide)

    places = np.argmax(blocks(np.abs(difference), -1), axis=-1)[..., None]
    taken = (np.take_along_axis(blocks(array, 0), places, axis=-1)[..., 0] for array in (values, difference))
    return next(taken), next(taken)


def _largest(arrays: Sequence[Values]) -> float:
    return _short(max(np.abs(array, where=np.isfinite(array), out=np.zeros_like(array)).max() for array in arrays))


def _points(array: Values, scale: float) -> str:
    levels = np.rint(np.clip(array / (scale or 1.0), -1, 1) * _LEVELS)
    return base64.b64encode(np.where(np.isfinite(array), levels, _ODD).astype(np.int8).tobytes()).decode()


def _histogram(one: Values, two: Values) -> Histogram:
    sides = [flat[:: math.ceil(flat.size / _COUNTED) | 1] for flat in (one.reshape(-1), two.reshape(-1))]
    finite = [side[np.isfinite(side)] for side in sides]
    low = min((float(side.min()) for side in finite if side.size), default=0.0)
    high = max((float(side.max()) for side in finite if side.size), default=0.0)
    width = (high - low) / _BINS or 1.0
    places = [np.clip((side - low) / width, 0, _BINS - 1).astype(np.intp) for side in finite]
    source, target = (tuple(np.bincount(side, minlength=_BINS).tolist()) for side in places)
    odd = [len(side) - len(numbers) for side, numbers in zip(sides, finite, strict=True)]
    return Histogram(low=_short(low), high=_short(high), source=source, target=target, odd=(odd[0], odd[1]))


def _parameters(region: Region) -> Iterator[KeptParameter]:
    """Of operators that are the same on both sides; those that differ first, otherwise in order."""
    found = []
    for ours, theirs in paired_nodes(region.source, region.target):
        for role in [role for role in ours.parameters if role in theirs.parameters and ours.op == theirs.op]:
            parameters = ours.parameters[role], theirs.parameters[role]
            one, two = (parameter.numpy() for parameter in parameters)
            if all(array.dtype.kind in "fiub" and array.size for array in (one, two)):
                found.append((np.array_equal(one, two), role, ours.name, theirs.name, parameters))
    for _, role, source, target, parameters in sorted(found, key=lambda item: item[0])[:_PARAMETERS]:
        values = _histogram(*(_real(parameter.numpy()) for parameter in parameters))
        yield KeptParameter(role=role, source_node=source, target_node=target, values=values)


def _short(value: float | np.floating) -> float:
    return float(f"{value:.{_DIGITS}g}")
