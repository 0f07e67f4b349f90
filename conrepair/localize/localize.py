"""Localize: align, isolate, judge, diagnose."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from conrepair.evaluate.verdict import Verdict
from conrepair.graph.layer_graph import Array
from conrepair.localize.alignment import Alignment, align
from conrepair.localize.diagnosis.diagnose import diagnose
from conrepair.localize.diagnosis.region import region_of
from conrepair.localize.isolation import Isolation
from conrepair.localize.judgement import Judged, judge_cut
from conrepair.localize.matching import Pair
from conrepair.localize.measurement import Cut, Feeds, measure
from conrepair.localize.pieces import Pieces
from conrepair.localize.result import LayerRow, Localization, LocatedFault
from conrepair.localize.shelf import Shelf
from conrepair.networks.network import Network

__all__ = ["localize_networks"]

from conrepair.localize.merging import merge
from conrepair.localize.options import Options


def localize_networks(
    source: Network,
    target: Network,
    batches: Sequence[Feeds] | Iterable[Feeds],
    folder: Path,
    options: Options,
    *,
    second_opinion: Callable[[], Network | None] = lambda: None,
    advance: Callable[[str], None] = lambda _: None,
) -> Localization:
    """Say where a target stops being its source.

    Args:
        source: The network that is right.
        target: The network in question.
        batches: Inputs of both, by the names of their graphs' tensors; read once.
        folder: For activations; the caller removes it.
        options: Margins.
        second_opinion: Opens the source in another arithmetic.
        advance: Called with what is being done.
    """
    seconds: dict[str, float] = {}
    iterator = iter(batches)
    first = next(iterator)
    clock = _Clock(seconds)
    advance("aligning")
    alignment = align(source, target, first, folder)
    clock("align")
    advance("isolating")
    count = 0

    def all_batches() -> Iterator[Feeds]:
        nonlocal count
        for batch in _chain(first, iterator):
            count += len(next(iter(batch[0].values()))) if batch[0] else 1
            yield batch

    cuts = measure(
        source,
        target,
        alignment.pairs,
        all_batches(),
        folder,
        outputs=alignment.outputs,
        second_opinion=second_opinion,
    )
    clock("isolate")
    judged = _judge(source, target, alignment, cuts, options)
    advance("diagnosing")
    faults = _diagnose(source, target, alignment, judged, first, folder)
    clock("diagnose")
    return _result(source, target, alignment, judged, faults, count, options, seconds)


class _Clock:
    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds, self._last = seconds, time.perf_counter()

    def __call__(self, name: str) -> None:
        now = time.perf_counter()
        self._seconds[name], self._last = round(now - self._last, 3), now


def _chain(first: Feeds, rest: Iterator[Feeds]) -> Iterator[Feeds]:
    yield first
    yield from rest


def _judge(
    source: Network, target: Network, alignment: Alignment, cuts: Sequence[Cut], options: Options
) -> list[Judged]:
    ends = {pair.target for pair in alignment.pairs} | set(target.graph.inputs)
    return [
        judge_cut(
            cut,
            operators=len(target.graph.between(sorted(ends), [cut.pair.target])) or 1,
            precision=options.precision,
            margin=options.noise_margin,
        )
        for cut in cuts
    ]


def _diagnose(
    source: Network,
    target: Network,
    alignment: Alignment,
    judged: Sequence[Judged],
    feeds: Feeds,
    folder: Path,
) -> list[LocatedFault]:
    guilty = [item for item in judged if item.guilty]
    if not guilty:
        return []
    pairs = list(alignment.pairs)
    shelf = Shelf(_fresh(folder, "diagnosed"))
    for name, array in feeds[0].items():
        shelf.put(name, array)
    wanted = dict.fromkeys(pair.source for pair in [*pairs, *alignment.outputs])
    inputs = set(source.graph.inputs)
    for name, array in Pieces.in_a_row(source, [name for name in wanted if name not in inputs]).run(
        shelf.__getitem__
    ):
        shelf.put(name, array)
    ends = {item.cut.pair.target: item for item in guilty}
    computed = dict(Isolation(target, pairs, list(ends)).run(shelf.__getitem__, feeds[1]))
    faults = []
    for item in guilty:
        pair = item.cut.pair
        found = _fit(computed[pair.target], pair)
        region = region_of((source.graph, target.graph), pairs, pair, shelf[pair.source], found, _Lazy(shelf))
        faults.append(diagnose(region, item))
    return merge(faults)


class _Lazy(dict[str, Array]):
    """A shelf as a mapping."""

    def __init__(self, shelf: Shelf) -> None:
        super().__init__()
        self._shelf = shelf

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._shelf

    def __getitem__(self, name: str) -> Array:
        return self._shelf[name]


def _fit(array: Array, pair: Pair) -> Array:
    size = 1
    for extent in pair.layout.source:
        size *= extent
    return pair.layout.to_source(array) if array.size == size else array


def _result(
    source: Network,
    target: Network,
    alignment: Alignment,
    judged: Sequence[Judged],
    faults: Sequence[LocatedFault],
    samples: int,
    options: Options,
    seconds: dict[str, float],
) -> Localization:
    ends = {target.output_names[name] for name in target.output_names}
    outputs = [item.cut.full.relative_l2 for item in judged if item.cut.pair.target in ends]
    worst = max(outputs, default=0.0)
    verdict, reason = _verdict(faults, worst, options)
    return Localization(
        verdict,
        reason,
        tuple(faults),
        tuple(_row(source, target, item) for item in judged),
        _layers_of(source, alignment.unpaired_sources),
        _layers_of(target, alignment.unpaired_targets),
        samples,
        worst,
        (),
        options,
        seconds,
    )


def _verdict(faults: Sequence[LocatedFault], worst: float, options: Options) -> tuple[Verdict, str]:
    if faults:
        first = faults[0]
        where = f"`{(first.target_layers or first.source_layers or ('?',))[0]}`"
        more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        return Verdict.FAULTY, f"{where} introduces a relative error of {first.introduced_error:.2g}{more}"
    if worst <= options.equivalent:
        return Verdict.EQUIVALENT, f"every layer is within its noise floor, outputs differ by {worst:.1e}"
    return (
        Verdict.NOISE,
        f"accumulated rounding, no single culprit: outputs differ by {worst:.1e}, "
        "every layer is within its noise floor",
    )


def _row(source: Network, target: Network, item: Judged) -> LayerRow:
    pair = item.cut.pair
    ours, theirs = source.graph.producers.get(pair.source), target.graph.producers.get(pair.target)
    introduced, full = item.cut.introduced, item.cut.full
    return LayerRow(
        pair.source,
        pair.target,
        pair.source if ours is None else ours.layer,
        pair.target if theirs is None else theirs.layer,
        "" if ours is None else ours.native,
        "" if theirs is None else theirs.native,
        introduced.relative_l2,
        introduced.cosine,
        introduced.max_abs,
        full.relative_l2,
        full.cosine,
        full.norm_ratio,
        item.floor,
        item.inherited,
        introduced.mismatched,
        str(pair.layout),
        pair.confidence,
        item.guilty,
        source.graph.order[pair.source],
    )


def _layers_of(network: Network, tensors: Sequence[str]) -> tuple[str, ...]:
    producers = network.graph.producers
    return tuple(dict.fromkeys(producers[name].layer for name in tensors if name in producers))


def _fresh(folder: Path, name: str) -> Path:
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    return path
