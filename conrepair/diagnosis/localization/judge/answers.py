"""Outputs that are right but elsewhere: other classes, another activation, another output, another size."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy

from conrepair.diagnosis.localization.align.alignment import Alignment
from conrepair.diagnosis.localization.align.outputs import named_alike, partners, vary
from conrepair.diagnosis.localization.faces.steps.steps import moves_before
from conrepair.diagnosis.localization.judge.label_mapping import explain_class_permutation, explain_label_shift
from conrepair.diagnosis.localization.judge.tensor_order import explain_output_order
from conrepair.diagnosis.localization.numbers import judging
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.formats.networks.network import Network
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, Node
from conrepair.ground.metrics.probabilities import softmax
from conrepair.ground.metrics.spread import error_of_spread
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.evaluate.answers import as_scores

_misfit = functools.partial(LocatedFault.of_error, Kind.STRUCTURE)


# Answers of which one side has an activation that the other hasn't: softmax, log-softmax, sigmoid.

_Float64 = npt.NDArray[np.float64]


def explain_final_activation(reference: Array, candidate: Array) -> str | None:
    """Find out whether outputs differ by a softmax, log-softmax or sigmoid.

    Args:
        reference: The source's answers, [N, ..., C].
        candidate: The target's, of the same shape.

    Returns:
        The activation, in words; None when none explains the answers, or none is needed.
    """
    if reference.shape != candidate.shape or reference.ndim < 2 or reference.shape[-1] < 2:
        return None
    source, target = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
    before = error_of_spread(source, target)
    if not (np.isfinite(source).all() and np.isfinite(target).all()) or before <= judging.SAME_ANSWERS:
        return None
    found = []
    for name, function in _ACTIVATIONS.items():
        found.append((error_of_spread(function(source), target), name, "added"))
        found.append((error_of_spread(source, function(target)), name, "missing"))
    error, name, side = min(found)
    if error > judging.SAME_ANSWERS:
        return None
    again = side == "added" and name != "log-softmax" and _has_gone_through(name, source)
    if again:
        what = f"the converted model applies {name} twice to its outputs"
    elif side == "added":
        what = f"the converted model applies {name} to its outputs, the original doesn't"
    else:
        what = f"the original applies {name} to its outputs, the converted model doesn't"
    return f"{what}; with that undone, the relative error falls from {percent(before)} to {percent(error)}"


def _has_gone_through(name: str, values: _Float64) -> bool:
    within = bool((values >= 0).all() and (values <= 1).all())
    return within and (name != "softmax" or bool(np.allclose(values.sum(axis=-1), 1, atol=1e-3)))


_ACTIVATIONS: dict[str, Callable[[_Float64], _Float64]] = {
    "softmax": softmax,
    "log-softmax": lambda values: np.asarray(scipy.special.log_softmax(values, axis=-1)),
    "sigmoid": lambda values: np.asarray(scipy.special.expit(values)),
}


_MOST_CLASSES = 4096  # of which an order is looked for: every two of them are compared
_OWN_CAUSE = {Kind.PARAMETERS, Kind.HYPERPARAMETERS, Kind.PRECISION}


@dataclass(frozen=True)
class Answer:
    """An output of both models, on one batch.

    Attributes:
        source: Name of the source's output.
        target: Name of the target's.
        source_tensor: The graph's tensor.
        target_tensor: The same of the target.
        expected: What the source gives, samples first.
        computed: What the target gives there, fed with the source's activations before.
    """

    source: str
    target: str
    source_tensor: str
    target_tensor: str
    expected: Array
    computed: Array


def explained(fault: LocatedFault, expected: Array, computed: Array) -> LocatedFault:
    """A fault at an output, with what the answers say of it.

    What a layer's weights or attributes explain stays of that kind: the words are added.

    Args:
        fault: Its end is an output.
        expected: What the source gives there, samples first.
        computed: What the target gives, in the source's layout.
    """
    found = _relation(expected, computed)
    if found is None:
        return fault
    kind, words = found
    if fault.kind in _OWN_CAUSE:
        return replace(fault, evidence=(*fault.evidence, words))
    return replace(fault, kind=kind, evidence=(words, *fault.evidence))


def exchanged_outputs(faults: Sequence[LocatedFault], answers: Sequence[Answer]) -> list[LocatedFault]:
    """Faults, those at outputs that hold one another's values put together.

    Args:
        faults: The guiltiest first.
        answers: All outputs of both.
    """
    expected = {answer.source: answer.expected for answer in answers}
    computed = {answer.target: answer.computed for answer in answers}
    order = explain_output_order(expected, computed) if len(answers) > 1 else None
    if order is None:
        return list(faults)
    known, words = order
    moved = [item for item in answers if known.get(item.source, item.target) != item.target]
    ends = {(item.source_tensor, item.target_tensor) for item in moved}
    own = [fault for fault in faults if (fault.source_tensor, fault.target_tensor) in ends]
    if not own:
        return list(faults)
    first = replace(
        own[0],
        kind=Kind.STRUCTURE,
        source_layers=tuple(dict.fromkeys(name for fault in own for name in fault.source_layers)),
        target_layers=tuple(dict.fromkeys(name for fault in own for name in fault.target_layers)),
        evidence=tuple(dict.fromkeys([words, *(text for fault in own for text in fault.evidence)])),
        confidence=1.0,
    )
    return [first if fault is own[0] else fault for fault in faults if fault is own[0] or fault not in own]


def misfits(source: Network, target: Network, alignment: Alignment, answers: Sequence[Answer]) -> list[LocatedFault]:
    """Outputs that can't be compared number by number: of another size, missing, or more than the source has.

    Args:
        source: The network that is right.
        target: The other one.
        alignment: Of both.
        answers: All outputs of both.
    """
    cuts = [pair.source for pair in alignment.pairs], [pair.target for pair in alignment.pairs]
    faults = [
        _of_another_size(source, target, cuts, answer)
        for answer in answers
        if answer.computed.size != answer.expected.size
        and not vary(source, target, answer.source_tensor, answer.target_tensor)
    ]
    known = partners(source, target, {pair.target: pair.source for pair in alignment.pairs})
    ours, theirs = source.output_names, target.output_names
    lost = set(ours).difference(one for one, _ in known) if len(theirs) < len(ours) else set()
    extra = set(theirs).difference(two for _, two in known) if len(theirs) > len(ours) else set()
    for name in filter(lost.__contains__, ours):
        words = f"the converted model lacks the output `{name}`: it has {len(theirs)}, the original {len(ours)}"
        faults.append(_misfit((ours[name], _layers(source, cuts[0], ours[name])), ("", ()), [words]))
    for name in filter(extra.__contains__, theirs):
        words = f"the converted model has an extra output `{name}`: it has {len(theirs)}, the original {len(ours)}"
        fault = _misfit(("", ()), (theirs[name], _layers(target, cuts[1], theirs[name])), [words])
        faults.append(replace(fault, full_run_error=0.0))  # what both give is compared by itself
    return faults


def with_changed_face(
    faults: Sequence[LocatedFault], source: Network, target: Network, alignment: Alignment, face: Mapping[str, str]
) -> list[LocatedFault]:
    """Faults, with what callers of the target get otherwise whatever the numbers are.

    Args:
        faults: That were found.
        source: The network that is right.
        target: The other one.
        alignment: Of both.
        face: By the source's outputs and inputs, what differs, in words.
    """
    found = list(faults)
    known = partners(source, target, {pair.target: pair.source for pair in alignment.pairs})
    tensors = {one: (source.output_names[one], target.output_names[two]) for one, two in known}
    inputs = named_alike(list(source.input_names), list(target.input_names))
    tensors |= {one: (source.input_names[one], target.input_names[two]) for one, two in inputs if one not in tensors}
    cuts = [pair.source for pair in alignment.pairs], [pair.target for pair in alignment.pairs]
    sides = source, target
    for output, words in face.items():
        if output not in tensors:
            continue
        ours, theirs = tensors[output]
        own = next((place for place, fault in enumerate(found) if fault.target_tensor == theirs), None)
        if own is not None:
            found[own] = replace(found[own], evidence=(*found[own].evidence, words))
            continue
        layers = [_layers(source, cuts[0], ours), _layers(target, cuts[1], theirs)]
        for place, whose in enumerate(("original", "converted model")):
            if moved := _moves(sides[place], tensors[output][place], sides[1 - place], tensors[output][1 - place]):
                names = ", ".join(f"{node.op} `{node.layer}`" for node in moved)
                words = f"{names} is only in the {whose}: {words}"
                layers[place] = tuple(dict.fromkeys([*(node.layer for node in moved), *layers[place]]))
        found.append(replace(_misfit((ours, layers[0]), (theirs, layers[1]), [words]), full_run_error=0.0))
    return found


def _moves(network: Network, end: str, other: Network, others_end: str) -> list[Node]:
    """What moves values in front of an output and has none of its sort there in another network."""
    sides = moves_before(network.graph, end), moves_before(other.graph, others_end)
    mine, theirs = ([node for node in side if node.op != "Identity"] for side in sides)
    left = Counter(node.op for node in mine) - Counter(node.op for node in theirs)
    return [node for place, node in enumerate(mine) if sum(one.op == node.op for one in mine[:place]) < left[node.op]]


def _of_another_size(
    source: Network, target: Network, cuts: tuple[list[str], list[str]], answer: Answer
) -> LocatedFault:
    computed = answer.computed
    shapes = f"output `{answer.target}` is {list(computed.shape)}, the original's `{answer.source}` "
    words = [f"{shapes}{list(answer.expected.shape)}"]
    scores = as_scores(answer.expected), as_scores(computed)
    error = math.inf
    if scores[0] is not None and scores[1] is not None:
        shift = explain_label_shift(scores[0], scores[1])
        if shift is not None:
            found, error = shift
            words.insert(0, found)
    ours, theirs = answer.source_tensor, answer.target_tensor
    return _misfit((ours, _layers(source, cuts[0], ours)), (theirs, _layers(target, cuts[1], theirs)), words, error)


def _relation(expected: Array, computed: Array) -> tuple[Kind, str] | None:
    if expected.shape != computed.shape or expected.dtype.kind != "f" or computed.dtype.kind != "f":
        return None
    activation = explain_final_activation(expected, computed)
    if activation is not None:
        return Kind.GRAPH, activation
    scores = as_scores(expected), as_scores(computed)
    if scores[0] is None or scores[1] is None:
        return None
    shift = explain_label_shift(scores[0], scores[1])
    if shift is not None:
        return Kind.STRUCTURE, shift[0]
    if scores[0].shape[1] > _MOST_CLASSES:
        return None
    order = explain_class_permutation(scores[0], scores[1])
    return None if order is None else (Kind.STRUCTURE, order)


def _layers(network: Network, cuts: Sequence[str], end: str) -> tuple[str, ...]:
    """What computes an output from the nearest cuts; what has weights first."""
    nodes = network.graph.between([*network.graph.inputs, *(name for name in cuts if name != end)], [end])
    ordered = sorted(nodes, key=lambda node: not node.parameters)
    return tuple(dict.fromkeys(node.layer for node in ordered)) or (end,)
