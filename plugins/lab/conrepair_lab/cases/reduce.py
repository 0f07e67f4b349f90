"""The smallest case on which something still holds."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import numpy_helper

from conrepair.formats.onnx.load.file import nodes_of
from conrepair.ground.runtime.bisection import smallest_failing
from conrepair.ground.runtime.errors import UsageError
from conrepair.verdicts.truth.referees import CannotJudgeError
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.cases.draft import Change, Draft, Level, opened
from conrepair_lab.cases.smaller.all_ways import WAYS
from conrepair_lab.cases.validity import FIRST, checked, ordinary

# How large a case is: what is smaller is easier to read.

_DIGITS = 53  # of a float64
_STRANGE = 100  # for NaN and infinities


def smaller(one: Case, two: Case) -> bool:
    """Whether the first of two cases is smaller: of large ones no more is looked at than that takes.

    What's compared is nodes, then outputs, inputs, options, elements and axes of inputs and weights, sizes left open,
    attributes, what whole numbers there take, binary digits and different numbers of inputs and weights.

    Args:
        one: Any.
        two: Another one.
    """
    return next((left < right for left, right in zip(_sizes(one), _sizes(two), strict=True) if left != right), False)


def _sizes(case: Case) -> Iterator[int]:
    graph = case.model.graph
    nodes = list(nodes_of(graph))
    yield len(nodes)
    yield len(graph.output)
    yield len(case.inputs)
    yield sum(map(len, case.options.values()))
    arrays = [*case.inputs.values(), *map(numpy_helper.to_array, graph.initializer)]
    yield sum(array.size for array in arrays)
    yield sum(array.ndim for array in arrays)
    yield sum(not one.HasField("dim_value") for item in graph.input for one in item.type.tensor_type.shape.dim)
    attributes = [item for node in nodes for item in node.attribute]
    yield len(attributes)
    yield sum(number.bit_length() for item in attributes for number in (item.i, *item.ints))
    yield sum(_digits(array) + len(np.unique(array)) for array in arrays)


def _digits(array: Array) -> int:
    """Binary digits of all elements, with how far they are from one; a sign counts, too."""
    if array.dtype.kind in "SUO" or not array.size:
        return 0
    numbers = array.astype(np.float64)
    finite = np.isfinite(numbers)
    part, exponent = np.frexp(np.abs(np.where(finite, numbers, 0.0)))
    whole = (part * 2.0**_DIGITS).astype(np.int64)
    trailing = np.log2(np.where(whole, whole & -whole, 1)).astype(np.int64)
    digits = np.where(whole, _DIGITS - trailing + np.abs(exponent - 1) + (numbers < 0), 0)
    return int(np.where(finite, digits, _STRANGE).sum())


@dataclass(frozen=True)
class Budget:
    """The time and tries that a reduction may take.

    Attributes:
        tries: Cases that are looked at.
        seconds: In which the last one is begun.
    """

    tries: int = 2000
    seconds: float = 600.0


@dataclass(frozen=True)
class Found:
    """The result of a reduction.

    Attributes:
        case: The smallest one.
        tries: How many cases were looked at.
        seconds: That it took.
        exact: Whether no way makes it smaller; False where the budget was up.
    """

    case: Case
    tries: int
    seconds: float
    exact: bool


def reduce(case: Case, still: Callable[[Case], bool], *, budget: Budget = Budget()) -> Found:
    """Make a case smaller as long as something holds: by all ways in turn, until none helps.

    Nothing is drawn, so the same case and answers give the same result.

    Args:
        case: On which it holds.
        still: Whether it holds; asked of valid cases alone. What it goes by (kind and stage, not a message) is what
            is kept.
        budget: What may be spent; the smallest case so far is the result then.

    Raises:
        UsageError: if the case isn't valid, or it doesn't hold on it.
    """
    try:
        values = opened(case, FIRST).values
    except CannotJudgeError as error:
        raise UsageError(f"the case can't be reduced: {error}. Name another referee.") from error
    strange = frozenset(name for name, value in {**values, **case.inputs}.items() if not ordinary(value))
    if (valid := checked(case, FIRST, strange)) is None:
        raise UsageError("the case can't be reduced: ONNX's checker or its strict shape inference refuses it.")
    if not still(valid):
        raise UsageError("the case can't be reduced: what is to be kept doesn't hold on it. Is it deterministic?")
    return _Reduction(valid, still, strange, budget).run()


class _Reduction:
    def __init__(self, case: Case, still: Callable[[Case], bool], strange: frozenset[str], budget: Budget) -> None:
        self.case, self.tries = case, 0
        self._still, self._strange = still, strange
        self._budget, self._began = budget, time.monotonic()
        self._failed: set[str] = set()
        self._opened: tuple[Case, Draft] | None = None

    def run(self) -> Found:
        """Repeat all reduction steps until none makes the case smaller."""
        before: Case | None = None
        while before is not self.case and self._more():
            before = self.case
            for level in itertools.chain(*WAYS.values()):
                self._level(level)
        return Found(self.case, self.tries, time.monotonic() - self._began, before is self.case and self._more())

    def _more(self) -> bool:
        return self.tries < self._budget.tries and time.monotonic() - self._began < self._budget.seconds

    def _level(self, level: Level) -> None:
        """Make as many changes of a level as can be made together."""
        if not self._more():
            return
        if self._opened is None or self._opened[0] is not self.case:
            self._opened = self.case, opened(self.case, FIRST)
        draft = self._opened[1]
        changes = level(draft)
        holds = functools.partial(self._holds, draft, changes)
        if changes and not holds([]) and len(changes) > 1:
            smallest_failing(len(changes), holds, tries=self._budget.tries, more=self._more)

    def _holds(self, draft: Draft, changes: Sequence[Change], places: Sequence[int]) -> bool:
        """Whether it still holds when all changes are made but those at some places: that's the case then."""
        case = self._made(draft, changes, set(places))
        if case is None:
            return False
        self.tries += 1
        valid = checked(case, FIRST, self._strange)
        if valid is None or not self._still(valid):
            self._failed.add(case.key)
            return False
        self.case = valid
        return True

    def _made(self, draft: Draft, changes: Sequence[Change], kept: set[int]) -> Case | None:
        """The smaller case; None where it's none, or known not to do."""
        changed = draft.copy()
        for place, change in enumerate(changes):
            if place not in kept:
                change(changed)
        case = changed.tidied()
        return case if case is not None and smaller(case, self.case) and case.key not in self._failed else None
