"""One random network: grown, woven through with patterns and nonsense, and given values with which it's finite."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import onnx

from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.forms.form import QUOTA, forms
from conrepair_lab.generate.graph import Draft, Node
from conrepair_lab.generate.growing import Growing
from conrepair_lab.generate.learned.placing import ORIGIN as LEARNED
from conrepair_lab.generate.learned.placing import Learned
from conrepair_lab.generate.onnx_form import RefusedError, model_of, run
from conrepair_lab.generate.patterns.pattern import patterns
from conrepair_lab.generate.real.drafting import ORIGIN as REAL
from conrepair_lab.generate.real.growth import GrowingModel, grown_from
from conrepair_lab.generate.settings.ports import NotAllowedError, Support
from conrepair_lab.generate.symbolic import Open, open_sizes
from conrepair_lab.generate.values.search import Settled, Settling, flaw_of
from conrepair_lab.generate.weaving import Body, Weaver
from conrepair_lab.generate.wishes import Wishes

_ROOM = 6
"""Nodes that large forms and patterns have."""

_LARGE = 1_000_000
"""Elements that a tensor may have in a network of large ones."""

_TRIES = 4
"""How often a form is tried, each time with other tensors."""

_ROUNDS, _NODES_OF_ROUND = 12, 10
"""How often what isn't finite is taken out and grown anew: at least, and once more for each so many nodes."""

_STIRRED = 3
"""How often what keeps outputs from moving with inputs is taken out and grown anew, at most."""

_PART = 5
"""Nodes of a long chain that are put behind it before it's computed: what's taken out again then is at its end."""


@dataclass(frozen=True)
class Material:
    """Material of networks besides specifications: learned operators, and models that networks are made from.

    Attributes:
        learned: Instances, of which some are placed.
        reals: Models; each network is grown from a piece of one of them, if there are any.
    """

    learned: Learned | None = None
    reals: tuple[GrowingModel, ...] = ()


NOTHING = Material()
"""Specifications are all there is."""


class NotMadeError(Exception):
    """A network couldn't be made; the text says why."""


@dataclass
class GeneratedNetwork:
    """A network with its values.

    Attributes:
        draft: The graph.
        values: Of inputs, weights, and all that nodes make.
        weights: Names of sources that are no inputs.
        refused: What the runtime said of drafts that it didn't compute.
        open: Sizes that are left open, by input and output.
        answers: Its outputs, by name: those of `values`, to the last bit, unless weights are computed with otherwise.
        real: Name of the real network that it's grown from.
        changes: How that was changed, in order.
    """

    draft: Draft
    values: Settled
    weights: tuple[str, ...]
    refused: tuple[str, ...]
    open: Open | None = None
    answers: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    real: str = ""
    changes: tuple[str, ...] = ()

    @property
    def model(self) -> onnx.ModelProto:
        """The network as an ONNX model."""
        weights = {name: self.values.sources[name] for name in self.weights}
        return model_of(self.draft, weights, sizes=self.open)

    @property
    def inputs(self) -> dict[str, np.ndarray[Any, Any]]:
        """Values of its inputs, in the model's order."""
        return {name: array for name, array in self.values.sources.items() if name not in self.weights}

    @property
    def coarsest(self) -> str:
        """The coarsest real numbers that it computes with."""
        types = {tensor.type.dtype for tensor in self.draft.tensors.values()}
        return next((dtype for dtype in ("bfloat16", "float16", "float32") if dtype in types), "float64")

    @property
    def parts(self) -> set[str]:
        """Names of the forms and patterns that are in it."""
        found = {node.origin for node in self.draft.nodes} - {"grown", LEARNED, REAL}
        found |= {"input that is an output"} if self.draft.shown & self.draft.sources.keys() else set()
        return found | ({"output that is read"} if self.draft.shown - self.draft.sources.keys() else set())


def made(
    wishes: Wishes, random: Random, support: Support, seen: Diversity | None = None, material: Material = NOTHING
) -> GeneratedNetwork:
    """Make a network.

    Args:
        wishes: What it should be like.
        random: All that's drawn comes from here.
        support: Element types of the runtime that computes it.
        seen: What guides it towards what is new; the network is added.
        material: What it's made of besides specifications.

    Returns:
        The network.

    Raises:
        NotMadeError: if the runtime doesn't compute what was drawn, or nothing was found to be drawn.
    """
    plain, support = support, wishes.narrowed(support)
    seen = Diversity(wishes.names) if seen is None else seen
    most = max(wishes.most, _LARGE) if random.random() < wishes.large else wishes.most
    deep = random.random() < wishes.deep
    growing = Growing(wishes, random, support, seen, most, deep, material.learned)
    if material.reals:
        return _from_real(material.reals, growing, wishes, plain)
    draft = Draft(wishes.opset)
    named = [name for name, share in sorted(wishes.patterns.items()) if random.random() < share]
    # while there's room for large ones
    chosen = _weave(draft, [(name, patterns()[name].body) for name in named], wishes, most, random, support)
    chosen += _chosen(wishes, random)
    chained = deep or wishes.single
    for nodes in (min(wishes.nodes // 2, wishes.nodes - _ROOM), wishes.nodes - _ROOM // 3)[: 1 if chained else 2]:
        if chained:
            nodes = min(nodes, _PART)
        growing.grow(draft, nodes)
        chosen = _weave(draft, chosen, wishes, most, random, support)
    kept: dict[str, np.ndarray[Any, Any]] = {}
    refused: list[str] = []
    said = "no operator fits the tensors that are there"
    generator = np.random.default_rng(random.getrandbits(64))
    folded = random.random() < wishes.folded
    rounds = _ROUNDS + wishes.nodes // (1 if chained else _NODES_OF_ROUND)
    stirring = rounds // 2 if chained else 0 if folded else _STIRRED
    nodes = min(wishes.nodes, len(draft.nodes) + _PART) if chained else wishes.nodes
    for left in reversed(range(rounds)):
        growing.grow(draft, nodes)
        if not draft.nodes:
            raise NotMadeError(said)
        if not draft.sources:  # constants alone
            draft.cut(draft.nodes[0])
            continue
        if wishes.single and len(draft.nodes) < nodes:  # nothing reads the last tensor
            said = f"no operator fits behind {draft.nodes[-1].op}, or behind the nodes tried in its place"
            draft.cut(draft.nodes[-1])
            draft.keep_last()
            continue
        growing.backward = wishes.backward if chained else 0.0
        settling = Settling(draft, generator)
        found = settling.settled(kept)
        kept = settling.sources
        guilty = settling.guilty or list(filter(None, [_named(draft, settling.message)]))
        if settling.message:
            refused.append(settling.message)
            said = _refusal(settling.message)
        elif guilty:
            said = f"no values were found for which {guilty[0].op} is finite, even with other nodes in its place"
        inputs = _inputs(draft, random, single=wishes.single, folded=folded)
        if (
            settling.computed
            and min(stirring, left) > 0
            and (not guilty if chained else guilty or left == rounds - 1)
        ):
            still = settling.stills(inputs, finite=not chained)
            stirring -= bool(still)
            guilty = [*guilty, *still]
        if found is None and not guilty:
            raise NotMadeError(said)
        if found is not None and not guilty:
            if nodes < wishes.nodes:
                nodes = min(wishes.nodes, nodes + _PART)
                continue
            seen.add(draft)
            share = 0.5 if random.random() < wishes.extremes else 0.0
            network = GeneratedNetwork(draft, settling.pushed(found, random, share), (), tuple(refused))
            return _finished(network, inputs, wishes, random, support)
        if chained:  # what's behind goes, too, where that's no more than was put in last
            guilty = [other for node in guilty for other in _ends(draft, node)]
        for node in guilty:
            if node in draft.nodes:  # what reads sizes that depend on values goes with what makes them
                draft.cut(node)
        if wishes.single and draft.nodes:
            draft.keep_last()
    raise NotMadeError(said)


def _ends(draft: Draft, node: Node) -> list[Node]:
    """A node, behind those that depend on it, the last first, where these are no more than a part."""
    made = draft.reached(filter(None, node.outputs))
    behind = [other for other in reversed(draft.nodes) if not made.isdisjoint(other.outputs)]
    return behind if len(behind) <= _PART else [node]


def _refusal(message: str) -> str:
    return f"ONNX Runtime without optimizations: {message}"


def _from_real(reals: Sequence[GrowingModel], growing: Growing, wishes: Wishes, support: Support) -> GeneratedNetwork:
    generator = np.random.default_rng(growing.random.getrandbits(64))
    found = grown_from(reals, growing, support, wishes.nodes, wishes.changes, generator)
    if found is None:
        raise NotMadeError("no part of the model is valid and finite by itself")
    growing.seen.add(found.draft)
    network = GeneratedNetwork(found.draft, found.values, (), (), real=found.model, changes=found.changes)
    inputs = _inputs(found.draft, growing.random, found.weights, single=wishes.single, folded=True)
    return _finished(network, inputs, wishes, growing.random, support)


def _named(draft: Draft, message: str) -> Node | None:
    """The node that a runtime's message is about."""
    place = re.search(r"(?:[Nn]ame:'|name '|Node \()n(\d+)(?:_\w+)?['\)]", message)
    return None if place is None else draft.nodes[int(place[1])]


def _finished(
    network: GeneratedNetwork, inputs: Sequence[str], wishes: Wishes, random: Random, support: Support
) -> GeneratedNetwork:
    """Let the sources that are no inputs be weights, and leave sizes open; compute it so.

    Raises:
        NotMadeError: if the runtime doesn't compute that.
    """
    draft = network.draft
    if not draft.outputs():
        draft.hidden.clear()
    network.weights = tuple(name for name in draft.sources if name not in inputs)
    if random.random() < wishes.symbolic:
        network.open = open_sizes(draft, tuple(filter(None, inputs)), support, random, batch=random.random() < 0.5)
    _answer(network)
    return network


def _inputs(draft: Draft, random: Random, weights: Collection[str] = (), *, single: bool, folded: bool) -> list[str]:
    """Sources that are inputs.

    Args:
        draft: The network.
        random: What's drawn comes from here.
        weights: Those that are none.
        single: Whether there's one: that on which most nodes depend.
        folded: Whether nodes that depend on sources may depend on weights alone.
    """
    origins = draft.origins().values()
    if single:
        return [max(draft.sources, key=lambda name: sum(name in own for own in origins), default="")]
    inputs = {name for name in draft.sources if name not in weights}
    for name in random.sample([name for name in draft.sources if name in inputs], len(inputs)):
        if random.random() < 0.5 and len(inputs) > 1 and (folded or all(own & inputs != {name} for own in origins)):
            inputs.remove(name)
    return [name for name in draft.sources if name in inputs] or [next(iter(draft.sources), "")]


def _answer(network: GeneratedNetwork) -> None:
    """Compute a network's outputs as it's given away: what a runtime packs weights for differs in the last bits.

    Rarely that's enough for an infinity: all weights are inputs then.

    Raises:
        NotMadeError: if the runtime doesn't compute it.
    """
    said = ""
    for weights in (network.weights, ()):
        network.weights = weights
        try:
            network.answers = run(network.model, network.inputs, network.draft.outputs())
        except RefusedError as error:
            said = _refusal(str(error))
            continue
        flawed = {name: flaw for name, array in network.answers.items() if (flaw := flaw_of(array))}
        if not flawed:
            return
        said = "; ".join(f"{name} is {flaw} in a second run" for name, flaw in flawed.items())
    raise NotMadeError(said)


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
    draft: Draft, chosen: list[tuple[str, Body]], wishes: Wishes, most: int, random: Random, support: Support
) -> list[tuple[str, Body]]:
    """Put forms and patterns into a network; those that don't fit."""
    left = []
    for name, body in chosen:
        weaver = Weaver(draft, random, support, most, name)
        for _ in range(_TRIES):
            with suppress(NotAllowedError):
                with weaver.whole():
                    body(weaver)
                    if len(draft.nodes) > wishes.nodes or (wishes.single and len(draft.outputs()) > 1):
                        raise NotAllowedError("more nodes, or outputs, than there should be")
                draft.sort()
                break
        else:
            left.append((name, body))
    return left
