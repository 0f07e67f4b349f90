"""Outputs of data-dependent shape, as a detector's boxes: matched row by row, as sets.

A detector's boxes, scores and labels of one sample are one set of rows, as they have the same number of them in each.
The candidate's rows are put in the reference's order: those that overlap most (boxes) or lie nearest stand beside one
another, and are compared as all outputs are. What is left over, and another order, is told of the whole set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.runtime.words import percent
from conrepair.verdicts.evaluate.run import HeldRun, Run
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging.floor import HALF_PRECISIONS

Array = npt.NDArray[Any]
Samples = Sequence[Array]  # the rows of each sample
Match = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]  # places of rows that stand for one another, on both sides

_MOST = 1 << 20  # pairs of rows in a sample that are looked at
_BOX = 4
_TIE = 1e-4  # of the largest number
_NEARER = 1e-6  # of the scale of values, by which another order must be nearer


@dataclass(frozen=True)
class RowSet:
    """How the rows of an output of data-dependent shape differ, in all samples.

    Attributes:
        counts: By sample, the reference's number of rows and the candidate's, where they differ.
        order: Samples whose rows are the same in another order that no near-ties explain.
        ties: Samples whose rows are in another order that near-ties explain.
        rows: Of both sides together, in all samples.
        unmatched: Rows of either that have no partner.
        own: Largest share of rows that the reference itself has more or fewer of in another arithmetic.
    """

    counts: Mapping[int, tuple[int, int]]
    order: Sequence[int]
    ties: Sequence[int]
    rows: int
    unmatched: int
    own: float

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on how rows were compared."""
        found = ["the output's shape depends on the data: rows are matched within each sample, in any order"]
        if self.ties:
            found.append(f"rows of nearly equal scores are in another order in {_samples(self.ties)}")
        return tuple(found)

    def judge(self, tolerance: Tolerance, *, quantized: bool, precision: str) -> tuple[Verdict, str] | None:
        """The verdict on the set as a whole; None where nothing speaks against it.

        Args:
            tolerance: Has the share that may differ where few bits are meant.
            quantized: Whether they are.
            precision: Whose rounding is to be expected.
        """
        if not self.rows:
            return Verdict.UNDECIDED, "neither model gives a row for any sample: can't tell. Try your own data"
        if not self.counts and not self.order:
            return None
        if not self.counts:
            words = f"the rows are the same, but in another order in {_samples(self.order)}"
            return Verdict.FAULTY, f"{words}: code that takes the first row gets another one"
        first, (ours, theirs) = next(iter(self.counts.items()))
        others = f" (and another number in {len(self.counts) - 1} more samples)" if len(self.counts) > 1 else ""
        words = f"the original gives {ours} {'row' if ours == 1 else 'rows'} for sample {first}, the converted model "
        words += f"{theirs}{others}"
        share, most = self.unmatched / self.rows, tolerance.quantized_top1
        if quantized and share <= most:
            return Verdict.QUANTIZED, f"a quantized model, error within the limit: {words}"
        if quantized:
            words = f"{words}; {percent(share)} of all rows have no counterpart (limit {percent(most)})"
            return Verdict.FAULTY, f"a quantized model, error above the limit: {words}"
        if self.own and share <= self.own:
            words = f"{words}; the original gives other rows, too, when it is computed in another arithmetic"
            return Verdict.UNDECIDED, f"{words}: can't tell rounding from a fault"
        if precision in HALF_PRECISIONS and share <= most:
            return Verdict.UNDECIDED, f"{words}; rounding to {precision} may decide which rows there are"
        return Verdict.FAULTY, words


def in_rows(
    reference: Run, candidate: Run, others: Sequence[Run | None]
) -> tuple[Run, Run, Sequence[Run | None], Mapping[str, RowSet]]:
    """Put the rows of outputs whose number varies beside one another; runs without such are what they were.

    Args:
        reference: The specification.
        candidate: The run to judge; over the same samples.
        others: The reference's model by other means, over the first samples.

    Returns:
        All of these, and the sets by the reference's outputs.
    """
    if not (reference.lengths or candidate.lengths):
        return reference, candidate, others, {}
    partners = dict(_partners(reference, candidate))
    ours: dict[str, Samples] = {}
    theirs: dict[str, Samples] = {}  # by the reference's outputs, too
    groups: dict[tuple[tuple[int, ...], ...], list[str]] = {}  # as many rows in every sample, on both sides
    for one, two in partners.items():
        varying = reference.arrays[one] if one in reference.lengths else candidate.arrays[two]
        sides = (reference, one), (candidate, two)
        mine, other = (_rows(run, name, varying.shape[1:]) for run, name in sides)
        if mine is not None and other is not None and mine[0].shape[1:] == other[0].shape[1:]:
            ours[one], theirs[one] = mine, other
            groups.setdefault(tuple(tuple(map(len, side)) for side in (mine, other)), []).append(one)
    more: list[dict[str, Samples]] = [{} for _ in others]
    sets: dict[str, RowSet] = {}
    for group in groups.values():
        columns = [_Column(ours[name], theirs[name]) for name in group]
        matches = [_match(columns, sample) for sample in range(reference.count)]
        own = 0.0
        for run, found in zip(others, more, strict=True):
            share, rows = _as_reference(run, {name: ours[name] for name in group}, matches)
            own = max(own, share)
            found.update(rows)
        sets |= dict.fromkeys(group, _told(columns, matches, own))
        for name in group:
            ours[name] = [rows[places] for rows, (places, _) in zip(ours[name], matches, strict=True)]
            theirs[name] = [rows[places] for rows, (_, places) in zip(theirs[name], matches, strict=True)]
    return (
        _held(reference, ours),
        _held(candidate, {partners[name]: rows for name, rows in theirs.items()}),
        [None if run is None else _held(run, found, set(ours)) for run, found in zip(others, more, strict=True)],
        sets,
    )


class _Column:
    """An output of both sides, and how large its values are."""

    def __init__(self, one: Samples, two: Samples) -> None:
        self.one, self.two = one, two
        self.real = one[0].dtype.kind in "fc" and two[0].dtype.kind in "fc"
        values = np.concatenate(one) if self.real else np.zeros(0)
        self.scale = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) or 1.0

    def costs(self, one: Array, two: Array) -> Array:
        """How far each row lies from each other one, 0 to 1; boxes up to 2."""
        one, two = (rows.reshape(len(rows), 1, -1) for rows in (one, two))
        two = two.swapaxes(0, 1)
        if not one.size:
            return np.zeros((len(one), two.shape[1]))
        if not self.real:
            return np.asarray((one != two).mean(axis=2))
        one, two = one.astype(np.float64), two.astype(np.float64)
        apart = np.nan_to_num(np.abs(one - two) / self.scale, nan=1.0, posinf=1.0).clip(0.0, 1.0).mean(axis=2)
        # The corners of boxes, the first ones in front of the others.
        if one.shape[2] == _BOX and all(np.all(boxes[..., :2] <= boxes[..., 2:]) for boxes in (one, two)):
            apart += 1.0 - _overlap(one, two)
        return np.asarray(apart)


def _match(columns: Sequence[_Column], sample: int) -> Match:
    """Match rows: equal rows at the beginning and end stay there, the others are assigned by distance."""
    from scipy.optimize import linear_sum_assignment

    rows = [(column.one[sample], column.two[sample]) for column in columns]
    one, two = (len(side) for side in rows[0])
    first = min(_same(mine, theirs) for mine, theirs in rows)
    last = min(_same(mine[first:][::-1], theirs[first:][::-1]) for mine, theirs in rows)
    left = one - first - last, two - first - last
    middle = np.arange(min(left)), np.arange(min(left))
    if min(left) and left[0] * left[1] <= _MOST:
        parts = [(mine[first : one - last], theirs[first : two - last]) for mine, theirs in rows]
        costs = np.asarray(sum(column.costs(*part) for column, part in zip(columns, parts, strict=True)))
        chosen = linear_sum_assignment(costs)
        if left[0] != left[1] or costs[chosen].sum() < costs[middle].sum() - _NEARER * left[0]:
            middle = chosen
    front, back = np.arange(first), np.arange(last)
    return (
        np.concatenate([front, middle[0] + first, back + one - last]),
        np.concatenate([front, middle[1] + first, back + two - last]),
    )


def _same(one: Array, two: Array) -> int:
    """How many rows at the beginning are equal."""
    count = min(len(one), len(two))
    equal = np.asarray(one[:count] == two[:count]).all(axis=tuple(range(1, one.ndim)))
    return int(np.append(equal, False).argmin())


def _overlap(one: Array, two: Array) -> Array:
    """Intersection over union of boxes."""
    sides = np.minimum(one[..., 2:], two[..., 2:]) - np.maximum(one[..., :2], two[..., :2])
    shared = np.prod(sides.clip(0.0), axis=2)
    areas = [np.prod(boxes[..., 2:] - boxes[..., :2], axis=2) for boxes in (one, two)]
    union = areas[0] + areas[1] - shared
    return np.asarray(np.divide(shared, union, out=np.zeros_like(shared), where=union > 0))


def _partners(reference: Run, candidate: Run) -> Iterator[tuple[str, str]]:
    """Outputs by name where both have the same ones, else in order."""
    ours, theirs = ([spec.name for spec in run.outputs] for run in (reference, candidate))
    named = set(ours) == set(theirs)
    for one, two in zip(ours, ours if named else theirs, strict=False):
        if one in reference.lengths or two in candidate.lengths:
            yield one, two


def _rows(run: Run, name: str, sizes: tuple[int, ...]) -> Samples | None:
    """An output as rows; one of which each sample happens to have as much has rows of given sizes, or None."""
    array = run.arrays[name]
    if name in run.lengths:
        return np.split(array, np.cumsum(run.lengths[name])[:-1])
    turned = [array[:, None], *(np.moveaxis(array, axis, 1) for axis in range(1, array.ndim))]
    return next((list(samples) for samples in turned if samples.shape[2:] == sizes), None)


def _as_reference(
    run: Run | None, ours: Mapping[str, Samples], matches: Sequence[Match]
) -> tuple[float, dict[str, Samples]]:
    """The reference's model by other means, in the reference's order: the share of rows it hasn't, and its rows.

    Where it has other rows, nothing stands beside the reference's.
    """
    if run is None or any(name not in run.arrays for name in ours):
        return 0.0, {}
    known = {name: _rows(run, name, rows[0].shape[1:]) for name, rows in ours.items()}
    there = {name: rows for name, rows in known.items() if rows is not None}
    if len(there) < len(ours):
        return 1.0, {}
    columns = [_Column(ours[name], rows) for name, rows in there.items()]
    mine, lengths = (np.array([len(rows) for rows in side[: run.count]]) for side in (columns[0].one, columns[0].two))
    if not np.array_equal(lengths, mine):
        return float(np.abs(lengths - mine).sum() / max(1, mine.sum() + lengths.sum())), {}
    found = [_match(columns, sample) for sample in range(run.count)]
    places = [two[np.argsort(one)][kept] for (one, two), (kept, _) in zip(found, matches, strict=False)]
    return 0.0, {
        name: [part[chosen] for part, chosen in zip(rows, places, strict=True)] for name, rows in there.items()
    }


def _told(columns: Sequence[_Column], matches: Sequence[Match], own: float) -> RowSet:
    counts = [(len(one), len(two)) for one, two in zip(columns[0].one, columns[0].two, strict=True)]
    differing = {place: both for place, both in enumerate(counts) if both[0] != both[1]}
    moved = [place for place, match in enumerate(matches) if place not in differing and not np.array_equal(*match)]
    ties = [place for place in moved if any(_tied(column, place, matches[place]) for column in columns)]
    order = [place for place in moved if place not in ties]
    rows, matched = sum(map(sum, counts)), sum(len(ours) for ours, _ in matches)
    return RowSet(differing, order, ties, rows, rows - 2 * matched, own)


def _tied(column: _Column, sample: int, match: Match) -> bool:
    """Whether rows are sorted by a number that's as good as equal where they changed places."""
    rows = column.one[sample]
    if not column.real or rows.size != len(rows):
        return False
    values = rows.reshape(-1).astype(np.float64)
    steps = np.diff(values)
    if not (np.all(steps <= 0) or np.all(steps >= 0)) or not steps.any():
        return False
    moved = values[match[0][np.argsort(match[1])]]
    return bool(np.abs(moved - values).max() <= _TIE * column.scale)


def _samples(places: Sequence[int]) -> str:
    first = f"sample {places[0]}"
    return f"{first} and {len(places) - 1} more samples" if len(places) > 1 else first


def _held(run: Run, rows: Mapping[str, Samples], without: set[str] | None = None) -> HeldRun:
    """A run with some outputs as other rows; without those of a set that there are none of."""
    known = {item.name: getattr(run, item.name) for item in fields(Run)}
    gone = (without or set()) - set(rows)
    known["outputs"] = tuple(spec for spec in run.outputs if spec.name not in gone)
    arrays = run.arrays | {name: np.concatenate(parts) for name, parts in rows.items()}
    lengths = {name: item for name, item in run.lengths.items() if name not in gone}
    lengths |= {name: np.array([len(part) for part in parts], np.int64) for name, parts in rows.items()}
    return HeldRun(**known, held=arrays, rows=lengths)
