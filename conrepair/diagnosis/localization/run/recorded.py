"""Where outputs that were computed elsewhere stop being a model's, by tensors on the way that were recorded, too.

What was recorded can't be cut or fed. The model beside it can: each piece of it between recorded tensors is fed what
was recorded in front of it, and its result is compared with what was recorded behind it. So each piece shows the
error that came in there, whichever side is right.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair, known_of
from conrepair.diagnosis.localization.judge.agreement import AnswerPairs
from conrepair.diagnosis.localization.judge.conclusion import localization
from conrepair.diagnosis.localization.judge.judgement import Judged, judge_cut
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import LayerRow, Localization, LocatedFault
from conrepair.diagnosis.localization.rows import Side, row_of
from conrepair.diagnosis.localization.run.activations import Activations, Isolation
from conrepair.diagnosis.localization.run.measurement import Cut, Feeds
from conrepair.diagnosis.localization.run.reference import Reference
from conrepair.formats.networks.network import Network, Segment
from conrepair.ground.data.recorded import outputs_among
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node, Tensor
from conrepair.ground.graph.operators import PRODUCTS
from conrepair.ground.metrics.running_error import error_of
from conrepair.verdicts.evaluate.compare import ComparedOutputs
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.judging.arithmetic import FLOAT32, arithmetic_of, tried
from conrepair.verdicts.judging.recognition import Fit, fit, recognized, told_apart
from conrepair.verdicts.judging.simulation import Simulated

_Kept = TypeVar("_Kept")
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
        """Refuse: recorded tensors can't be computed.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"{', '.join(wanted)} can't be computed: they were recorded")


class RecordedSide:
    """A network that can be cut, beside what was recorded of another."""

    def __init__(
        self,
        reference: Reference,
        recorded: RecordedNetwork,
        folder: Path,
        options: Options,
        *,
        is_right: bool,
        hidden: Collection[str] | None = None,
    ) -> None:
        """Begin without pairs.

        Args:
            reference: The network that can be cut, with its floors.
            recorded: What was recorded.
            folder: For activations; the caller removes it.
            options: Margins.
            is_right: Whether what was recorded is the source, and the network the target.
            hidden: Tensors that the backend gave no error with where they were outputs; None for what no backend of
                this machine computed.
        """
        self._reference, self._recorded, self._folder = reference, recorded, folder
        self._options, self._is_right, self._hidden = options, is_right, hidden
        self._network, self._graph = reference.network, reference.network.graph

    def localize(self, batches: Iterable[Feeds]) -> Localization:
        """Find the first tensors in which the recording and the model differ.

        Args:
            batches: Feeds of the network, and all that was recorded, batch by batch.
        """
        first, *rest = batches
        self._own = self._reference.batch(0, first[0])
        self._told = Activations(self._recorded, first[1], self._folder / "recorded")
        self._cuts = self._paired()
        self._known = known_of(self._graph, self._pairs())
        self._between = {name: self._graph.between(self._known, [name]) for name in self._cuts}
        right = Reference(self._recorded, self._folder / "right") if self._is_right else self._reference
        computes_in = FLOAT32.name if self._is_right else self._options.tolerance.arithmetic
        target = self._network if self._is_right else self._recorded
        answers = AnswerPairs(right, target, self._options, computes_in)
        self._measure(answers, [first, *rest])
        compared = answers.compared()
        judged = self._judged()
        if tried(computes_in) and any(item.guilty for item in judged):
            judged, found = self._recognized(judged, tried(computes_in))
            inner = len(self._cuts) > len(self._recorded.output_names)  # which say it where none was recognized
            answers.computes_in = found or (FLOAT32.name if inner else computes_in)
        if compared.open and not self._is_right:
            answers.measure_rounding()
            compared = answers.compared()
        ends_alone = len(self._cuts) <= len(self._recorded.output_names)
        if self._options.quantized and compared.verdict.is_right and ends_alone:  # a budget of outputs is for these
            judged = [replace(item, guilty=False) for item in judged]
        return self._concluded(judged, compared, compared.arithmetic or answers.computes_in)

    def _ordered(self, ours: _Kept, theirs: _Kept) -> tuple[_Kept, _Kept]:
        """What's of the network and of what was recorded, what's right first."""
        return (theirs, ours) if self._is_right else (ours, theirs)

    def _paired(self) -> dict[str, Cut]:
        """What was recorded (as `source`) beside the network's tensor (as `target`), by names; outputs as such."""
        ends, outputs = self._network.output_names, self._recorded.output_names
        found = {
            outputs[name]: end for name, end in ends.items() if name in outputs and end not in self._graph.inputs
        }
        by_name = _by_name(self._graph)
        for name in self._recorded.graph.tensors:
            if (key := _plain(name)) in by_name:
                found.setdefault(name, by_name[key])
        self._own.compute(list(found.values()))
        cuts: dict[str, Cut] = {}
        for name, tensor in sorted(found.items(), key=lambda item: self._graph.order[item[1]]):
            ours, theirs = self._own[tensor], self._told[name]
            choices = layouts(theirs.shape, ours.shape)
            if tensor not in cuts and choices:
                layout = min(choices, key=lambda choice: error_of(ours, choice.to_target(theirs).astype(ours.dtype)))
                cuts[tensor] = Cut(Pair(name, tensor, layout, 1.0, "recorded under its name"))
        return cuts

    def _pairs(self, uncut: Collection[str] = ()) -> list[Pair]:
        return [cut.pair for name, cut in self._cuts.items() if name not in uncut]

    def _told_at(self, tensor: str, like: Array) -> Array:
        """What was recorded of a tensor, as the network has it."""
        pair = self._cuts[tensor].pair
        return pair.layout.to_target(self._told[pair.source]).astype(like.dtype)

    def _measure(self, answers: AnswerPairs, batches: Sequence[Feeds]) -> None:
        """A piece that's fed what was recorded, and the whole network, against what was recorded."""
        isolated = Isolation(self._network, self._pairs(), keep=True)
        for number, (feeds, arrays) in enumerate(batches):
            own = self._reference.batch(number, feeds)
            self._told.renew(arrays)
            own.compute(list(self._cuts))
            for name, computed in isolated.run(self._told.__getitem__, feeds):
                recorded = self._told_at(name, own[name])
                self._cuts[name].introduced.add(*self._ordered(computed, recorded))
                self._cuts[name].full.add(*self._ordered(own[name], recorded))
            answers.add(*self._ordered(own, self._told))
        self._told.renew(batches[0][1])

    def _judged(self) -> list[Judged]:
        for name, floor in self._reference.floors(self._cuts, self._cuts).items():
            self._cuts[name].floor = floor
        precision, margin = self._options.precision, self._options.noise_margin
        return [
            judge_cut(cut, operators=len(self._between[name]), precision=precision, margin=margin)
            for name, cut in self._cuts.items()
        ]

    def _recognized(self, judged: Sequence[Judged], names: Sequence[str]) -> tuple[list[Judged], str]:
        """Acquit pieces whose difference an arithmetic makes that explains those of most.

        One piece alone among others that are in float32 must give the very numbers: a fault may be as large as what
        an arithmetic makes.

        Returns:
            The pieces; the arithmetic, "" where none was recognized.
        """
        wanted = [item.cut.pair.target for item in judged if item.guilty]
        fits = self._fits(names, wanted)
        name = recognized(list(fits.values()), names, numbers.MOST)
        if not name:
            return list(judged), ""
        sums = [cut for cut, nodes in self._between.items() if any(node.op in PRODUCTS for node in nodes)]
        alone = len(sums) > 1 and sum(cut in fits for cut in sums) < numbers.MOST * len(sums)
        found, acquitted = [], []
        for item in judged:
            of = fits[item.cut.pair.target].get(name) if item.guilty else None
            if item.guilty and not alone and not _explains(of, item.cut):
                longer = self._longer(name, item.cut.pair.target)
                of = longer if _explains(longer, item.cut) else of
            if of is not None:
                right = _explains(of, item.cut) and (not alone or of.left <= numbers.ALONE * of.error)
                floor, allowed = max(item.floor, of.expected), max(item.allowed, numbers.TIMES * of.expected)
                item = replace(item, guilty=not right, floor=floor, allowed=allowed, proven=right and of.close)
                acquitted += [item] if right else []
            found.append(item)
        certain = len(names) == 1 or len(acquitted) > 1 or any(item.proven for item in acquitted)
        return found, name if acquitted and certain else ""

    def _fits(
        self, names: Sequence[str], wanted: Sequence[str], uncut: Collection[str] = ()
    ) -> dict[str, dict[str, Fit]]:
        """How well arithmetics explain what was recorded of some tensors, computed from what was in front of them."""
        given, pairs = (self._told.__getitem__, self._own.feeds), self._pairs(uncut)
        computed = dict(Isolation(self._network, pairs, wanted).run(*given))
        fits: dict[str, dict[str, Fit]] = {name: {} for name in wanted}
        for name in names:
            arithmetic = arithmetic_of(name)
            for tensor, array in Isolation(Simulated(self._network, arithmetic), pairs, wanted).attempt(*given):
                recorded, known = self._told_at(tensor, array), len(names) == 1 and self._hidden is not None
                item = fit(name, computed[tensor], recorded, array, arithmetic.least)
                sums = any(node.op in PRODUCTS for node in self._between[tensor])
                allowed = max(arithmetic.unit, item.expected) * (1.0 if sums else numbers.OF_FUNCTIONS)
                fits[tensor][name] = replace(item, explains=item.explains or (known and item.error <= allowed))
        return {tensor: told_apart(found) for tensor, found in fits.items()}

    def _longer(self, name: str, cut: str) -> Fit | None:
        """How well an arithmetic explains a tensor from further in front: kernels read nothing that's inside them."""
        uncut: set[str] = set()
        for _ in range(_FUSED):
            nodes = self._graph.between(self._known - uncut, [cut])
            uncut |= {name for node in nodes for name in node.inputs if name in self._cuts}
            found = self._fits([name], [cut], uncut)[cut].get(name)
            if found is not None and found.explains:
                return found
        return None

    def _concluded(self, judged: Sequence[Judged], compared: ComparedOutputs, arithmetic: str) -> Localization:
        faults = tuple(map(self._fault, filter(lambda item: item.guilty, judged)))
        paired = {item.cut.pair.source for item in judged}
        unread = tuple(name for name in self._recorded.graph.tensors if name not in paired)
        found = localization(
            self._network, self._known, judged, faults, compared, self._options, self._known | paired
        )
        other, reason = "" if arithmetic == FLOAT32.name else arithmetic, found.reason
        if other and found.faults and len(faults) < len(judged):
            reason += f"; all other differences are as if the device computed in {arithmetic_of(other).words}"
        unseen = () if found.coverage is None else found.coverage.unseen
        ours, theirs = self._ordered(unseen, unread)
        return replace(
            found,
            reason=reason,
            layers=tuple(map(self._row, judged)),
            unmatched_source=ours,
            unmatched_target=theirs,
            notes=tuple(self._notes(unread)),
            arithmetic=other,
        )

    def _fault(self, item: Judged) -> LocatedFault:
        pair, nodes = item.cut.pair, self._between[item.cut.pair.target]
        layers = tuple(dict.fromkeys(node.layer for node in reversed(nodes)))
        whose = "recorded" if self._hidden is None else "backend's"
        words = f"computed from the {whose} tensors in front of it, this tensor differs from the {whose} one"
        more: tuple[str, ...] = ()
        joined = [f"`{name}`" for node in nodes for name in node.outputs if name in (self._hidden or ())]
        if joined:
            words += (
                f". The backend computes these {len(nodes)} operators as one: the error is gone where a tensor "
                "between them is an output of the file"
            )
            more = (f"such tensors are {', '.join(joined[:_NAMED])}",)
        elif self._hidden is None and (wanted := self._inner(nodes, pair.target)):
            words += f". The fault is in one of {len(nodes)} operators: record {wanted} too, to find which"
        kind = Kind.PARAMETERS if len(nodes) == 1 and nodes[0].parameters else Kind.GRAPH
        kind, theirs = (kind, (pair.source,)) if self._hidden is None else (Kind.COMPILATION, layers)
        sides = self._ordered((pair.target, layers), (pair.source, theirs))
        fault = LocatedFault.of_error(kind, *sides, (words, *more), item.introduced)
        return replace(fault, full_run_error=item.full, noise_floor=item.floor)

    def _inner(self, nodes: Sequence[Node], *ends: str) -> str:
        """Tensors that would part some nodes evenly, in words."""
        names = [name for node in nodes for name in node.outputs if name not in ends]
        names = [name for name in names if self._graph.tensors[name].observable]
        step = max(1, len(names) // (_NAMED + 1))
        return ", ".join(f"`{name}`" for name in names[step - 1 :: step][:_NAMED])

    def _row(self, item: Judged) -> LayerRow:
        tensor = item.cut.pair.target
        ours = Side.of(self._graph, tensor, self._known)
        return row_of(item, *self._ordered(ours, Side(item.cut.pair.source)), order=self._graph.order[tensor])

    def _notes(self, unread: Sequence[str]) -> Iterator[str]:
        """Notes on the recorded arrays."""
        ends = {*self._network.output_names.values(), *self._graph.inputs}
        wanted = self._inner(self._graph.nodes, *ends)
        if self._known <= ends and wanted and self._hidden is None:
            yield f"only outputs were recorded: record inner tensors, such as {wanted}, too, to find the faulty layer"
        if unread:
            names = ", ".join(f"`{name}`" for name in unread[:_NAMED])
            yield f"no tensor of the model has the name and size of these recorded arrays: {names}"


def _explains(of: Fit | None, cut: Cut) -> bool:
    """Whether an arithmetic explains a tensor, of which other batches differ by no more."""
    return of is not None and of.explains and cut.introduced.relative_l2 <= numbers.OTHERS * of.error


def _plain(name: str) -> str:
    """A name without the signs that other formats don't have in names."""
    return _OTHER_SIGNS.sub("_", name.lower()).strip("_")


def _by_name(graph: LayerGraph) -> dict[str, str]:
    """Tensors that can be observed by their names, or as what layers end with by theirs: signs play no role."""
    made = [(node.layer, name) for node in graph.nodes for name in node.outputs if graph.tensors[name].observable]
    layers = {_plain(layer): name for layer, name in made}
    return layers | {_plain(name): name for _, name in reversed(made)}
