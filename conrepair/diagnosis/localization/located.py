"""From guilty cuts, and outputs that couldn't be judged, to faults."""

from __future__ import annotations

import functools
import math
import operator
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from conrepair.diagnosis.localization.align.alignment import Alignment
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.align.outputs import partners
from conrepair.diagnosis.localization.faces.diagnose import Diagnosis, diagnose_each
from conrepair.diagnosis.localization.faces.region import Region, region_of
from conrepair.diagnosis.localization.judge.answers import Answer, exchanged_outputs, explained, misfits
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.judge.tensor_order import explain_input_order
from conrepair.diagnosis.localization.numbers import judging
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.diagnosis.localization.run.activations import Activations, Isolation
from conrepair.diagnosis.localization.run.pieces import Pieces
from conrepair.formats.networks.network import Network
from conrepair.ground.data.feeds import Feeds as NamedFeeds
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, LayerGraph
from conrepair.ground.runtime.words import percent

_MOST_ORDERS = 30  # of inputs, that the target is run with


# One fault for all regions that one cause makes guilty: what reads a lost tensor, all results of one layer.


def merge(faults: Sequence[tuple[LocatedFault, str]], apart: Collection[str] = ()) -> list[LocatedFault]:
    """Merge faults of the same kind and cause, that accuse the same layer first, or that differ at the same tensor.

    Args:
        faults: Each with its cause.
        apart: Layers that are at fault by themselves, though others are at the same tensor.

    Returns:
        The guiltiest first: by the error that they introduce.
    """
    found = _grouped((fault for fault, _ in faults), [(fault.kind, cause) for fault, cause in faults])
    found = _grouped(found, [(fault.kind, *(fault.target_layers[:1] or fault.source_layers)) for fault in found])
    keys = [(fault.kind, fault.source_tensor, *{*fault.target_layers[:1]}.intersection(apart)) for fault in found]
    return _grouped(found, keys)


def _grouped(faults: Iterable[LocatedFault], keys: Sequence[tuple[str, ...]]) -> list[LocatedFault]:
    groups: dict[tuple[str, ...], list[LocatedFault]] = {}
    for fault, key in zip(faults, keys, strict=True):
        groups.setdefault(key, []).append(fault)
    introduced = operator.attrgetter("introduced_error")
    merged = [_together(sorted(group, key=introduced, reverse=True)) for group in groups.values()]
    return sorted(merged, key=introduced, reverse=True)


def _together(group: Sequence[LocatedFault]) -> LocatedFault:
    first = group[0]
    if len(group) == 1:
        return first
    return replace(
        first,
        source_layers=_union([fault.source_layers for fault in group]),
        target_layers=_union([fault.target_layers for fault in group]),
        full_run_error=max(fault.full_run_error for fault in group),
        confidence=max(fault.confidence for fault in group),
        evidence=_union([fault.evidence for fault in group]),
    )


def _union(groups: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))


# Another training state of the same network: all its numbers are a little off, which is one thing to say.

_WEIGHTS = ("weight", "W")


def _as_one_training(found: Sequence[Diagnosis], target: LayerGraph) -> list[Diagnosis]:
    """Tell of layers whose numbers are all off alike as one fault, so that others are seen beside it.

    Args:
        found: What's wrong, by regions.
        target: The target's graph, which says how many layers have weights.

    Returns:
        The same, where that's so: the others, then the one. It's measured where only the numbers differ.
    """
    usual = statistics.median([item.disturbed for item in found if item.disturbed] or [0.0])
    off = [item for item in found if 0 < item.disturbed <= judging.ALIKE * usual]
    weighted = {node.layer for node in target.nodes if any(role in node.parameters for role in _WEIGHTS)}
    layers = list(dict.fromkeys(item.fault.target_layers[0] for item in off if item.fault.target_layers))
    among = sum(name in weighted for name in layers)
    if among < max(judging.ALIKE_LAYERS, judging.ALIKE_SHARE * len(weighted)):
        return list(found)
    least, most = (bound(item.disturbed for item in off) for bound in (min, max))
    first = max((item for item in off if item.alone), key=lambda item: item.fault.introduced_error, default=off[0])
    size = " to ".join(dict.fromkeys(map(percent, (least, most))))
    words = (
        f"weights of another training state (checkpoint): those of {among} of {len(weighted)} layers "
        f"are off by {size}"
    )
    fault = replace(
        first.fault,
        source_layers=tuple(dict.fromkeys(item.fault.source_layers[0] for item in off)),
        target_layers=tuple(layers),
        evidence=(words, *first.fault.evidence[-1:]),
        differences=(("weights of another training state", layers[0]),),
    )
    return [*(item for item in found if item not in off), replace(first, fault=fault, cause="training")]


@dataclass(frozen=True)
class Guilty:
    """A piece of the target that introduces more than rounding.

    Attributes:
        region: What lies between the cuts, on both sides.
        judged: Its measurement.
    """

    region: Region
    judged: Judged


@dataclass(frozen=True)
class Located:
    """The faults that were found, and the faulty segments.

    Attributes:
        faults: The guiltiest first; one may stand for several pieces that one thing makes guilty.
        guilty: All pieces, in the target's order.
    """

    faults: tuple[LocatedFault, ...] = ()
    guilty: tuple[Guilty, ...] = ()


def located_faults(first: tuple[Activations, Activations], alignment: Alignment, judged: Sequence[Judged]) -> Located:
    """Diagnose what was judged guilty, and outputs that can't be compared.

    Args:
        first: A batch through the network that is right, and through the one in question.
        alignment: Of both.
        judged: All cuts.
    """
    right, given = first
    source, target = right.network, given.network
    guilty = [item for item in judged if item.guilty]
    outputs = list(_outputs(source, target, alignment))
    known = {(pair.source, pair.target): pair for pair in reversed((*alignment.pairs, *alignment.outputs))}
    loose = any((ours, theirs) not in known for _, _, ours, theirs in outputs)
    if not guilty and not loose and len(source.output_names) == len(target.output_names):
        return Located()
    right.compute([*(ours for ours, _ in known), *(ours for _, _, ours, _ in outputs)])
    ends = [item.cut.pair.target for item in guilty] + [theirs for _, _, _, theirs in outputs]
    isolated = Isolation(target, alignment.pairs, list(dict.fromkeys(ends)))
    computed = dict(isolated.run(right.__getitem__, given.feeds))
    answers = [
        Answer(one, two, ours, theirs, right[ours], _fit(computed[theirs], known.get((ours, theirs))))
        for one, two, ours, theirs in outputs
    ]
    graphs, constants = (source.graph, target.graph), right.constants()
    fed = functools.partial(isolated.fed, right.__getitem__, given.feeds)

    def value(name: str) -> Array:
        right.compute([name])
        return right[name]

    def piece_of(item: Judged) -> Guilty:
        pair = item.cut.pair
        values = right[pair.source], _fit(computed[pair.target], pair)
        return Guilty(region_of(graphs, alignment.cuts, pair, *values, fed, constants, isolated.trial, value), item)

    pieces = list(map(piece_of, guilty))
    each = [item for piece in pieces for item in _diagnosed(piece)]
    layers = [item.fault.target_layers[0] for item in each if not item.alone]
    faults = merge([(item.fault, item.cause) for item in _as_one_training(each, target.graph)], layers)
    faults = exchanged_outputs(faults, answers)
    faults = _with_exchanged_inputs(target, faults, answers, given.feeds)
    found = [*misfits(source, target, alignment, answers), *faults]
    return Located(tuple(sorted(found, key=lambda fault: -fault.introduced_error)), tuple(pieces))


def _diagnosed(piece: Guilty) -> list[Diagnosis]:
    region, pair = piece.region, piece.judged.cut.pair
    found = diagnose_each(region, piece.judged)
    if pair.target in region.target.graph.outputs and pair.source in region.source.graph.outputs:
        return [replace(item, fault=explained(item.fault, region.expected, region.computed)) for item in found]
    return found


def _outputs(source: Network, target: Network, alignment: Alignment) -> Iterator[tuple[str, str, str, str]]:
    """Outputs of both that are computed: names and tensors."""
    for one, two in partners(source, target, {pair.target: pair.source for pair in alignment.pairs}):
        ours, theirs = source.output_names[one], target.output_names[two]
        if ours not in source.graph.inputs and theirs not in target.graph.inputs:
            yield one, two, ours, theirs


def _fit(array: Array, pair: Pair | None) -> Array:
    """In the source's layout where that's known."""
    if pair is None or array.size != math.prod(pair.layout.source):
        return array
    return pair.layout.to_source(array)


def exchanged_behind(ends: Sequence[Pair], faults: Sequence[LocatedFault]) -> Iterator[str]:
    """Say where all behind changed weights stands with axes exchanged, and fits.

    Args:
        ends: Of the guilty pieces, in the target's order.
        faults: Of all of them.
    """
    changed = {fault.target_tensor for fault in faults if fault.kind is Kind.PARAMETERS}
    for pair in ends:
        if pair.target in changed and pair.layout.exchanges:
            yield (
                f"from `{pair.target}` on all tensors have their axes exchanged ({pair.layout}), and layers there "
                "are right with that. Put one Transpose in; other weights in front of it aren't enough"
            )
            return


def _with_exchanged_inputs(
    target: Network, faults: Sequence[LocatedFault], answers: Sequence[Answer], feeds: Mapping[str, Array]
) -> list[LocatedFault]:
    """Find out whether all is right once inputs are exchanged, and say so.

    Args:
        target: The network in question.
        faults: The guiltiest first.
        answers: All outputs of both.
        feeds: One batch for the target, by its graph's tensors.

    Returns:
        The same faults where no exchange explains them all; those of the kind `input` with that evidence, or one such
        fault in place of all.
    """
    tensors = target.graph.tensors
    specs = [TensorSpec(name, array.shape, tensors[name].dtype) for name, array in feeds.items()]
    alike = Counter((spec.shape, spec.dtype) for spec in specs)
    if not faults or not answers or max(alike.values(), default=0) < 2:
        return list(faults)
    ends = {answer.target: answer.target_tensor for answer in answers}
    whole = Pieces.in_a_row(target, list(dict.fromkeys(ends.values())), keep=True)

    def run(given: NamedFeeds) -> dict[str, Array]:
        values = whole.values(given)
        return {name: values[tensor] for name, tensor in ends.items()}

    expected = {answer.target: answer.expected for answer in answers}
    order = explain_input_order(run, dict(feeds), specs, expected, most_runs=_MOST_ORDERS)
    if order is None:
        return list(faults)
    given_to, words = order
    moved = tuple(name for name, given in given_to.items() if name != given)
    own = next((fault for fault in faults if fault.kind == Kind.INPUT), None)
    first = own or faults[0]
    told = replace(
        first,
        kind=Kind.INPUT,
        target_layers=tuple(dict.fromkeys((*first.target_layers, *moved) if own else (*moved, *first.target_layers))),
        confidence=first.confidence if own else 1.0,
        evidence=(words, *first.evidence),
        at_input=True,
    )
    return [told if fault is own else fault for fault in faults] if own else [told]
