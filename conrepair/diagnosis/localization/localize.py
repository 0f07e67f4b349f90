"""Find the faulty layers: align two networks, isolate segments, judge and diagnose them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conrepair.diagnosis.localization.align.alignment import Alignment
from conrepair.diagnosis.localization.align.matching import known_of, readers_of
from conrepair.diagnosis.localization.judge.agreement import AnswerPairs
from conrepair.diagnosis.localization.judge.answers import with_changed_face
from conrepair.diagnosis.localization.judge.conclusion import localization
from conrepair.diagnosis.localization.judge.doubtful import with_other_layers
from conrepair.diagnosis.localization.judge.hidden import explain_outputs
from conrepair.diagnosis.localization.judge.judgement import Judged, acquit_explained, acquit_unread_bodies, judge_cut
from conrepair.diagnosis.localization.judge.latent import Latent, latent_faults
from conrepair.diagnosis.localization.judge.quantization import QuantizationErrors, ranges_of
from conrepair.diagnosis.localization.judge.quantization_notes import quantization_notes
from conrepair.diagnosis.localization.judge.saturation import told_by_drawn, with_overflows, with_saturation
from conrepair.diagnosis.localization.located import Guilty, exchanged_behind, located_faults
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization, LocatedFault
from conrepair.diagnosis.localization.rows import layers_of, rows_of
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.diagnosis.localization.run.compilation import align_compiled, with_compilation
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.localization.run.keeping import kept_layers
from conrepair.diagnosis.localization.run.kept import KeptLayer
from conrepair.diagnosis.localization.run.measurement import Cut, Feeds, measure
from conrepair.diagnosis.localization.run.opening import OpenedNetwork
from conrepair.diagnosis.localization.run.reference import Reference
from conrepair.formats.networks.network import Network
from conrepair.ground.graph.layer_graph import Array, LayerGraph
from conrepair.ground.runtime.shown.heartbeat import far
from conrepair.verdicts.judging.arithmetic import FLOAT32, tried
from conrepair.verdicts.judging.floor import coarser


@dataclass(frozen=True)
class Found:
    """A localization's result, with the opened networks and values that it was found by.

    Attributes:
        result: For reports.
        alignment: Which tensors stand for one another.
        graph: The target's.
        guilty: Pieces of the target that introduce more than rounding, in its order.
        latent: How many of them no sample shows.
        kept: What reports show of activations, where that was asked for.
    """

    result: Localization
    alignment: Alignment
    graph: LayerGraph
    guilty: tuple[Guilty, ...]
    latent: int = 0
    kept: tuple[KeptLayer, ...] = ()


def localize_target(
    reference: Reference,
    target: Network,
    batches: Iterable[Feeds],
    folder: Path,
    options: Options,
    *,
    keep: bool = False,
    advance: Callable[[str], None] = lambda _: None,
) -> Found:
    """Find the layers of a target that are faulty; several targets may be compared with one source.

    Args:
        reference: The network that is right.
        target: The network in question.
        batches: Inputs of both, by the names of their graphs' tensors, read once; the same ones for each target.
        folder: For the target's activations; the caller removes it.
        options: Margins.
        keep: Keep for reports what both sides have at layers at fault and at outputs.
        advance: Called with what is being done.
    """
    source = reference.network
    clock = _Clock(advance)
    iterator = iter(batches)
    ours, theirs = next(iterator)
    first = reference.batch(0, ours), Activations(target, theirs, folder / "target")
    clock.begin("align")
    prepared = align_compiled(*first, folder, options)
    alignment = prepared.alignment
    clock.begin("isolate")
    count = _rows(ours)

    def rest() -> Iterator[Feeds]:
        nonlocal count
        for batch in iterator:
            count += _rows(batch[0])
            yield batch

    ranges = ranges_of(target.graph) if options.quantized else {}
    computes_in = options.tolerance.arithmetic or FLOAT32.name
    answers = AnswerPairs(reference, target, options, computes_in)
    cuts = measure(
        reference, alignment.pairs, first[1], rest(), outputs=alignment.outputs, observe=answers.add, ranges=ranges
    )
    judged = _judge(source, first[1], alignment, cuts, options)
    if not options.quantized:
        judged = acquit_explained(first, alignment.pairs, judged, tried(computes_in))
    if options.quantized:
        judged = with_other_layers((source.graph, target.graph), alignment.pairs, judged)
    explained = None
    compared = answers.compared()
    coarse = {item.pair.reference: item.reason for item in compared.outputs if options.quantized and item.hidden}
    ends = {source.output_names[name] for name in coarse}
    judged = [replace(item, guilty=item.guilty or item.cut.pair.source in ends) for item in judged]
    if (compared.differs or compared.open) and not options.quantized:
        clock.begin("follow")
        if not any(item.guilty for item in judged):
            answers.measure_rounding()
            compared = answers.compared()
        if compared.differs:
            explained = explain_outputs(first, alignment, judged, answers, options.noise_margin)
            judged = list(explained.judged)
            compared = answers.compared()  # by what rounding does, where that was measured on the way
    clock.begin("diagnose")
    located = located_faults(first, alignment, judged)
    found = with_compilation(located.faults, first, alignment, judged, options.noise_margin)
    guilty, beyond = list(located.guilty), ""
    found, guilty = with_overflows(found, guilty, *first)
    if options.quantized:
        found = with_saturation(found, judged, first[0], target.graph, alignment.pairs, drawn=options.drawn)
    if options.drawn:
        found, beyond = told_by_drawn(found, () if options.unsaid else target.graph.inputs)
        ends = {fault.target_tensor for fault in found}
        guilty = [piece for piece in guilty if not beyond or piece.judged.cut.pair.target in ends]
    found = with_changed_face(found, source, target, alignment, compared.face)
    found = [_with_coarse(fault, coarse, source, target.graph) for fault in found]
    faults = sorted([*prepared.faults, *found], key=lambda fault: -fault.introduced_error)
    latent: list[Latent] = []
    of_rules: list[Latent] = []
    if options.latent and not options.quantized and not prepared.faults and target.original is None:
        clock.begin("latent")
        latent = [
            item for item in latent_faults(first, alignment, judged, folder) if not _is_told(item.fault, faults)
        ]
        of_rules = [item for item in latent if options.latent_counts or _is_alike(item.fault, faults)]
        faults += [item.fault for item in of_rules]
        guilty += [item.piece for item in of_rules]
        latent = [item for item in latent if item not in of_rules]
    clock.end()
    known = known_of(target.graph, alignment.pairs)
    measured = known | {item.cut.pair.target for item in judged}
    result = localization(target, known, judged, faults, compared, options, measured, explained, beyond)
    if faults and not result.faults:  # they're excused
        guilty, of_rules = [], []
    exchanged = exchanged_behind([item.judged.cut.pair for item in located.guilty], found)
    notes = (*prepared.notes, *compared.layouts, *exchanged)
    if options.quantized:
        notes += quantization_notes(target.graph, judged)
    result = replace(
        result,
        layers=tuple(rows_of(source, target, alignment, judged)),
        unmatched_source=layers_of(source, alignment.unpaired_sources),
        unmatched_target=layers_of(target, alignment.unpaired_targets),
        samples=count,
        seconds=clock.seconds,
        notes=notes,
        latent=tuple(item.fault for item in latent),
    )
    pairs = [item.cut.pair for item in judged]
    kept = kept_layers(source.graph, located.guilty, pairs, answers) if keep else ()
    return Found(result, alignment, target.graph, tuple(guilty), len(of_rules), kept)


def _with_coarse(fault: LocatedFault, coarse: Mapping[str, str], source: Network, target: LayerGraph) -> LocatedFault:
    """A fault at an output with what a grid leaves of its slices; what joins them comes first."""
    words = next((text for name, text in coarse.items() if source.output_names[name] == fault.source_tensor), "")
    joining = [node.layer for node in target.nodes if node.op == "Concat" and node.layer in fault.target_layers]
    layers = tuple(dict.fromkeys([*joining, *fault.target_layers]))
    told = replace(fault, target_layers=layers, evidence=(words, *fault.evidence), differences=())
    return told if words else fault


def _is_alike(fault: LocatedFault, others: Sequence[LocatedFault]) -> bool:
    """Whether a fault that no sample shows is of a rule that others show."""
    known = {words for other in others for words, _ in other.differences}
    return bool(fault.differences) and all(words in known for words, _ in fault.differences)


def _is_told(fault: LocatedFault, others: Sequence[LocatedFault]) -> bool:
    """Whether the very difference was named already, where samples show what it does."""
    told = {difference for other in others for difference in other.differences}
    return bool(fault.differences) and told.issuperset(fault.differences)


class _Clock:
    def __init__(self, advance: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._advance, self._part, self._last = advance, "", 0.0

    def begin(self, part: str) -> None:
        """End the measurement of the step before, and begin that of another."""
        self.end()
        self._advance(part)
        far("", part=part)
        self._part, self._last = part, time.perf_counter()

    def end(self) -> None:
        far("", part="")
        if self._part:
            self.seconds[self._part] = round(time.perf_counter() - self._last, 3)


def _rows(feeds: Mapping[str, Array]) -> int:
    return next((len(array) for array in feeds.values() if array.ndim), 1)


def _judge(
    source: Network, given: Activations, alignment: Alignment, cuts: Sequence[Cut], options: Options
) -> list[Judged]:
    target = given.network
    known = known_of(target.graph, alignment.pairs)
    feeding = target.graph.feeding(known)
    quantization = None
    if options.quantized:
        quantization = QuantizationErrors(target.graph, cuts, given, drawn=options.drawn)
    judged = []
    for cut in cuts:
        name = cut.pair.target
        nodes = target.graph.between(known, [name])
        explained = quantization.expected(cut, nodes, feeding.get(name, ())) if quantization else 0.0
        judged.append(
            judge_cut(
                cut,
                operators=len(nodes),
                precision=coarser(options.precision, source.graph.tensors[cut.pair.source].dtype),
                margin=options.noise_margin,
                quantization=explained,
                weights=quantization.of_weights(cut, nodes) if quantization else 0.0,
            )
        )
    readers = readers_of([cut.pair for cut in cuts], feeding)
    return acquit_unread_bodies(judged, readers, rounds=not options.quantized)


@dataclass(frozen=True)
class Looked:
    """The opened models, and the result.

    Attributes:
        subjects: The source and the target.
        options: By which.
        opened: Both.
        reference: The source, with what it computes of the first batch.
        found: Of the target.
    """

    subjects: tuple[FedModel, FedModel]
    options: Options
    opened: tuple[OpenedNetwork, OpenedNetwork]
    reference: Reference
    found: Found

    def is_of(self, source: FedModel, target: FedModel, options: Options) -> bool:
        """Whether this kept localization is of the same request; photos count only where recipes are searched.

        Args:
            source: The model that is right.
            target: The model in question.
            options: Samples, margins, intent.
        """
        ours = [replace(subject, photos=()) for subject in self.subjects]
        return options == self.options and ours == [replace(subject, photos=()) for subject in (source, target)]
