"""One random network: grown, woven through with patterns and nonsense, and given values with which it's finite."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import onnx

from conrepair.generate.diversity import Diversity
from conrepair.generate.forms.registry import QUOTA, forms
from conrepair.generate.graph import Draft, Node
from conrepair.generate.growing import Growing
from conrepair.generate.learned.placing import ORIGIN as LEARNED
from conrepair.generate.limits import Limits
from conrepair.generate.material import NOTHING, Material
from conrepair.generate.onnx_form import model_of
from conrepair.generate.patterns.registry import patterns
from conrepair.generate.real.drafting import ORIGIN as REAL
from conrepair.generate.real.growth import Real, grown_from
from conrepair.generate.running import RefusedError, run
from conrepair.generate.setting import MAX_RANK, NotAllowedError, Support
from conrepair.generate.specifications.registry import specifications
from conrepair.generate.symbolic import Open, open_sizes
from conrepair.generate.values.search import Settled, Settling, flaw_of
from conrepair.generate.weaving import Body, Weaver

__all__ = ["Network", "Wishes", "made"]

_ROOM = 6
"""Nodes that large forms and patterns have."""

_TRIES = 4
"""How often a form is tried, each time with other tensors."""

_ROUNDS = 12
"""How often what isn't finite is taken out and grown anew."""


@dataclass(frozen=True)
class Wishes:
    """What networks should be like.

    Attributes:
        nodes: Operators of each.
        operators: Names of those that may be in it; all for none.
        exclude: Names of those that may not be in it.
        dtypes: Element types that its tensors may have; all for none. Constants that operators need as such (shapes,
            axes) are of the types that they need.
        ranks: Numbers of axes that its tensors may have, the fewest and the most.
        most: Elements that a tensor may have.
        opset: Of the standard's operators.
        backward: How likely an operator is put in front of a tensor that no node makes.
        woven: How likely a pattern is put in, for each five nodes.
        extremes: The share of networks some of whose inputs and weights are at the ends of what they may be.
        single: Whether each has one input and one output.
        symbolic: The share of networks that leave sizes open, where their operators let them; half of them the batch.
        quotas: By form, the share of networks that get it, where that's not the usual one.
        changes: How often what is taken of a real network is changed. `nodes` are those that are taken then, at most;
            operators, element types and ranks are those of what's put in; forms have no quotas.
        patterns: By pattern, the share of networks that get it, of those that have nodes enough; others are put in as
            `woven` says.
    """

    nodes: int = 10
    operators: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    ranks: tuple[int, int] = (0, MAX_RANK)
    most: int = 4096
    opset: int = 20
    backward: float = 0.3
    woven: float = 0.2
    extremes: float = 0.2
    single: bool = False
    symbolic: float = 0.0
    quotas: Mapping[str, float] = field(default_factory=dict)
    changes: int = 10
    patterns: Mapping[str, float] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Operators that may be in it, of those that the opset has."""
        known = specifications()
        return tuple(
            name
            for name in self.operators or known
            if name in known and known[name].least_opset <= self.opset and name not in self.exclude
        )

    def narrowed(self, support: Support) -> Support:
        """What a runtime takes, as far as it's wished."""
        fewest, most = self.ranks
        return Limits(support, self.names, self.dtypes, range(fewest, most + 1))


@dataclass
class Network:
    """A network with its values.

    Attributes:
        draft: The graph.
        values: Of inputs, weights, and all that nodes make.
        weights: Names of sources that are no inputs.
        removed: Nodes that were taken out since nothing made them finite.
        refused: What the runtime said of drafts that it didn't compute.
        open: Sizes that are left open, by input and output.
        answers: Its outputs, by name: those of `values`, to the last bit, unless weights are computed with otherwise.
        real: Name of the real network that it's grown from.
        changes: How that was changed, in order.
    """

    draft: Draft
    values: Settled
    weights: tuple[str, ...]
    removed: int
    refused: tuple[str, ...]
    open: Open | None = None
    answers: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    real: str = ""
    changes: tuple[str, ...] = ()

    @property
    def model(self) -> onnx.ModelProto:
        """It as an ONNX model."""
        weights = {name: self.values.sources[name] for name in self.weights}
        return model_of(self.draft, weights, sizes=self.open)

    @property
    def inputs(self) -> dict[str, np.ndarray[Any, Any]]:
        """Values of its inputs, in the model's order."""
        return {name: array for name, array in self.values.sources.items() if name not in self.weights}

    @property
    def parts(self) -> set[str]:
        """Names of the forms and patterns that are in it."""
        found = {node.origin for node in self.draft.nodes} - {"grown", LEARNED, REAL}
        found |= {"input that is an output"} if self.draft.shown & self.draft.sources.keys() else set()
        return found | ({"output that is read"} if self.draft.shown - self.draft.sources.keys() else set())


def made(
    wishes: Wishes,
    random: Random,
    support: Support,
    seen: Diversity | None = None,
    material: Material = NOTHING,
) -> Network | None:
    """Make a network.

    Args:
        wishes: What it should be like.
        random: All that's drawn comes from here.
        support: Element types of the runtime that computes it.
        seen: What guides it towards what is new; the network is added.
        material: What it's made of besides specifications.

    Returns:
        The network; None if the runtime refused to compute what was drawn.
    """
    names, plain, support = wishes.names, support, wishes.narrowed(support)
    seen = Diversity(names) if seen is None else seen
    growing = Growing(
        random,
        names,
        support,
        wishes.most,
        wishes.backward,
        seen,
        single=wishes.single,
        learned=material.learned,
        named=wishes.operators,
        exclude=wishes.exclude,
    )
    if material.reals:
        return _from_real(material.reals, growing, wishes, plain)
    draft = Draft(wishes.opset)
    named = [name for name, share in sorted(wishes.patterns.items()) if random.random() < share]
    # while there's room for large ones
    chosen = _weave(draft, [(name, patterns()[name].body) for name in named], wishes, random, support)
    chosen += _chosen(wishes, random)
    for nodes in (max(0, min(wishes.nodes // 2, wishes.nodes - _ROOM)), wishes.nodes - _ROOM // 3):
        growing.grow(draft, nodes)
        chosen = _weave(draft, chosen, wishes, random, support)
    kept: dict[str, np.ndarray[Any, Any]] = {}
    refused: list[str] = []
    removed = 0
    generator = np.random.default_rng(random.getrandbits(64))
    for _ in range(_ROUNDS):
        growing.grow(draft, wishes.nodes)
        if not draft.nodes:
            return None
        if not draft.sources:  # constants alone
            draft.cut(draft.nodes[0])
            continue
        settling = Settling(draft, generator)
        found = settling.settled(kept)
        if found is not None:
            seen.add(draft)
            share = 0.5 if random.random() < wishes.extremes else 0.0
            network = Network(draft, settling.pushed(found, random, share), (), removed, tuple(refused))
            return _finished(network, wishes, random, support)
        kept = settling.sources
        if settling.message:
            refused.append(settling.message)
        guilty = settling.guilty or _named(draft, settling.message)
        if guilty is None:
            return None
        before = len(draft.nodes)
        draft.cut(guilty)
        if wishes.single:
            draft.keep_last()
        removed += before - len(draft.nodes)
    return None


def _from_real(reals: Sequence[Real], growing: Growing, wishes: Wishes, support: Support) -> Network | None:
    generator = np.random.default_rng(growing.random.getrandbits(64))
    found = grown_from(reals, growing, support, wishes.nodes, wishes.changes, generator)
    if found is None:
        return None
    growing.seen.add(found.draft)
    network = Network(found.draft, found.values, (), 0, (), real=found.model, changes=found.changes)
    return _finished(network, wishes, growing.random, support, found.weights)


def _named(draft: Draft, message: str) -> Node | None:
    """The node that a runtime's message is about."""
    place = re.search(r"[Nn]ame:'n(\d+)(?:_\w+)?'|name 'n(\d+)(?:_\w+)?'", message)
    return None if place is None else draft.nodes[int(place[1] or place[2])]


def _finished(
    network: Network, wishes: Wishes, random: Random, support: Support, weights: Collection[str] = ()
) -> Network | None:
    """Say which sources are weights, besides those that are known, and which sizes are open.

    Returns:
        The network; None if the runtime doesn't compute that.
    """
    draft = network.draft
    if not draft.outputs():
        draft.hidden.clear()
    chosen = {name for name in draft.sources if name in weights or wishes.single or random.random() < 0.5}
    inputs = [name for name in draft.sources if name not in chosen] or [next(iter(draft.sources), "")]
    network.weights = tuple(name for name in draft.sources if name not in inputs)
    if random.random() < wishes.symbolic:
        network.open = open_sizes(draft, tuple(filter(None, inputs)), support, random, batch=random.random() < 0.5)
    return network if _answered(network) else None


def _answered(network: Network) -> bool:
    """Compute a network's outputs as it's given away: what a runtime packs weights for differs in the last bits.

    Rarely that's enough for an infinity: all weights are inputs then.
    """
    for weights in (network.weights, ()):
        network.weights = weights
        try:
            network.answers = run(network.model, network.inputs, network.draft.outputs())
        except RefusedError:
            continue
        if not any(map(flaw_of, network.answers.values())):
            return True
    return False


def _chosen(wishes: Wishes, random: Random) -> list[tuple[str, Body]]:
    """Forms by their quotas, and patterns that nobody has named."""
    drawn: list[tuple[str, Body]] = [
        (item.name, item.body) for item in forms().values() if random.random() < wishes.quotas.get(item.name, QUOTA)
    ]
    every = [item for name, item in patterns().items() if name not in wishes.patterns]
    for _ in range(max(1, wishes.nodes // 5)):
        if every and random.random() < wishes.woven:
            pattern = random.choice(every)
            drawn.append((pattern.name, pattern.body))
    random.shuffle(drawn)
    return drawn


def _weave(
    draft: Draft, chosen: list[tuple[str, Body]], wishes: Wishes, random: Random, support: Support
) -> list[tuple[str, Body]]:
    """Put forms and patterns into a network; those that don't fit."""
    left = []
    for name, body in chosen:
        weaver = Weaver(draft, random, support, wishes.most, name)
        for _ in range(_TRIES):
            try:
                with weaver.whole():
                    body(weaver)
                    if len(draft.nodes) > wishes.nodes or (wishes.single and len(draft.outputs()) > 1):
                        raise NotAllowedError("more nodes, or outputs, than there should be")
            except NotAllowedError:
                continue
            draft.sort()
            break
        else:
            left.append((name, body))
    return left
