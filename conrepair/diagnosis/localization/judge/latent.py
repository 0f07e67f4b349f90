"""Faults that no sample shows: pieces that differ for other values than those that they were given."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from conrepair.diagnosis.localization.align.alignment import Alignment
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.faces.diagnose import diagnose
from conrepair.diagnosis.localization.faces.region import Cuts, region_of
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.diagnosis.localization.judge.by_files import cut_of, harmless_pairs
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.judge.static import differing_steps
from conrepair.diagnosis.localization.located import Guilty
from conrepair.diagnosis.localization.numbers import pairing
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.diagnosis.localization.run.activations import Activations, Isolation
from conrepair.diagnosis.localization.run.pieces import Pieces
from conrepair.diagnosis.localization.run.shelf import Shelf
from conrepair.ground.canonical.pieces import Pieces as CanonicalPieces
from conrepair.ground.graph.input_ranges import ASKING
from conrepair.ground.graph.layer_graph import Array, LayerGraph
from conrepair.ground.graph.operators import NORMALIZATIONS, family
from conrepair.ground.metrics.running_error import relative_l2
from conrepair.ground.runtime.errors import InferenceError
from conrepair.ground.runtime.words import percent

_OTHER_SIGN = "is much larger, with the other sign"
_SIZES = {"is much larger": (16.0, 64.0), _OTHER_SIGN: (-16.0, -64.0), "is much smaller": (1 / 256, 1e-3)}
"""Other values: so many times those that were seen, or further, to that root mean square: beyond any usual bound, and
where an epsilon counts."""

_MET = "is a number at which comparisons or roundings change"
_TIES = (0.0, -1.5, 0.5, 1.0)  # where an operator turns from one side to the other
_TURNED = "comes from inverted masks"

_MARGIN = 100.0  # times its floor, that a piece must be off by: other values may be worse conditioned
_HALF = 0.5
_ROUNDED = 1e-5  # relative L2: what a layer rounds in single precision is below it
_UNSEEN = 104.0  # exp(-104) is 0 in float32
_ANY_SIZE = NORMALIZATIONS | {"Conv", "ConvTranspose", "Gemm", "MatMul"}
"""Operators with weights whose results may be of any size and sign, so that others than were seen are possible."""
_PASS_ON = {"Add", "Sub", "Relu", "Concat", *family("pooling"), *family("move")}
"""Operators whose results may be of any size where all that they read may be."""


@dataclass(frozen=True)
class Latent:
    """A segment that differs for values that these inputs don't trigger.

    Attributes:
        fault: As it's diagnosed.
        piece: What lies between the cuts, with the values that show it.
    """

    fault: LocatedFault
    piece: Guilty


def latent_faults(
    first: tuple[Activations, Activations], alignment: Alignment, judged: Sequence[Judged], folder: Path
) -> list[Latent]:
    """Feed segments of both networks other values, and see whether they still agree.

    What a layer with weights gives is multiplied, the same on both sides; all else stays, as it may be that a target
    relies on it (that a softmax gives no negative numbers). Pieces that the files prove to compute alike can't
    differ; what isn't proven and differs in parameters that no value shows is compared as numbers.

    Args:
        first: A batch through the network that is right, and through the one in question.
        alignment: Of both.
        judged: All cuts; those that are guilty are known already.
        folder: For activations; the caller removes it.

    Returns:
        In the target's order; each with the values that show most of it.
    """
    right, given = first
    graphs = right.network.graph, given.network.graph
    alignment = dataclasses.replace(alignment, pairs=_with_repeated(graphs, alignment.pairs))
    canonical = CanonicalPieces(*graphs)
    begins = [cut_of(pair) for pair in alignment.cuts if pair.source in graphs[0].inputs]
    ends = [cut_of(pair) for pair in alignment.pairs if pair.target in graphs[1].outputs]
    if {cut.target for cut in ends} == {*graphs[1].outputs} and all(canonical.proven(begins, ends).ends):
        return []  # whatever they're fed
    # A condition may differ where no answer does: for ties and other masks, only what is made of it is compared.
    told = (pair for pair in alignment.pairs if pair.source in graphs[0].inputs or _has_fractions(right[pair.source]))
    answers = dataclasses.replace(alignment, pairs=tuple(told))
    every = _Pieces(first, alignment, canonical)
    of_answers = every if answers.pairs == alignment.pairs else _Pieces(first, answers, canonical)
    shown = dict[str, Latent]()
    for pieces, sizes in ((every, [*_SIZES]), (of_answers, [_MET, _TURNED])):
        wanted = pieces.reading_alike(judged)
        found = (pieces.differing(wanted, size, folder) for size in sizes if wanted)
        for latent in itertools.chain.from_iterable(found):
            name = latent.piece.judged.cut.pair.target
            if name not in shown or latent.piece.judged.introduced > shown[name].piece.judged.introduced:
                shown[name] = latent
    shown |= every.static([item for item in judged if item.cut.pair.target in every.unproven], shown)
    return [shown[name] for name in sorted(shown, key=given.network.graph.order.__getitem__)]


def _with_repeated(graphs: tuple[LayerGraph, LayerGraph], pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Pairs, with those of what either side computes once more in the same way: all are fed the same other values."""
    known = {pair.target for pair in pairs}
    more = {
        (ours, theirs): dataclasses.replace(pair, source=ours, target=theirs)
        for pair in pairs
        for ours in graphs[0].repeated.get(pair.source, (pair.source,))
        for theirs in graphs[1].repeated.get(pair.target, (pair.target,))
        if theirs not in known or (ours != pair.source and theirs == pair.target)
    }
    return (*more.values(), *pairs)


def _has_fractions(array: Array) -> bool:
    return array.dtype.kind == "f" and bool(np.any(array != np.rint(array)))


class _Pieces:
    """Pieces of both networks, to be fed other values."""

    def __init__(
        self, first: tuple[Activations, Activations], alignment: Alignment, canonical: CanonicalPieces
    ) -> None:
        self._right, self._given = first
        self._source, self._target = self._right.network, self._given.network
        self._graphs = self._source.graph, self._target.graph
        self._alignment, self._canonical = alignment, canonical
        self._cuts = Cuts(self._graphs, alignment.pairs)

    @functools.cached_property
    def unproven(self) -> set[str]:
        """Pairs, by the target's tensors, that the files don't prove, nor what reads them where they're no pairs."""
        cuts = sorted(self._alignment.cuts, key=lambda pair: self._graphs[1].order[pair.target])
        proven, inputs = self._canonical.proven([cut_of(pair) for pair in cuts]).targets, {*self._graphs[0].inputs}
        left = [pair for pair in self._alignment.pairs if pair.target not in proven and pair.source not in inputs]
        harmless = harmless_pairs(self._graphs, self._canonical, cuts, left) if left else set[str]()
        return {pair.target for pair in left} - harmless

    def reading_alike(self, judged: Sequence[Judged]) -> dict[str, Judged]:
        """Cuts that aren't guilty and aren't proven, by the target's tensors, of those that read the same tensors.

        A target that reads what the source's layers in front compute from would be fed other values than these give.
        """
        partners = {pair.target: pair.source for pair in self._alignment.cuts}
        could = set()
        for pair in self._alignment.pairs:
            if pair.target in self.unproven:
                source, target = self._cuts.sides(pair)
                if {partners.get(begin) for begin in target.begins} <= {*source.begins}:
                    could.add(pair.target)
        return {name: item for name, item in self._innocent(judged).items() if name in could}

    def _innocent(self, judged: Sequence[Judged]) -> dict[str, Judged]:
        known = set(self._alignment.pairs)
        return {item.cut.pair.target: item for item in judged if not item.guilty and item.cut.pair in known}

    def static(self, judged: Sequence[Judged], shown: Collection[str]) -> dict[str, Latent]:
        """Segments whose parameters differ, while their results are the same for all values that were tried."""
        # Where something is wrong, all behind it may lie otherwise for that, and numbers with it.
        found, is_right = {}, not any(item.guilty for item in judged)
        for name, item in self._innocent(judged).items():
            if name in shown:
                continue
            sides = self._cuts.sides(item.cut.pair)
            error, steps = differing_steps(*sides)
            if not error or any(self._is_taken_back(item.cut.pair, one, two) for one, two in steps):
                continue
            at_end = all(two is not None and two.outputs[0] == name for _, two in steps)
            if not (is_right and at_end and self._gives_the_same(item.cut.pair, sides[0].begins)):
                found[name] = dataclasses.replace(item, introduced=error, guilty=True)
        if not found:
            return {}
        self._right.compute([item.cut.pair.source for item in found.values()])
        words = "the files differ, but the results don't on these inputs"
        tried = self._tried(found, self._right.__getitem__, self._right.__getitem__)
        return {item.cut.pair.target: latent(item, words) for item, _, latent in tried}

    def _is_taken_back(self, end: Pair, one: Step | None, two: Step | None) -> bool:
        """Whether the piece uses the very values that differ, and gives the same: what follows in it undoes that.

        Rows of weights in another order are read in that order; a kernel that is turned stands before a mean. Then a
        mixture of both sides' values shows. Where nothing reads those values (a channel that ReLU always cuts off),
        it shows as little as they do themselves.
        """
        if one is None or two is None or two.outputs[0] == end.target:
            return False
        inner = two.outputs[0]
        if not self._graphs[1].tensors[inner].observable:  # nobody can put other values there
            return False
        isolated = Isolation(self._target, self._alignment.pairs, [inner, end.target])
        fetch = functools.partial(isolated.fed, self._right.__getitem__, self._given.feeds)
        as_is = dict(isolated.attempt(self._right.__getitem__, self._given.feeds))
        self._right.compute([one.outputs[0]])
        ours, theirs = self._right[one.outputs[0]], as_is.get(inner)
        if theirs is None or theirs.shape != ours.shape or end.target not in as_is:
            return False
        mixed = np.where(np.random.default_rng(0).random(ours.shape) < _HALF, ours, theirs)
        cuts = [*self._graphs[1].inputs, *(pair.target for pair in self._alignment.pairs), inner]
        behind = Pieces.between(self._target, cuts, [end.target])
        found = dict(behind.attempt(lambda name: mixed if name == inner else fetch(name)))
        return end.target in found and relative_l2(as_is[end.target], found[end.target]) > pairing.EQUAL

    def _gives_the_same(self, pair: Pair, begins: Collection[str]) -> bool:
        """Whether both sides give the same of whatever real numbers they read: rows of weights in the order of these.

        Of what the networks are fed nothing else is known than the samples.
        """
        right = self._right
        if any(name in self._graphs[0].inputs or right[name].dtype.kind != "f" for name in begins):
            return False
        generator, drawn = np.random.default_rng(0), dict[str, Array]()

        def draw(name: str) -> Array:
            array = right[name]
            return drawn.setdefault(name, generator.standard_normal(array.shape).astype(array.dtype))

        for _, expected in self._expected([pair.source], draw):
            isolated = Isolation(self._target, self._alignment.cuts, [pair.target])
            for _, array in isolated.attempt(draw, self._given.feeds):
                if 0 < array.size == expected.size:
                    return relative_l2(expected, pair.layout.to_source(array)) <= _ROUNDED
        return False

    def _expected(self, ends: Sequence[str], fetch: Callable[[str], Array]) -> Iterator[tuple[str, Array]]:
        """What the source gives of other values; some pieces take no others."""
        fed = dict.fromkeys([*self._graphs[0].inputs, *(pair.source for pair in self._alignment.pairs)])
        return Pieces.between(self._source, fed, ends).attempt(fetch)

    def differing(self, wanted: Mapping[str, Judged], size: str, folder: Path) -> Iterator[Latent]:
        """What differs where values are of another size."""
        turned = size == _TURNED
        changed = _turned(self._right, self._alignment, folder) if turned else _changed(self._right, size)
        if changed is None:
            return
        expected = Shelf(folder / "latent")
        names = dict.fromkeys(item.cut.pair.source for item in wanted.values())
        expected.put_all(self._expected([name for name in names if name not in self._graphs[0].inputs], changed))
        for item, array, latent in self._tried(wanted, changed, expected.__getitem__):
            pair = item.cut.pair
            size_there = expected[pair.source].size if pair.source in expected else None
            if array.size != size_there or not np.isfinite(array).all():
                continue
            sides = expected[pair.source], pair.layout.to_source(array)
            error = relative_l2(*(_read(self._graphs[0], pair.source, np.asarray(side)) for side in sides))
            # Differences below rounding error count nothing: beside values this large, others are as small as that
            # (SiLU's of -200).
            if error > max(pairing.EQUAL, _MARGIN * item.floor):
                judged = dataclasses.replace(item, introduced=error, guilty=True)
                yield latent(judged, f"where its input {size}, results differ by {percent(error)}")

    def _tried(
        self, wanted: Mapping[str, Judged], fetch: Callable[[str], Array], expected: Callable[[str], Array]
    ) -> Iterator[tuple[Judged, Array, Callable[[Judged, str], Latent]]]:
        """Feed the target's pieces, and give what each computes, and what makes a fault of it.

        Args:
            wanted: Cuts, by the target's tensors.
            fetch: What pieces are fed, by the source's tensors.
            expected: What the source gives then.
        """
        isolated = Isolation(self._target, self._alignment.cuts, list(wanted))
        fed, constants = functools.partial(isolated.fed, fetch, self._given.feeds), self._right.constants()

        def latent(array: Array, item: Judged, words: str) -> Latent:
            pair = item.cut.pair
            values = np.array(expected(pair.source)), pair.layout.to_source(np.array(array))
            region = region_of(self._graphs, self._alignment.cuts, pair, *values, fed, constants)
            fault = diagnose(region, item)
            evidence = (fault.evidence[0], f"not triggered by these inputs: {words}", *fault.evidence[1:])
            return Latent(dataclasses.replace(fault, evidence=evidence), Guilty(region, item))

        for name, array in isolated.attempt(fetch, self._given.feeds):
            yield wanted[name], array, functools.partial(latent, array)


def _read(graph: LayerGraph, name: str, array: Array) -> Array:
    """What is read of a tensor: a softmax gives 0 for scores that are so far below the largest one."""
    axes = {node.attributes.get("axis", -1) if node.op == "Softmax" else None for node in graph.consumers[name]}
    axis = axes.pop() if len(axes) == 1 else None
    if not array.size or not isinstance(axis, int) or name in graph.outputs or not -array.ndim <= axis < array.ndim:
        return array
    return np.maximum(array, array.max(axis, keepdims=True) - _UNSEEN)  # type: ignore[no-any-return]


def _changed(right: Activations, size: str) -> Callable[[str], Array]:
    """The source's activations, those of any size multiplied."""
    graph = right.network.graph
    asking = [node.parameters for node in graph.nodes if node.op in ASKING and "operand" in node.parameters]
    operands = (parameters["operand"].numpy() for parameters in asking)
    asked = [float(array.item()) for array in operands if array.size == 1 and array.dtype.kind in "biuf"]
    numbers = np.unique([*_TIES, *asked])
    any_size, pass_on = set[str](), _PASS_ON - {"Relu"} if size == _OTHER_SIGN else _PASS_ON
    for node in graph.nodes:
        if node.op in _ANY_SIZE or (node.op in pass_on and any_size.issuperset(filter(None, node.inputs))):
            any_size.update(node.outputs)

    def fetch(name: str) -> Array:
        array = right[name]
        if size == _MET and _has_fractions(array):
            some = numbers[(numbers >= array.min()) & (numbers <= array.max())].astype(array.dtype)
            found = array.flatten()
            found[::2] = np.resize(some, found[::2].shape) if some.size else found[::2]
            return found.reshape(array.shape)
        if array.dtype.kind == "f" and size != _MET and name in any_size:
            with np.errstate(over="ignore"):
                return np.asarray(array * array.dtype.type(_factor(array, size)))
        return array

    return fetch


def _turned(right: Activations, alignment: Alignment, folder: Path) -> Callable[[str], Array] | None:
    """The source's activations of masks from behind, and of flags that are the other way; None where it has none."""
    feeds = {
        name: (array == 0).astype(array.dtype) if array.shape[-1:] in {(), (1,)} else array[..., ::-1]
        for name, array in right.feeds.items()
        if array.dtype.kind in "iub" and array.size and {*np.unique(array).tolist()} <= {0, 1}
    }
    turned = Activations(right.network, {**right.feeds, **feeds}, folder / "turned")
    try:
        turned.compute([pair.source for pair in alignment.pairs] if feeds else [])
    except InferenceError:  # a branch that isn't for these inputs
        return None
    return turned.__getitem__ if feeds else None


def _factor(array: Array, size: str) -> float:
    usual, wanted = _SIZES[size]
    rms = float(np.sqrt(np.mean(np.square(array.astype(np.float64))))) or 1.0
    return (min if abs(usual) < 1 else max)(usual, wanted / rms, key=abs)
