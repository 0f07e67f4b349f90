"""A setting of which the outputs are given: attributes are drawn, the inputs' sizes are what is solved for.

What one unknown decides alone is found by trying its values; what couples several goes to z3, within bounds drawn by
bins, which are given up by halves while there is no solution (after NNSmith's binning of attributes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np

from conrepair_lab.generate.settings.domains import Domain, Told
from conrepair_lab.generate.settings.drawing import chosen_dtype
from conrepair_lab.generate.settings.expressions import APPLY, Expression, Number, Unknown, known, product, value_of
from conrepair_lab.generate.settings.ports import NotAllowedError, Operand, Port
from conrepair_lab.generate.settings.schemas import dtypes_of
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.sizes import LARGEST, drawn_size
from conrepair_lab.generate.settings.tensors import TensorType, numpy_type

_EFFORT = 300_000
"""In z3's own units, a quarter of a second: a limit of time would make networks depend on how busy the machine is."""


def solved_by_z3(
    unknowns: list[Unknown], conditions: list[Expression], values: Mapping[Unknown, int], random: Random
) -> dict[Unknown, int]:
    """Values for unknowns that fulfil all conditions.

    Args:
        unknowns: To find.
        conditions: On them.
        values: Of unknowns that are known already.
        random: Bins, and the solver's seed, come from here.

    Raises:
        NotAllowedError: if there are none, or none was found with that effort.
    """
    import z3

    context = z3.Context()  # of its own: what was solved before in this process would have a part in what's found
    solver = z3.SimpleSolver(ctx=context)
    solver.set("rlimit", _EFFORT)
    solver.set("random_seed", random.randrange(2**16))
    terms: dict[Unknown, Any] = {unknown: z3.Int(unknown.name, context) for unknown in unknowns}
    for unknown, term in terms.items():
        solver.add(term >= unknown.low, term <= unknown.high)
    both: dict[Unknown, Any] = {**values, **terms}
    for condition in conditions:
        solver.add(_term(condition, both))
    if solver.check() != z3.sat:
        raise NotAllowedError("no sizes fit")
    model = solver.model()
    bins = [_bin(z3, unknown, term, random) for unknown, term in terms.items()]
    random.shuffle(bins)
    while bins:
        if solver.check(*bins) == z3.sat:
            model = solver.model()
            break
        bins = bins[: len(bins) // 2]
    found = {unknown: model.eval(term, model_completion=True).as_long() for unknown, term in terms.items()}
    return {**values, **found}


def _bin(z3: Any, unknown: Unknown, term: Any, random: Random) -> Any:
    size = drawn_size(random, unknown.low, unknown.high, unknown.high)
    return z3.And(term >= size - size // 4, term <= size + size // 4)


def _term(number: Number, terms: Mapping[Unknown, Any]) -> Any:
    if not isinstance(number, Expression):
        return number
    if isinstance(number, Unknown):
        return terms[number]
    import z3

    left, right = _term(number.left, terms), _term(number.right, terms)
    match number.op:
        case "min":
            return z3.If(left <= right, left, right)
        case "max":
            return z3.If(left <= right, right, left)
        case "or":
            return z3.Or(left, right)
        case "and":
            return z3.And(left, right)
        case "//":
            return (
                left // right if isinstance(left, int) and isinstance(right, int) else _int(z3, left, right) / right
            )
    return APPLY[number.op](left, right)


def _int(z3: Any, number: Any, other: Any) -> Any:
    return z3.IntVal(number, other.ctx) if isinstance(number, int) else number


_WIDER = 4
"""Sizes of inputs may be so many times what new ones are drawn up to."""


@dataclass(kw_only=True)
class Solving(Setting):
    """A setting whose first output is given, or nothing at all.

    Attributes:
        target: What the first output must be.
        most: Elements that a tensor may have.
    """

    target: TensorType | None = None
    most: int = 4096
    conditions: list[Any] = field(default_factory=list)

    def require(self, condition: Any, why: str = "") -> None:
        if known(condition):
            if not condition:
                raise NotAllowedError(why)
        else:
            self.conditions.append(condition)

    # The sizes of new inputs

    def size(self, low: Number, high: Number | None) -> Number:
        most = high if high is not None and known(high) else LARGEST * _WIDER
        least = min(max(1, low), most) if known(low) else 1
        unknown = Unknown(f"d{len(self._unknowns)}", least, max(least, most))
        self._unknowns.append(unknown)
        if not known(low):
            self.conditions.append(low <= unknown)
        if high is not None and not known(high):
            self.conditions.append(unknown <= high)
        return unknown

    @property
    def wanted(self) -> tuple[int, ...] | None:
        return None if self.target is None else self.target.shape

    def rank(self, choices: Sequence[int]) -> int:
        wanted = None if self.target is None else self.target.rank
        if wanted is None:
            return self.random.choice(choices)
        return self.random.choices(choices, [1 / (1 + abs(rank - wanted)) ** 3 for rank in choices])[0]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._unknowns: list[Unknown] = []
        formal = self.schema.outputs[0]
        dtypes = self.support.choices(self.op, {}, formal.type_str, dtypes_of(self.op, self.opset, formal.type_str))
        self._homogeneous = bool(formal.is_homogeneous)
        if self.target is not None and self._homogeneous and self.target.dtype in dtypes:
            self.types[formal.type_str] = self.target.dtype

    def _taken(self, port: Port) -> Operand:
        shape = port.pattern.made(self)
        self.require(product(shape) <= self.most, "too many elements")
        dtypes = port.dtypes
        if self.target is not None and self.target.dtype in dtypes and not self._homogeneous:
            dtypes = (self.target.dtype,)
        return Operand(TensorType(chosen_dtype(dtypes, self.random), shape), port=port)

    def _value(self, name: str, domain: Domain) -> Any:
        self.attributes[name] = value = self._drawn(domain)
        return value

    def _constant(self, name: str, domain: Domain, dtypes: tuple[str, ...]) -> Any:
        value = self._drawn(domain)
        dtype = "int64" if "int64" in dtypes else self.random.choice(dtypes)
        array = np.array(value, dtype=object if isinstance(domain, Told) else numpy_type(dtype))
        self._put(self._formal_input(name), Operand(TensorType(dtype, array.shape), array=array))
        return value

    def _drawn(self, domain: Domain) -> Any:
        if isinstance(domain, Told):
            return domain.made(self)
        value = domain.drawn(self.random)
        self.conditions += domain.checks(value)
        return value

    def _made(self, result: TensorType) -> None:
        target = self.target
        if len(self.outputs) == 1 and target is not None:
            self.require(result.dtype == target.dtype, "another element type")
            self.require(result.rank == target.rank, "another rank")
            for size, wanted in zip(result.shape, target.shape, strict=True):
                self.require(size == wanted, "another size")
            return
        super()._made(result)
        self.require(result.elements <= self.most, "too many elements")

    def no_output(self) -> None:
        self.require(bool(self.outputs) or self.target is None, "the output that's given is left out")
        super().no_output()

    # What the conditions leave

    def solved(self) -> None:
        """Put numbers in the places of unknowns.

        Raises:
            NotAllowedError: if there are none.
        """
        values = _found(self._unknowns, self.conditions, self)
        self.inputs = [None if item is None else _filled(item, values) for item in self.inputs]
        self.attributes = {name: _known(value, values) for name, value in self.attributes.items()}
        self.outputs = [
            None if item is None else TensorType(item.dtype, tuple(value_of(size, values) for size in item.shape))
            for item in self.outputs
        ]


def _filled(operand: Operand, values: dict[Unknown, int]) -> Operand:
    made = TensorType(operand.type.dtype, _known(operand.type.shape, values))
    array, port = operand.array, operand.port
    if array is not None and array.dtype == object:
        array = np.array(_known(tuple(array.flat), values), numpy_type(made.dtype)).reshape(array.shape)
    if port is not None and port.values is not None:
        port = replace(port, values=port.values.solved(values))
    return replace(operand, type=made, array=array, port=port)


def _known(value: Any, values: dict[Unknown, int]) -> Any:
    """A value of an attribute, with numbers in the places of unknowns."""
    if isinstance(value, tuple):
        return tuple(_known(item, values) for item in value)
    return value_of(value, values)


def _found(unknowns: list[Unknown], conditions: list[Any], setting: Solving) -> dict[Unknown, int]:
    values: dict[Unknown, int] = {}
    left = list(conditions)
    while True:  # what one unknown decides alone, while that decides others
        alone: dict[Unknown, list[Expression]] = {}
        for condition in left:
            open_ones = condition.unknowns - values.keys()
            if len(open_ones) == 1:
                alone.setdefault(next(iter(open_ones)), []).append(condition)
        alone = {unknown: own for unknown, own in alone.items() if any(map(_decides, own))}
        if not alone:
            break
        for unknown, own in alone.items():
            values[unknown] = _tried(unknown, own, values, setting)
        left = [condition for condition in left if not _settled(condition, values)]
    open_ones = [unknown for unknown in unknowns if unknown not in values]
    coupled = [condition for condition in left if condition.unknowns - values.keys()]
    equal = [condition for condition in coupled if condition.op not in {"<=", "<"}]
    if any(len(condition.unknowns - values.keys()) > 1 for condition in equal):
        return solved_by_z3(open_ones, coupled, values, setting.random)
    return _drawn_freely(open_ones, coupled, values, setting)


def _decides(condition: Expression) -> bool:
    return condition.op == "=="


def _settled(condition: Expression, values: dict[Unknown, int]) -> bool:
    if condition.unknowns - values.keys():
        return False
    if not value_of(condition, values):
        raise NotAllowedError("no sizes fit")
    return True


def _tried(unknown: Unknown, own: list[Expression], values: dict[Unknown, int], setting: Solving) -> int:
    for condition in own:  # the commonest: a size that is the output's
        plain = condition.right if condition.left is unknown else condition.left
        if _decides(condition) and known(plain) and (condition.left is unknown or condition.right is unknown):
            if not unknown.low <= plain <= unknown.high:
                raise NotAllowedError("no size fits")
            return int(plain)
    fits = []
    for value in range(unknown.low, unknown.high + 1):
        values[unknown] = value
        if all(value_of(condition, values) for condition in own):
            fits.append(value)
    del values[unknown]
    if not fits:
        raise NotAllowedError("no size fits")
    return setting.random.choice(fits)


def _drawn_freely(
    open_ones: list[Unknown], conditions: list[Any], values: dict[Unknown, int], setting: Solving
) -> dict[Unknown, int]:
    for attempt in range(6):
        found = dict(values)
        for unknown in open_ones:
            room = max(2, 64 >> attempt)
            found[unknown] = drawn_size(setting.random, unknown.low, unknown.high, room)
        if all(value_of(condition, found) for condition in conditions):
            return found
    return solved_by_z3(open_ones, conditions, values, setting.random)
