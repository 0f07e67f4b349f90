"""Where outputs that were computed elsewhere stop being a model's, by tensors on the way that were recorded, too.

What was recorded can't be cut or fed. The model beside it can: each piece of it between recorded tensors is fed what
was recorded in front of it, and its result is compared with what was recorded behind it. So each piece shows the
error that came in there, whichever side is right.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

from conrepair.data.recorded import outputs_among
from conrepair.evaluate.compare import ComparedOutputs
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Array, LayerGraph, Node, Tensor
from conrepair.graph.operators import PRODUCTS
from conrepair.judging import numbers
from conrepair.judging.arithmetic import FLOAT32, arithmetic_of, tried
from conrepair.judging.recognition import Fit, fit, recognized, told_apart
from conrepair.judging.simulation import Simulated
from conrepair.localization.activations import Activations
from conrepair.localization.agreement import AnswerPairs
from conrepair.localization.conclusion import concluded, coverage_of, tolerated
from conrepair.localization.isolation import as_stored
from conrepair.localization.judgement import Judged, judge_cut
from conrepair.localization.layout import layouts
from conrepair.localization.matching import Pair
from conrepair.localization.measurement import Cut, Feeds
from conrepair.localization.options import Options
from conrepair.localization.pieces import Pieces
from conrepair.localization.reference import Reference
from conrepair.localization.result import LayerRow, Localization, LocatedFault
from conrepair.localization.rows import Side, row_of
from conrepair.metrics.running_error import error_of
from conrepair.networks.network import Network, Segment

_FUSED = 3  # recorded tensors in a row that a kernel may have inside
_NAMED = 3  # tensors that would narrow a piece down
_OTHER_SIGNS = re.compile(r"[^0-9a-z]+")


class RecordedNetwork(Network):
    """Arrays that were computed elsewhere, as a network that is fed all its tensors."""

    def __init__(self, arrays: Mapping[str, Array], outputs: Sequence[str], size: int) -> None:
        """Take the arrays.

        Args:
            arrays: By name, samples first.
            outputs: Names of the other model's outputs.
            size: Of a batch.
        """
        tensors = {name: Tensor(name, (size, *array.shape[1:]), array.dtype.name) for name, array in arrays.items()}
        self.output_names = outputs_among(arrays, outputs)
        self.input_names = {}
        self.graph = LayerGraph(tuple(arrays), tuple(self.output_names.values()), tensors, ())

    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> Segment:
        """Refuse.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"{', '.join(wanted)} can't be computed: they were recorded")


class RecordedSide:
    """A network that can be cut, beside what was recorded of another."""

    def __init__(
        self, reference: Reference, recorded: RecordedNetwork, folder: Path, options: Options, *, is_right: bool
    ) -> None:
        """Nothing is known yet.

        Args:
            reference: The network that can be cut, with its floors.
            recorded: What was recorded.
            folder: For activations; the caller removes it.
            options: Margins.
            is_right: Whether what was recorded is the source, and the network the target.
        """
        self._reference, self._recorded, self._folder = reference, recorded, folder
        self._options, self._is_right = options, is_right
        self._network, self._graph = reference.network, reference.network.graph

    def localize(self, batches: Iterable[Feeds]) -> Localization:
        """Say where both stop being the same.

        Args:
            batches: Feeds of the network, and all that was recorded, batch by batch.
        """
        first, *rest = batches
        own = self._reference.batch(0, first[0])
        told = Activations(self._recorded, first[1], self._folder / "recorded")
        cuts = {pair.target: Cut(pair) for pair in self._pairs(own, told)}
        right = Reference(self._recorded, self._folder / "right") if self._is_right else self._reference
        computes_in = FLOAT32.name if self._is_right else self._options.tolerance.arithmetic
        target = self._network if self._is_right else self._recorded
        answers = AnswerPairs(right, target, self._options, computes_in=computes_in)
        self._measure(cuts, answers, own, told, [first, *rest])
        compared = answers.compared()
        judged = self._judged(cuts, own)
        if tried(computes_in) and any(item.guilty for item in judged):
            judged, found = self._recognized(judged, tried(computes_in), own, told)
            inner = len(cuts) > len(self._recorded.output_names)  # which say it where none was recognized
            answers.computes_in = found or (FLOAT32.name if inner else computes_in)
        if compared.open and not self._is_right:
            answers.measure_rounding(own)
            compared = answers.compared()
        return self._concluded(judged, compared, compared.arithmetic or answers.computes_in)

    def _pairs(self, own: Activations, told: Activations) -> Iterator[Pair]:
        """What was recorded (as `source`) beside the network's tensor (as `target`), by names; outputs as such."""
        outputs = self._recorded.output_names
        ends = {name: end for name, end in self._network.output_names.items() if end not in self._graph.inputs}
        found = {outputs[name]: end for name, end in ends.items() if name in outputs}
        tensors, layers = _by_name(self._graph)
        for name in self._recorded.graph.tensors:
            key = _plain(name)
            tensor = found.get(name) or tensors.get(key) or layers.get(key)
            if tensor is not None and tensor not in self._graph.inputs:
                found[name] = tensor
        own.compute(list(found.values()))
        known: set[str] = set()
        for name, tensor in sorted(found.items(), key=lambda item: self._graph.order[item[1]]):
            ours, theirs = own[tensor], told[name]
            choices = layouts(theirs.shape, ours.shape)
            if tensor not in known and choices:
                known.add(tensor)
                layout = min(choices, key=lambda choice: error_of(ours, choice.to_target(theirs).astype(ours.dtype)))
                yield Pair(name, tensor, layout, 1.0, "recorded under its name")

    def _measure(
        self,
        cuts: Mapping[str, Cut],
        answers: AnswerPairs,
        own: Activations,
        told: Activations,
        batches: Sequence[Feeds],
    ) -> None:
        pieces = Pieces.between(self._network, self._fed(cuts), list(cuts), keep=True)
        for number, (feeds, arrays) in enumerate(batches):
            one = self._reference.batch(number, feeds) if number else own
            told.renew(arrays)
            one.compute(list(cuts))
            for name, array in pieces.run(functools.partial(_fed, one, told, cuts)):
                self._add(cuts[name], array, one[name], told)
            answers.add(*((told, one) if self._is_right else (one, told)))
        told.renew(batches[0][1])

    def _add(self, cut: Cut, computed: Array, own: Array, told: Activations) -> None:
        """Add a batch: a piece that was fed what was recorded, and the whole network, against what was recorded."""
        recorded = cut.pair.layout.to_target(told[cut.pair.source]).astype(own.dtype)
        for error, array in ((cut.introduced, computed), (cut.full, own)):
            error.add(*((recorded, array) if self._is_right else (array, recorded)))

    def _fed(self, cuts: Iterable[str]) -> list[str]:
        return list(dict.fromkeys([*self._graph.inputs, *cuts]))

    def _judged(self, cuts: Mapping[str, Cut], own: Activations) -> list[Judged]:
        fed = self._fed(cuts)
        for name, floor in self._reference.floors(own, fed, list(cuts)).items():
            cuts[name].disturbed, cuts[name].other = floor.disturbed, floor.other
        known, options = frozenset(fed), self._options
        return [
            judge_cut(
                cut,
                operators=len(self._graph.between(known, [name])),
                precision=options.precision,
                margin=options.noise_margin,
            )
            for name, cut in cuts.items()
        ]

    def _recognized(
        self, judged: Sequence[Judged], names: Sequence[str], own: Activations, told: Activations
    ) -> tuple[list[Judged], str]:
        """Acquit pieces whose difference an arithmetic makes that explains those of most.

        One piece alone among others that are in float32 must give the very numbers: a fault may be as large as what
        an arithmetic makes.

        Returns:
            The pieces; the arithmetic, "" where none was recognized.
        """
        cuts = {item.cut.pair.target: item.cut for item in judged}
        wanted = [item.cut.pair.target for item in judged if item.guilty]
        fits = self._fits(names, wanted, cuts, own, told)
        name = recognized(list(fits.values()), names, numbers.MOST)
        if not name:
            return list(judged), ""
        known = frozenset(self._fed(cuts))
        between = {cut: self._graph.between(known, [cut]) for cut in cuts}
        sums = [cut for cut, nodes in between.items() if any(node.op in PRODUCTS for node in nodes)]
        alone = len(sums) > 1 and sum(cut in fits for cut in sums) < numbers.MOST * len(sums)
        whole = {item.cut.pair.target: item.cut.introduced.relative_l2 for item in judged}
        explained = {
            cut: item[name]
            for cut, item in fits.items()
            if name in item and item[name].explains and whole[cut] <= numbers.OTHERS * item[name].error
            if not alone or item[name].left <= numbers.ALONE * item[name].error
        }
        for cut in wanted if not alone else ():
            longer = None if cut in explained else self._longer(name, cut, cuts, own, told)
            if longer is not None and whole[cut] <= numbers.OTHERS * longer.error:
                explained[cut] = longer
        found = []
        for item in judged:
            of = explained.get(item.cut.pair.target) or fits.get(item.cut.pair.target, {}).get(name)
            if of is not None:
                guilty, floor = item.cut.pair.target not in explained, max(item.floor, of.expected)
                allowed = max(item.allowed, numbers.TIMES * of.expected)
                proven = not guilty and of.close
                item = replace(item, guilty=guilty, floor=floor, allowed=allowed, proven=proven)
            found.append(item)
        certain = len(names) == 1 or len(explained) > 1 or any(of.close for of in explained.values())
        return found, name if explained and certain else ""

    def _fits(
        self,
        names: Sequence[str],
        wanted: Sequence[str],
        cuts: Mapping[str, Cut],
        own: Activations,
        told: Activations,
        uncut: Collection[str] = (),
    ) -> dict[str, dict[str, Fit]]:
        """How well arithmetics explain what was recorded of some tensors, computed from what was in front of them."""
        fed = [name for name in self._fed(cuts) if name not in uncut]
        fetch = functools.partial(_fed, own, told, cuts)
        computed = dict(Pieces.between(self._network, fed, wanted).run(fetch))
        fits: dict[str, dict[str, Fit]] = {name: {} for name in wanted}
        for name in names:
            arithmetic = arithmetic_of(name)
            for tensor, array in Pieces.between(Simulated(self._network, arithmetic), fed, wanted).attempt(fetch):
                pair = cuts[tensor].pair
                recorded = pair.layout.to_target(told[pair.source]).astype(array.dtype)
                fits[tensor][name] = fit(name, computed[tensor], recorded, array, arithmetic.least)
        return {tensor: told_apart(found) for tensor, found in fits.items()}

    def _longer(
        self, name: str, cut: str, cuts: Mapping[str, Cut], own: Activations, told: Activations
    ) -> Fit | None:
        """How well an arithmetic explains a tensor from further in front: kernels read nothing that's inside them."""
        uncut: set[str] = set()
        for _ in range(_FUSED):
            known = frozenset(self._fed(cuts)) - uncut
            uncut |= {name for node in self._graph.between(known, [cut]) for name in node.inputs if name in cuts}
            found = self._fits([name], [cut], cuts, own, told, uncut)[cut].get(name)
            if found is not None and found.explains:
                return found
        return None

    def _concluded(self, judged: Sequence[Judged], compared: ComparedOutputs, arithmetic: str) -> Localization:
        known = frozenset(self._fed(item.cut.pair.target for item in judged))
        between = {item.cut.pair.target: self._graph.between(known, [item.cut.pair.target]) for item in judged}
        faults = tuple(self._fault(item, between[item.cut.pair.target]) for item in judged if item.guilty)
        excused = tolerated(faults, (), compared, self._options)
        faults = () if excused else faults
        ends = set(self._network.output_names.values())
        worst = max((item.full for item in judged if item.cut.pair.target in ends), default=0.0)
        coverage = coverage_of(self._graph, known, judged, None)
        verdict, reason = concluded(faults, (), compared, None, coverage, worst, excused=excused)
        if arithmetic == FLOAT32.name:
            arithmetic = ""
        if arithmetic and faults:
            reason += f"; all else is explained if it computes in {arithmetic_of(arithmetic).words}"
        paired = {item.cut.pair.source for item in judged}
        unread = tuple(name for name in self._recorded.graph.tensors if name not in paired)
        return Localization(
            verdict=verdict,
            reason=reason,
            faults=faults,
            layers=tuple(self._row(item, between[item.cut.pair.target]) for item in judged),
            unmatched_source=unread if self._is_right else coverage.unseen,
            unmatched_target=coverage.unseen if self._is_right else unread,
            output_error=worst,
            notes=tuple(self._notes(known, unread)),
            options=self._options,
            coverage=coverage,
            output_floor=max((output.floor for output in compared.outputs), default=0.0),
            arithmetic=arithmetic,
        )

    def _fault(self, item: Judged, nodes: Sequence[Node]) -> LocatedFault:
        pair = item.cut.pair
        layers = tuple(dict.fromkeys(node.layer for node in reversed(nodes)))
        words = "computed from what was recorded in front of it, this is something else than what was recorded"
        if wanted := self._inner(nodes, pair.target):
            words += f"; {len(nodes)} operators lie between: record {wanted} too, to see in which"
        sides = (pair.source, (pair.source,)), (pair.target, layers)
        (source, source_layers), (target, target_layers) = sides if self._is_right else reversed(sides)
        return LocatedFault(
            kind=Kind.PARAMETERS if len(nodes) == 1 and nodes[0].parameters else Kind.GRAPH,
            source_layers=source_layers,
            target_layers=target_layers,
            introduced_error=item.introduced,
            full_run_error=item.full,
            noise_floor=item.floor,
            evidence=(words,),
            source_tensor=source,
            target_tensor=target,
        )

    def _inner(self, nodes: Sequence[Node], *ends: str) -> str:
        """Tensors that would part some nodes evenly, in words."""
        names = [name for node in nodes for name in node.outputs if name not in ends]
        names = [name for name in names if self._graph.tensors[name].observable]
        step = max(1, len(names) // (_NAMED + 1))
        return ", ".join(f"`{name}`" for name in names[step - 1 :: step][:_NAMED])

    def _row(self, item: Judged, nodes: Sequence[Node]) -> LayerRow:
        pair = item.cut.pair
        sides = Side(pair.source), Side(pair.target, self._graph.producers[pair.target], nodes)
        return row_of(item, *(sides if self._is_right else reversed(sides)), order=self._graph.order[pair.target])

    def _notes(self, known: Set[str], unread: Sequence[str]) -> Iterator[str]:
        """What a person should know of what was recorded."""
        ends = {*self._network.output_names.values(), *self._graph.inputs}
        wanted = self._inner(self._graph.nodes, *ends)
        if known <= ends and wanted:
            yield f"outputs alone were recorded: tensors on the way, as {wanted}, would tell where they differ"
        if unread:
            names = ", ".join(f"`{name}`" for name in unread[:_NAMED])
            yield f"{len(unread)} arrays have no tensor of their name and size in the model: {names}"


def _plain(name: str) -> str:
    """A name without the signs that other formats don't have in names."""
    return _OTHER_SIGNS.sub("_", name.lower()).strip("_")


def _by_name(graph: LayerGraph) -> tuple[dict[str, str], dict[str, str]]:
    """Tensors that can be observed by their names, and those that layers end with by theirs: signs play no role."""
    tensors: dict[str, str] = {}
    layers: dict[str, str] = {}
    for node in graph.nodes:
        for name in node.outputs:
            if graph.tensors[name].observable:
                tensors.setdefault(_plain(name), name)
                layers[_plain(node.layer)] = name
    return tensors, layers


def _fed(network: Activations, recorded: Activations, cuts: Mapping[str, Cut], name: str) -> Array:
    """What a piece of the network is fed: what was recorded there, and its own inputs."""
    if name not in cuts:
        return network.feeds[name]
    pair = cuts[name].pair
    return as_stored(pair.layout.to_target(recorded[pair.source]), network.network.graph.tensors[name])
