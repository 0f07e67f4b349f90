"""Outputs that have as many rows as a sample's values make them have: matched row by row, as sets.

A detector's boxes, scores and labels of one sample are one set of rows, as they have the same number of them in each.
The candidate's rows are put in the reference's order: those that overlap most (boxes) or lie nearest stand beside one
another, and are compared as all outputs are. What is left over, and another order, is told of the whole set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.evaluate.run import HeldRun, Run
from conrepair.evaluate.tolerance import Tolerance
from conrepair.evaluate.verdict import Verdict
from conrepair.judging.floor import HALF_PRECISIONS

Array = npt.NDArray[Any]
Indices = npt.NDArray[np.intp]

_MOST = 1 << 20  # pairs of rows in a sample that are looked at
_BOX = 4
_TIE = 1e-4  # of the largest number
_NEARER = 1e-6  # of the scale of values, by which another order must be nearer


@dataclass(frozen=True)
class RowSet:
    """What is to be said of a set of rows as a whole.

    Attributes:
        outputs: The reference's names of them.
        counts: By sample, the reference's number of rows and the candidate's, where they differ.
        order: Samples whose rows are the same in another order that no near-ties explain.
        ties: Samples whose rows are in another order that near-ties explain.
        rows: Of the reference, and of the candidate, in all samples.
        unmatched: Rows of either that have no partner.
        own: Largest share of rows that the reference itself has more or fewer of in another arithmetic.
    """

    outputs: tuple[str, ...]
    counts: Mapping[int, tuple[int, int]]
    order: tuple[int, ...]
    ties: tuple[int, ...]
    rows: tuple[int, int]
    unmatched: int
    own: float = 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of how rows were compared."""
        found = ["the number of rows varies between samples; compared as sets of rows, sample by sample"]
        if self.ties:
            found.append(f"rows that are as good as equal change places in {_samples(self.ties)}")
        return tuple(found)

    def judge(self, tolerance: Tolerance, *, quantized: bool, precision: str) -> tuple[Verdict, str] | None:
        """The verdict on the set as a whole; None where nothing speaks against it.

        Args:
            tolerance: Has the share that may differ where few bits are meant.
            quantized: Whether they are.
            precision: Whose rounding is to be expected.
        """
        if not any(self.rows):
            return Verdict.UNDECIDED, "no sample has any row, on either side: nothing can be told from them"
        if not self.counts and not self.order:
            return None
        if not self.counts:
            words = f"the same rows in another order in {_samples(self.order)}"
            return Verdict.FAULTY, f"{words}: who takes the first one gets another"
        first, (ours, theirs) = next(iter(self.counts.items()))
        others = f", and other numbers in {len(self.counts) - 1} more" if len(self.counts) > 1 else ""
        words = f"{ours} {'row' if ours == 1 else 'rows'} against {theirs} in sample {first}{others}"
        share, most = self.unmatched / sum(self.rows), tolerance.quantized_top1
        if quantized:
            right = share <= most
            return (
                (Verdict.QUANTIZED, f"a quantized model, within its budget: {words}")
                if right
                else (
                    Verdict.FAULTY,
                    f"more than quantization explains: {words}; {share:.0%} of all rows have no partner",
                )
            )
        if self.own and share <= self.own:
            return Verdict.UNDECIDED, (
                f"{words}; the source itself has other rows in another arithmetic: a fault would look the same"
            )
        if precision in HALF_PRECISIONS and share <= most:
            return Verdict.UNDECIDED, f"{words}; the rounding of {precision} may decide which rows there are"
        return Verdict.FAULTY, words


@dataclass(frozen=True)
class Rows:
    """Runs whose rows stand beside one another.

    Attributes:
        reference: The specification.
        candidate: The run to judge.
        others: The reference's model by other means.
        sets: By the reference's outputs.
    """

    reference: Run
    candidate: Run
    others: tuple[Run | None, ...]
    sets: Mapping[str, RowSet] = field(default_factory=dict)


def in_rows(reference: Run, candidate: Run, others: Sequence[Run | None]) -> Rows:
    """Put the rows of outputs whose number varies beside one another; runs without such are what they were.

    Args:
        reference: The specification.
        candidate: The run to judge; over the same samples.
        others: The reference's model by other means, over the first samples.
    """
    if not (reference.lengths or candidate.lengths):
        return Rows(reference, candidate, tuple(others))
    partners = dict(_partners(reference, candidate))
    ours: dict[str, _Rows] = {}
    theirs: dict[str, _Rows] = {}
    for one, two in partners.items():
        both = _both(reference, one, candidate, two)
        if both is not None:
            ours[one], theirs[two] = both
    held: list[dict[str, _Rows]] = [dict(ours), dict(theirs)]
    more: list[dict[str, _Rows]] = [{} for _ in others]
    sets: dict[str, RowSet] = {}
    for group in _groups(ours, {one: theirs[partners[one]] for one in ours}):
        columns = [_Column(ours[one], theirs[partners[one]]) for one in group]
        matches = [_match(columns, sample) for sample in range(reference.count)]
        own = 0.0
        for run, found in zip(others, more, strict=True):
            share, rows = _as_reference(run, group, ours, [match.ours for match in matches])
            own = max(own, share)
            found.update(rows)
        for one in group:
            held[0][one] = ours[one].taken([match.ours for match in matches])
            held[1][partners[one]] = theirs[partners[one]].taken([match.theirs for match in matches])
        found_set = _told(group, columns, matches, own)
        sets |= dict.fromkeys(group, found_set)
    return Rows(
        _held(reference, held[0]),
        _held(candidate, held[1]),
        tuple(None if run is None else _held(run, found, set(ours)) for run, found in zip(others, more, strict=True)),
        sets,
    )


@dataclass(frozen=True)
class _Rows:
    """An output as rows.

    Attributes:
        values: Of all samples, one behind the other.
        lengths: How many each sample has.
    """

    values: Array
    lengths: npt.NDArray[np.int64]

    def of(self, sample: int) -> Array:
        start = int(self.lengths[:sample].sum())
        return self.values[start : start + int(self.lengths[sample])]

    def taken(self, indices: Sequence[Indices]) -> _Rows:
        """Some rows of each sample, in some order."""
        starts = np.concatenate([[0], np.cumsum(self.lengths)])
        places = [np.asarray(chosen) + start for chosen, start in zip(indices, starts, strict=False)]
        lengths = np.array([len(chosen) for chosen in indices], np.int64)
        return _Rows(self.values[np.concatenate(places).astype(np.intp)], lengths)


class _Column:
    """An output of both sides, and how large its values are."""

    def __init__(self, one: _Rows, two: _Rows) -> None:
        self.one, self.two = one, two
        self.real = one.values.dtype.kind in "fc" and two.values.dtype.kind in "fc"
        finite = one.values[np.isfinite(one.values)] if self.real else one.values[:0]
        self.scale = float(np.abs(finite).max(initial=0.0)) or 1.0

    def costs(self, one: Array, two: Array) -> Array:
        """How far each row lies from each other one, 0 to 1."""
        one, two = one.reshape(len(one), -1), two.reshape(len(two), -1)
        if not self.real:
            apart = one[:, None] != two[None]
        elif one.shape[1] == _BOX and _are_boxes(one) and _are_boxes(two):
            return 1.0 - _overlap(one.astype(np.float64), two.astype(np.float64)) + self._distance(one, two)
        else:
            return self._distance(one, two)
        return np.asarray(apart.mean(axis=2)) if one.shape[1] else np.zeros((len(one), len(two)))

    def _distance(self, one: Array, two: Array) -> Array:
        if not one.shape[1]:
            return np.zeros((len(one), len(two)))
        apart = np.abs(one[:, None].astype(np.float64) - two[None].astype(np.float64)) / self.scale
        return np.asarray(np.nan_to_num(apart, nan=1.0, posinf=1.0).clip(0.0, 1.0).mean(axis=2))


@dataclass(frozen=True)
class _Match:
    """Which rows of a sample stand for one another.

    Attributes:
        ours: Places of the reference's, in their order.
        theirs: Of the candidate's.
    """

    ours: Indices
    theirs: Indices

    @property
    def moved(self) -> bool:
        return not np.array_equal(self.ours, self.theirs)


def _match(columns: Sequence[_Column], sample: int) -> _Match:
    """What's the same at the beginning and at the end stays there; the others are assigned."""
    rows = [(column.one.of(sample), column.two.of(sample)) for column in columns]
    one, two = (len(side) for side in rows[0])
    fewer = min(one, two)
    same = _same([(mine[:fewer], theirs[:fewer]) for mine, theirs in rows])
    first = fewer if same.all() else int(same.argmin())
    same = _same([(mine[one - fewer :], theirs[two - fewer :]) for mine, theirs in rows])[::-1]
    last = min(fewer - first, fewer if same.all() else int(same.argmin()))
    left = one - first - last, two - first - last
    kept = np.arange(min(left))
    middle = _Match(kept, kept)
    if min(left) and left[0] * left[1] <= _MOST:
        parts = [(mine[first : one - last], theirs[first : two - last]) for mine, theirs in rows]
        costs = np.asarray(sum(column.costs(*part) for column, part in zip(columns, parts, strict=True)))
        chosen = _assigned(costs)
        before, behind = (float(costs[match.ours, match.theirs].sum()) for match in (middle, chosen))
        if left[0] != left[1] or behind < before - _NEARER * left[0]:
            middle = chosen
    front, back = np.arange(first), np.arange(last)
    return _Match(
        np.concatenate([front, middle.ours + first, back + one - last]),
        np.concatenate([front, middle.theirs + first, back + two - last]),
    )


def _same(rows: Sequence[tuple[Array, Array]]) -> npt.NDArray[np.bool_]:
    """Which rows are equal in all outputs."""
    found = np.ones(len(rows[0][0]), np.bool_)
    for one, two in rows:
        equal = np.asarray(one == two)
        found &= equal.all(axis=tuple(range(1, equal.ndim)))
    return found


def _assigned(costs: Array) -> _Match:
    """The pairs of rows that cost least together."""
    from scipy.optimize import linear_sum_assignment

    ours, theirs = linear_sum_assignment(costs)
    return _Match(ours, theirs)


def _are_boxes(rows: Array) -> bool:
    """Whether rows have the corners of boxes, the first ones in front of the others."""
    return bool(np.all(rows[:, :2] <= rows[:, 2:]))


def _overlap(one: Array, two: Array) -> Array:
    """Intersection over union of each box and each other one."""
    low, high = np.maximum(one[:, None, :2], two[None, :, :2]), np.minimum(one[:, None, 2:], two[None, :, 2:])
    shared = np.prod((high - low).clip(0.0), axis=2)
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (one, two)]
    union = areas[0][:, None] + areas[1][None] - shared
    return np.asarray(np.divide(shared, union, out=np.zeros_like(shared), where=union > 0))


def _partners(reference: Run, candidate: Run) -> Iterator[tuple[str, str]]:
    """Outputs by name where both have the same ones, else in order."""
    ours, theirs = ([spec.name for spec in run.outputs] for run in (reference, candidate))
    named = set(ours) == set(theirs)
    for one, two in zip(ours, ours if named else theirs, strict=False):
        if one in reference.lengths or two in candidate.lengths:
            yield one, two


def _both(reference: Run, one: str, candidate: Run, two: str) -> tuple[_Rows, _Rows] | None:
    """Both outputs as rows; None where one has none of the other's kind."""
    sides = (reference, one), (candidate, two)
    known = [_Rows(run.arrays[name], run.lengths[name]) if name in run.lengths else None for run, name in sides]
    for place, (run, name) in enumerate(sides):
        if known[place] is None:
            known[place] = _as_rows(run.arrays[name], known[1 - place])
    first, second = known
    if first is None or second is None or first.values.shape[1:] != second.values.shape[1:]:
        return None
    return first, second


def _as_rows(array: Array, other: _Rows | None) -> _Rows | None:
    """An output of which each sample happens to have as much, as rows like another's."""
    wanted = () if other is None else other.values.shape[1:]
    if array.shape[1:] == wanted:
        return _Rows(array, np.ones(len(array), np.int64))
    for axis in range(1, array.ndim):
        turned = np.moveaxis(array, axis, 1)
        if turned.shape[2:] == wanted:
            values = np.ascontiguousarray(turned).reshape(-1, *wanted)
            return _Rows(values, np.full(len(array), turned.shape[1], np.int64))
    return None


def _groups(ours: Mapping[str, _Rows], theirs: Mapping[str, _Rows]) -> list[list[str]]:
    """Outputs that have as many rows as one another in every sample, on both sides."""
    found: dict[tuple[bytes, bytes], list[str]] = {}
    for name, rows in ours.items():
        found.setdefault((rows.lengths.tobytes(), theirs[name].lengths.tobytes()), []).append(name)
    return list(found.values())


def _as_reference(
    run: Run | None, group: Sequence[str], ours: Mapping[str, _Rows], kept: Sequence[Indices]
) -> tuple[float, dict[str, _Rows]]:
    """The reference's model by other means, in the reference's order: the share of rows it hasn't, and its rows.

    Where it has other rows, nothing stands beside the reference's.
    """
    if run is None or any(name not in run.arrays for name in group):
        return 0.0, {}
    known: dict[str, _Rows] = {}
    for name in group:
        first = _Rows(ours[name].values, ours[name].lengths[: run.count])
        rows = (
            _Rows(run.arrays[name], run.lengths[name]) if name in run.lengths else _as_rows(run.arrays[name], first)
        )
        if rows is None:
            return 1.0, {}
        known[name] = rows
    lengths, mine = known[group[0]].lengths, ours[group[0]].lengths[: run.count]
    if not np.array_equal(lengths, mine):
        return float(np.abs(lengths - mine).sum() / max(1, mine.sum() + lengths.sum())), {}
    columns = [_Column(_Rows(ours[name].values, mine), known[name]) for name in group]
    matches = [_match(columns, sample) for sample in range(run.count)]
    places = [match.theirs[np.argsort(match.ours)][chosen] for match, chosen in zip(matches, kept, strict=False)]
    return 0.0, {name: known[name].taken(places) for name in group}


def _told(group: Sequence[str], columns: Sequence[_Column], matches: Sequence[_Match], own: float) -> RowSet:
    ours, theirs = columns[0].one.lengths, columns[0].two.lengths
    moved = [place for place, match in enumerate(matches) if ours[place] == theirs[place] and match.moved]
    ties = [place for place in moved if any(_tied(column, place, matches[place]) for column in columns)]
    matched = sum(len(match.ours) for match in matches)
    return RowSet(
        tuple(group),
        {
            place: (int(one), int(two))
            for place, (one, two) in enumerate(zip(ours, theirs, strict=True))
            if one != two
        },
        tuple(place for place in moved if place not in ties),
        tuple(ties),
        (int(ours.sum()), int(theirs.sum())),
        int(ours.sum() + theirs.sum()) - 2 * matched,
        own,
    )


def _tied(column: _Column, sample: int, match: _Match) -> bool:
    """Whether rows are sorted by a number that's as good as equal where they changed places."""
    rows = column.one.of(sample)
    if not column.real or rows.size != len(rows):
        return False
    values = rows.reshape(-1).astype(np.float64)
    steps = np.diff(values)
    if not (np.all(steps <= 0) or np.all(steps >= 0)) or not steps.any():
        return False
    moved = values[match.ours[np.argsort(match.theirs)]]
    return bool(np.abs(moved - values).max() <= _TIE * column.scale)


def _samples(places: Sequence[int]) -> str:
    first = f"sample {places[0]}"
    return f"{first} and {len(places) - 1} more" if len(places) > 1 else first


def _held(run: Run, rows: Mapping[str, _Rows], without: set[str] | None = None) -> HeldRun:
    """A run with some outputs as other rows; without those of a set that there are none of."""
    known = {item.name: getattr(run, item.name) for item in fields(Run)}
    gone = (without or set()) - set(rows)
    known["outputs"] = tuple(spec for spec in run.outputs if spec.name not in gone)
    arrays = {name: array for name, array in run.arrays.items() if name not in gone}
    arrays |= {name: item.values for name, item in rows.items()}
    lengths = {name: item for name, item in run.lengths.items() if name not in gone}
    lengths |= {name: item.lengths for name, item in rows.items()}
    return HeldRun(**known, held=arrays, rows=lengths)
