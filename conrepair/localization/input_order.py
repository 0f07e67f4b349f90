"""Faults that inputs explain which are taken for one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from conrepair.data.feeds import Feeds as NamedFeeds
from conrepair.data.tensor_spec import TensorSpec
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Array
from conrepair.localization.answers import Answer
from conrepair.localization.pieces import Pieces
from conrepair.localization.result import LocatedFault
from conrepair.localization.tensor_order import explain_input_order
from conrepair.networks.network import Network

__all__ = ["with_exchanged_inputs"]

_MOST_RUNS = 30


def with_exchanged_inputs(
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
        values = dict(given)
        values.update(whole.run(values.__getitem__))
        return {name: values[tensor] for name, tensor in ends.items()}

    expected = {answer.target: answer.expected for answer in answers}
    order = explain_input_order(run, dict(feeds), specs, expected, most_runs=_MOST_RUNS)
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
