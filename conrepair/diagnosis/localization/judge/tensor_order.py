"""Inputs and outputs that are taken for one another."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from conrepair.diagnosis.localization.numbers import judging
from conrepair.ground.data.feeds import Feeds
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.metrics.tensors import relative_error
from conrepair.ground.runtime.errors import InferenceError
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.evaluate.pairing import fit, pair_outputs

Array = npt.NDArray[Any]

_WORST = 1e6  # stands for "can't be compared": an assignment takes no infinities
_ALL_ORDERS = 6  # inputs alike; of more, only exchanges of two are tried


def explain_output_order(
    reference: Mapping[str, Array], candidate: Mapping[str, Array]
) -> tuple[Mapping[str, str], str] | None:
    """Find out whether outputs are exchanged, by their values.

    Args:
        reference: The source's outputs, samples first, in its order.
        candidate: The target's.

    Returns:
        Of each of the source's outputs, the target's that holds its values; and the same in words. None when no order
        explains the values, or the given one does.
    """
    names, others = list(reference), list(candidate)
    if len(names) != len(others) or len(names) < 2:
        return None
    # By name where the names are the same, by place else.
    partners = dict(zip(names, names if set(names) == set(others) else others, strict=True))
    given = {name: _error(reference[name], candidate[other]) for name, other in partners.items()}
    wrong = [name for name in names if given[name] > judging.SAME_ANSWERS]  # the others keep their places
    errors = _errors([reference[name] for name in wrong], [candidate[partners[name]] for name in wrong])
    if errors is None:
        return None
    columns = scipy.optimize.linear_sum_assignment(np.minimum(errors, _WORST))[1]
    moved = {name: partners[wrong[column]] for name, column in zip(wrong, columns, strict=True)}
    now = given | {name: float(errors[place, columns[place]]) for place, name in enumerate(wrong)}
    error, before = max(now.values()), max(given.values())
    if error > judging.SAME_ANSWERS:
        return None
    partners |= moved
    listing = ", ".join(f"{name} is in {other}" for name, other in moved.items())
    words = f"outputs are exchanged: {listing}; with that undone, the largest relative error falls from"
    return partners, f"{words} {_number(before)} to {percent(error)}"


def explain_input_order(
    run_target: Callable[[Feeds], Mapping[str, Array]],
    feeds: Feeds,
    inputs: Sequence[TensorSpec],
    expected: Mapping[str, Array],
    *,
    most_runs: int,
) -> tuple[Mapping[str, str], str] | None:
    """Find out whether inputs are exchanged, by feeding them in every order that their shapes and types allow.

    Args:
        run_target: Runs the target on one batch.
        feeds: By the target's input names, as they have been fed.
        inputs: The target's.
        expected: The source's outputs on the same batch.
        most_runs: Orders that are tried at most; those that move fewest inputs come first.

    Returns:
        Of each of the target's inputs, the name under which its values are given; and the same in words. None when no
        order explains the outputs, or the given one does.
    """
    before = _outputs_error(expected, run_target(feeds))
    if before <= judging.SAME_ANSWERS:
        return None
    best, best_error = {}, math.inf
    for order in itertools.islice(_orders(feeds, inputs), most_runs - 1):
        fed = {name: feeds[given] for name, given in order.items()}
        error = _trial_error(run_target, fed, expected)
        if error < best_error:
            best, best_error = order, error
        if error <= judging.SAME_ANSWERS:
            break
    if best_error > judging.SAME_ANSWERS:
        return None
    listing = ", ".join(f"{name} stands for {given} of the original" for name, given in best.items() if name != given)
    words = f"inputs are exchanged: {listing}; with that undone, the relative error falls from"
    return best, f"{words} {_number(before)} to {percent(best_error)}"


def _trial_error(
    run_target: Callable[[Feeds], Mapping[str, Array]], feeds: Feeds, expected: Mapping[str, Array]
) -> float:
    """What outputs differ by; inf where the target can't be run so: an input may take other numbers only."""
    try:
        return _outputs_error(expected, run_target(feeds))
    except InferenceError:
        return math.inf


def _orders(feeds: Feeds, inputs: Sequence[TensorSpec]) -> Iterator[dict[str, str]]:
    """Other orders of the inputs, those that move fewest first."""
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for spec in inputs:
        groups[feeds[spec.name].shape, spec.dtype].append(spec.name)
    alike = [names for names in groups.values() if len(names) > 1]
    for chosen in itertools.product(*map(_ways, alike)):
        order = {spec.name: spec.name for spec in inputs}
        for names, way in zip(alike, chosen, strict=True):
            order.update(zip(names, way, strict=True))
        if any(name != given for name, given in order.items()):
            yield order


def _ways(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Orders of inputs that are alike, those that move fewest first."""
    if len(names) <= _ALL_ORDERS:
        return sorted(itertools.permutations(names), key=lambda way: sum(map(str.__ne__, names, way)))
    ways = [tuple(names)]
    for one, two in itertools.combinations(range(len(names)), 2):
        way = list(names)
        way[one], way[two] = way[two], way[one]
        ways.append(tuple(way))
    return ways


def _outputs_error(expected: Mapping[str, Array], outputs: Mapping[str, Array]) -> float:
    """The worst of the pairs; inf when an output has no partner."""
    pairs, left = pair_outputs(expected, outputs)
    errors = [relative_error(*fit(pair, expected[pair.reference], outputs[pair.candidate])) for pair in pairs]
    return math.inf if left or not errors else max(errors)


def _errors(references: Sequence[Array], candidates: Sequence[Array]) -> npt.NDArray[Any] | None:
    """Of each output with each; None where one is like none, so that no order explains them."""
    norms = [_norm(array) for array in candidates]
    errors = np.full((len(references), len(candidates)), math.inf)
    for row, reference in enumerate(references):
        norm = _norm(reference)
        for column, candidate in enumerate(candidates):
            # What differs by a share has a norm that differs by no more than that, in all layouts.
            if reference.size != candidate.size or not abs(norms[column] - norm) > 2 * judging.SAME_ANSWERS * norm:
                errors[row, column] = _error(reference, candidate)
        if errors[row].min() > judging.SAME_ANSWERS:
            return None
    return errors if len(references) > 1 else None


def _norm(array: Array) -> float:
    """Of all elements; not a number where they aren't real ones."""
    return (
        float(np.linalg.norm(np.asarray(array, np.float64).reshape(-1))) if array.dtype.kind in "fiub" else math.nan
    )


def _error(reference: Array, candidate: Array) -> float:
    """Of two outputs, whatever their layouts; inf when their shapes don't fit."""
    pairs, _ = pair_outputs({"": reference}, {"": candidate})
    return relative_error(*fit(pairs[0], reference, candidate)) if pairs else math.inf


def _number(error: float) -> str:
    return percent(error) if math.isfinite(error) else "infinite"
