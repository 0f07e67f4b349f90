"""What a recurrent layer has become, however the target writes it: told from its results, and from its numbers."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.diagnosis.localization.faces.recurrent.gates import carried_gates, gate_differences
from conrepair.diagnosis.localization.faces.recurrent.recurrence import Layer, Layers, recurrent_layer, wrong_forms
from conrepair.diagnosis.localization.faces.region import Finding, Region, left_of
from conrepair.diagnosis.localization.faces.steps.functions import Values, compute
from conrepair.diagnosis.localization.faces.steps.steps import MOVES
from conrepair.diagnosis.localization.judge.quantization import MOST_BITS, own_rounding
from conrepair.diagnosis.localization.numbers import judging, naming
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node
from conrepair.ground.metrics.running_error import relative_l2

_KEPT = 8  # layers whose states are known: those that are right, and the last ones that were tried
_MOST = 1 << 30  # products of numbers, for one form

States = Sequence[Values]
"""Of each direction, [batch, steps, hidden]."""


@dataclass(frozen=True)
class RecurrentForm:
    """What the source's layer would have to be, to give what the target computes.

    Attributes:
        words: In which it's said.
        node: The source's.
        right: That, for each direction.
        wrong: What it would be.
    """

    words: str
    node: Node
    right: Layers
    wrong: Layers


def recurrent_findings(region: Region) -> Iterator[Finding]:
    """What became of the source's layer: the form of it that gives what the target computes, or numbers that differ.

    Args:
        region: Guilty, with one recurrent layer in the source.
    """
    if (form := form_of(region)) is not None:
        yield _finding(region, form)
    elif (found := recurrent_layer(region.source.nodes)) is not None:
        yield from gate_differences(*found, region.target.nodes)


def form_of(region: Region) -> RecurrentForm | None:
    """The form of the source's layer that gives what the target computes.

    The layer is computed in NumPy as it is, which must give the source's result; then in forms that conversions give
    it by mistake. That needs no look at how the target writes it: as a loop, unrolled, or as one operator.

    Args:
        region: Guilty, with one recurrent layer in the source.

    Returns:
        None where no form does.
    """
    if (run := _Run.of(region)) is None:
        return None
    found = (item for item in wrong_forms(run.layers) if run.error(item[1]) <= run.close)
    return next((RecurrentForm(words, run.node, run.layers, wrong) for words, wrong in found), None)


def _finding(region: Region, form: RecurrentForm) -> Finding:
    nodes = [item for item in region.target.nodes if item.op not in {*MOVES, "Slice"}]
    changed = {place for place, (one, two) in enumerate(zip(form.right, form.wrong, strict=True)) if one is not two}
    held = {item.node.name for item in carried_gates(form.wrong, form.wrong, nodes) if item.direction in changed}
    first = sorted(nodes, key=lambda item: (item.name not in held, not item.parameters))
    target = (*(item.layer for item in first), *region.target.layers)
    return Finding(
        Kind.PARAMETERS if _options(form.wrong) == _options(form.right) else Kind.HYPERPARAMETERS,
        f"the converted model computes the {form.node.op} `{form.node.layer}` as if {form.words}",
        (form.node.layer, *region.source.layers),
        target,
        rule=form.words,
    )


def _options(layers: Layers) -> list[tuple[object, ...]]:
    return [(layer.activations, layer.reverse, layer.linear_before_reset) for layer in layers]


@dataclass(frozen=True)
class _Run:
    """A layer that can be computed, and the way in which the source's piece gives its result from its states.

    Attributes:
        region: That it's in.
        node: The source's.
        layers: That, for each direction.
        states: Gives what a layer makes of what this one reads: [batch, steps, hidden].
        begins: What the source reads at the cuts, but for what the node gives.
        output: Of the node, that's read.
        arranged: How the states lie there.
        close: Relative L2 of results up to which they're the same.
    """

    region: Region
    node: Node
    layers: Layers
    states: Callable[[Layer], Values]
    begins: Mapping[str, Values]
    output: str
    arranged: Callable[[States, Layers], Values]
    close: float

    @classmethod
    def of(cls, region: Region) -> _Run | None:
        """None where there's no such layer in the source, or the source's result can't be computed."""
        found = recurrent_layer(region.source.nodes)
        if found is None or region.expected.shape != region.computed.shape:
            return None
        begins = _begins(region)  # of a network with such a layer; others may read texts
        x = _read(region.source.graph, found[0], begins)
        if x is None:
            return None
        node, layers = found
        if x.size // x.shape[-1] * sum(layer.weight.size + layer.recurrent.size for layer in layers) > _MOST:
            return None
        states = functools.lru_cache(maxsize=_KEPT)(lambda layer, read=x: layer.run(read))
        begins = {name: values for name, values in begins.items() if name not in node.outputs}
        end, shapes, close = region.source.end, region.source.graph.tensors, _close(region)
        needed = {end, *(name for item in region.source.nodes if item is not node for name in item.inputs)}
        outputs = [name for name in node.outputs if name in needed and shapes[name].shape is not None]
        for output, arranged in itertools.product(outputs, _ARRANGED):
            run = cls(region, node, layers, states, begins, output, arranged, close)
            if run.error(layers, region.expected) <= naming.CLOSE:
                return run
        return None

    def error(self, of: Layers, wanted: Array | None = None) -> float:
        """Relative L2 between the region's result with other layers in the place of these, and a result.

        Args:
            of: The others.
            wanted: The result; what the target computes where it isn't given.
        """
        graph, end = self.region.source.graph, self.region.source.end
        wanted = self.region.computed if wanted is None else wanted
        states = [self.states(layer) for layer in of]
        given, shape = self.arranged(states, of), graph.tensors[self.output].shape or ()
        if given.size != math.prod(shape):
            return math.inf
        known = {**self.begins, **self._others(states, of), self.output: given.reshape(shape)}
        values = compute(graph.between(set(known), [end]), known, graph) if self.output != end else known
        result = None if values is None else values.get(end)
        if result is None or result.size != wanted.size:
            return math.inf
        return relative_l2(wanted, result.reshape(wanted.shape))

    def _others(self, states: States, of: Layers) -> dict[str, Values]:
        """The last states, as the layer's second result, where its first is the one that's looked at."""
        first, second = (*self.node.outputs, "")[:2]
        tensor, last = self.region.source.graph.tensors.get(second), np.stack([*map(_last, states, of)])
        if self.output != first or tensor is None or tensor.shape is None or math.prod(tensor.shape) != last.size:
            return {}
        return {second: last.reshape(tensor.shape)}


def _last(states: Values, layer: Layer) -> Values:
    return states[:, 0] if layer.reverse else states[:, -1]


_ARRANGED: Sequence[Callable[[States, Layers], Values]] = (
    lambda states, _: np.concatenate(states, -1),
    lambda states, _: np.concatenate(states, -1).swapaxes(0, 1),
    lambda states, _: np.stack(states).transpose(2, 0, 1, 3),  # [steps, directions, batch, hidden]
    lambda states, of: np.concatenate([*map(_last, states, of)], -1),
    lambda states, of: np.stack([*map(_last, states, of)]),
    lambda states, _: np.concatenate([item[:, -1] for item in states], -1),
    lambda states, _: np.concatenate([item[:, 0] for item in states], -1),
)
"""What operators give of the states: all of them, or one."""


def _close(region: Region) -> float:
    """How near a form must be to what the target computes: where weights have few bits, by what these explain."""
    error = relative_l2(region.expected, region.computed)
    stored = [
        own_rounding(parameter)
        for node in region.target.nodes
        for parameter in node.parameters.values()
        if parameter.bits and parameter.bits <= MOST_BITS
    ]
    bits = judging.MARGIN_OF_BITS * math.hypot(*stored) if stored else 0.0
    return max(left_of(error), min(bits, naming.MUCH_LEFT * error))


def _read(graph: LayerGraph, node: Node, known: Mapping[str, Values]) -> Values | None:
    """What the layer reads, as the source has it; computed where that's no cut."""
    name = node.inputs[0]
    if name not in known:
        known = compute(graph.between(set(known), [name]), known, graph) or {}
    array = known.get(name)
    return array if array is not None and array.ndim == 3 else None


def _begins(region: Region) -> dict[str, Values]:
    """The source's values that a segment reads at its boundaries."""
    return {
        region.partners[begin]: np.asarray(region.layouts[begin].to_source(region.fed(begin)), np.float64)
        for begin in region.target.begins
        if begin in region.partners and begin in region.layouts
    }
