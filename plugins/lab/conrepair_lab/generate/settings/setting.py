"""What a specification is written against: one node of an operator, being drawn, read or solved for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from onnx import helper

from conrepair.formats.onnx.passes.sizes import ARITHMETIC, MOVING
from conrepair_lab.generate.settings.domains import (
    Axes,
    Bounds,
    Domain,
    OneOf,
    Permutation,
    Real,
    Several,
    Told,
    Whole,
    Wholes,
)
from conrepair_lab.generate.settings.expressions import Number, known
from conrepair_lab.generate.settings.ports import MAX_RANK, NotAllowedError, Operand, Port, Support
from conrepair_lab.generate.settings.schemas import VARIADIC, Formal, dtypes_of, schema_of
from conrepair_lab.generate.settings.shapes import AnyShape, Dims, ShapePattern, Size
from conrepair_lab.generate.settings.tensors import Range, TensorType, element_type, in_schema

Shape = Sequence[Number | Size]
Choice = TypeVar("Choice")
Said = TypeVar("Said")
Details = ParamSpec("Details")

_CARRIERS = {*MOVING, *ARITHMETIC, "Max", "Min"} - {"Expand", "Transpose", "Where"}
"""Operators between a shape and who needs one."""

_MOST_TOLD = 64
"""Elements of values that are known before a network is computed."""


@dataclass
class Setting(ABC):
    """A node: inputs, attributes and outputs, in the order in which its specification speaks of them.

    Attributes:
        op: The operator.
        opset: Of the standard's operators.
        random: What is drawn comes from here.
        support: Which element types may be used.
        inputs: Found so far; None for those that are left out.
        outputs: Found so far; None for those that are left out.
        attributes: Found so far.
        types: Element types, by type variable.
        domains: By place, where the node is finite in an input.
        told: By place, values of outputs that don't depend on those of inputs.
    """

    op: str
    opset: int
    random: Random
    support: Support = field(default_factory=Support)
    inputs: list[Operand | None] = field(default_factory=list)
    outputs: list[TensorType | None] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    domains: dict[int, tuple[float, float]] = field(default_factory=dict)
    told: dict[int, np.ndarray[Any, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.schema = schema_of(self.op, self.opset)

    # What a mode of use does its own way

    def _has(self, name: str) -> bool:
        """Whether an optional input, attribute or output of the schema is there."""
        return self.random.random() < 0.5

    def forbid(self, name: str, why: str) -> None:
        """Allow the setting only without something optional."""
        return

    def count(self, low: int, high: int, name: str = "") -> int:
        """How many inputs, or outputs, a list of them has: the inputs from here on unless a name is given."""
        return self.random.randint(low, high)

    def require(self, condition: Any, why: str = "") -> None:
        """Allow the setting only if a condition holds."""
        if not condition:
            raise NotAllowedError(why)

    def equal(self, left: Number, right: Number) -> None:
        """Allow the setting only if two sizes are the same."""
        self.require(left == right, "sizes differ")

    @abstractmethod
    def _taken(self, port: Port) -> Operand:
        """What is connected to an input."""

    @abstractmethod
    def _value(self, name: str, domain: Domain) -> Any:
        """An attribute's value."""

    @abstractmethod
    def _constant(self, name: str, domain: Domain, dtypes: tuple[str, ...]) -> Any:
        """The value of an input that's constant, as whole numbers."""

    # What there is

    def has(self, name: str) -> bool:
        """Whether an optional input, attribute or output is there; False for what the opset doesn't have."""
        formals = (*self.schema.inputs, *self.schema.outputs)
        return (name in self.schema.attributes or any(item.name == name for item in formals)) and self._has(name)

    def maybe(
        self, say: Callable[Concatenate[str, Details], Said], name: str, *more: Details.args, **given: Details.kwargs
    ) -> Said | None:
        """Say of an optional input or attribute what `say` says of any, where it's there: `s.maybe(s.flag, "p")`."""
        return say(name, *more, **given) if self.has(name) else None

    def rank_of(self, name: str, ranks: Sequence[int]) -> int:
        """Which of some ranks an input has that's spoken of later."""
        return self.random.choice(ranks)

    def length(self, name: str, low: int, high: int, usual: int | None = None) -> int:
        """How many numbers an attribute, or an input that's constant, has; as many as usual where that's known."""
        return self.random.randint(low, high) if usual is None else min(max(usual, low), high)

    def size_of(self, name: str, axis: int, low: int, high: int) -> int:
        """A size of an input that's spoken of later, where numbers of axes depend on it."""
        return self.random.randint(low, high)

    @property
    def wanted(self) -> tuple[int, ...] | None:
        """The shape that the first output must have, if that's given."""
        return None

    def ranks_below(self, more: int, low: int, high: int) -> Collection[int]:
        """Ranks of an input than which the first output has more axes: the one that fits, if the output is given."""
        ranks = range(low, high + 1)
        return ranks if self.wanted is None else [rank for rank in ranks if rank == len(self.wanted) - more]

    # Inputs

    def input(
        self,
        name: str | None = None,
        shape: Shape | ShapePattern | None = None,
        *,
        rank: int | Collection[int] | None = None,
        least: int = 0,
        dtypes: Iterable[str] | None = None,
        values: Range | None = None,
        domain: tuple[float, float] | None = None,
    ) -> TensorType:
        """A tensor that the node reads.

        Args:
            name: In the schema; the next one for None.
            shape: A size for each axis (given, or `Size`), or a set of shapes.
            rank: Numbers of axes, in place of a shape; any for None.
            least: Smallest size of each axis, with `rank`.
            dtypes: Narrower than the schema's.
            values: That it must have: only a tensor of its own can be connected.
            domain: Where the operator is finite.
        """
        formal = self._formal_input(name)
        if shape is None:
            ranks = range(MAX_RANK + 1) if rank is None else (rank,) if isinstance(rank, int) else tuple(rank)
            pattern: ShapePattern = AnyShape(self._left(self.support.ranks(ranks), formal), least)
        else:
            pattern = Dims(tuple(shape)) if isinstance(shape, Sequence) else shape
        port = Port(formal.name, self._tensor_dtypes(formal, dtypes), pattern, values, domain)
        operand = self._taken(port)
        self._check_wanted(operand.type)
        if domain is not None:
            self.domains[self._place(formal)] = domain
        self._put(formal, operand)
        return operand.type

    def outer(self, pattern: ShapePattern) -> TensorType:
        """A tensor that a graph inside of the node reads; it stands behind the schema's inputs."""
        operand = self._taken(Port("", self._dtypes(self.schema.outputs[0]), pattern))
        self.inputs.append(operand)
        return operand.type

    def broadcast(self, *shapes: Sequence[Number]) -> tuple[Number, ...]:
        """What shapes become when they're broadcast with each other."""
        rank = max(map(len, shapes))
        result: list[Number] = []
        for place in range(rank):
            sizes = [shape[place - rank + len(shape)] for shape in shapes if place - rank + len(shape) >= 0]
            size: Number = 1
            for other in sizes:
                if known(other) and other == 1:
                    continue
                if not (known(size) and size == 1) and other is not size:
                    self.equal(size, other)
                size = other
            result.append(size)
        return tuple(result)

    # Attributes; those that the opset has as inputs are constants

    def value(self, name: str, domain: Domain) -> Any:
        """A value of a domain."""
        if name in self.schema.attributes:
            return self._value(name, domain)
        formal = self._formal_input(name)
        return self._constant(name, domain, self._dtypes(formal))

    def integer(self, name: str, low: Number | None, high: Number | None = None, usual: Bounds | None = None) -> int:
        """A whole number between two bounds, both included; None for no bound; drawn between the usual ones."""
        return int(self.value(name, Whole(low, high, usual)))

    def integers(
        self,
        name: str,
        low: Number | Sequence[Number] | None,
        high: Number | Sequence[Number | None] | None,
        count: int | None = None,
        usual: Bounds | None = None,
    ) -> tuple[int, ...]:
        """Whole numbers, each between two bounds: one pair of them for `count` numbers, or a pair for each."""
        length = count if count is not None else len(low if isinstance(low, Sequence) else high)  # type: ignore[arg-type]
        lows = tuple(low) if isinstance(low, Sequence) else (low,) * length
        highs = tuple(high) if isinstance(high, Sequence) else (high,) * length
        return tuple(map(int, self.value(name, Wholes(lows, highs, usual))))

    def sizes(self, name: str, shape: Shape | ShapePattern) -> tuple[Number, ...]:
        """Sizes that the node says, of its output as a rule."""
        pattern = Dims(tuple(shape)) if isinstance(shape, Sequence) else shape
        return tuple(map(_size, self.value(name, Told(pattern))))

    def size_said(self, name: str, low: Number = 1, high: Number | None = None) -> Number:
        """One size that the node says."""
        return _size(self.value(name, Told(Dims((Size(low, high),)), alone=True)))

    def choice(self, name: str, options: Sequence[Any]) -> Any:
        """One of some values."""
        return self.value(name, OneOf(options))

    def flag(self, name: str) -> bool:
        """0 or 1."""
        return bool(self.value(name, OneOf((0, 1))))

    def real(self, name: str, low: float, high: float, usual: Sequence[float] = ()) -> float:
        """A real number between two bounds, often one of the usual ones."""
        return float(self.value(name, Real(low, high, usual)))

    def reals(
        self, name: str, low: float, high: float, count: int, usual: Sequence[float] = (), step: float = 0.0
    ) -> tuple[float, ...]:
        """Real numbers between two bounds."""
        return tuple(map(float, self.value(name, Several(Real(low, high, usual, step), count))))

    def choices(self, name: str, options: Sequence[Any], count: int) -> tuple[Any, ...]:
        """So many of some values."""
        return tuple(self.value(name, Several(OneOf(options), count)))

    def axis(self, name: str, rank: int) -> int:
        """An axis, counted from 0 whatever the node has."""
        value = int(self.value(name, Whole(-rank, rank - 1)))
        return value % rank if rank else value

    def axes(
        self,
        name: str,
        rank: int,
        fewest: int = 1,
        most: int | None = None,
        *,
        negative: bool = True,
        distinct: bool = True,
        among: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        """Axes (some of those in `among`, if that's given), counted from 0, in the node's order."""
        domain = Axes(rank, fewest, most, negative, distinct, among)
        return tuple(int(axis) % rank for axis in self.value(name, domain))

    def permutation(self, name: str, rank: int) -> tuple[int, ...]:
        """All axes, in some order."""
        return tuple(self.value(name, Permutation(rank)))

    def element_type(self, name: str, usual: str | None = None) -> str:
        """An element type of the next output, that the node says by its number; the usual one may be said by 0."""
        formal = self._formal_output()
        dtypes = {element_type(dtype): dtype for dtype in self.result_dtypes()}
        if usual is not None and usual in dtypes.values():
            dtypes[0] = usual
        dtype = dtypes[self.choice(name, tuple(dtypes))]
        self.types.setdefault(formal.type_str, dtype)
        return dtype

    # Outputs

    def output(
        self, shape: Sequence[Number | None], dtype: str | None = None, told: np.ndarray[Any, Any] | None = None
    ) -> None:
        """The next tensor that the node makes.

        Args:
            shape: Its sizes; None for those that depend on values.
            dtype: Its element type; what the schema says for None.
            told: Its values, if they don't depend on those of inputs.
        """
        formal = self._formal_output()
        told = self._told() if told is None else told
        if told is not None:
            self.told[len(self.outputs)] = told
        made = dtype or self.types.get(formal.type_str) or in_schema(formal.type_str)
        if dtype is not None:
            self.require(dtype in self._dtypes(formal), "another element type")
        if made is None:
            made = self.random.choice(self.result_dtypes())
        self._bind(formal, made)
        result = TensorType(made, tuple(shape))
        self._check_wanted(result)
        self.outputs.append(result)
        self._made(result)

    def _told(self) -> np.ndarray[Any, Any] | None:
        """What an operator that sizes are calculated with makes of whole numbers that are known; None for others."""
        arrays = [operand.array for operand in self.inputs if operand is not None and operand.array is not None]
        told = [array for array in arrays if array.dtype.kind in "iu" and array.size <= _MOST_TOLD]
        if self.op not in _CARRIERS or not told or len(told) < len(self.inputs):
            return None
        from onnx.reference import ReferenceEvaluator

        names = [f"i{place}" for place in range(len(told))]
        node = helper.make_node(self.op, names, ["made"], **self.attributes)
        return np.asarray(ReferenceEvaluator(node).run(None, dict(zip(names, told, strict=True)))[0])

    def no_output(self) -> None:
        """Leave out an optional output before others."""
        self.outputs.append(None)

    def _made(self, result: TensorType) -> None:
        for size in result.shape:
            self.require(size is None or size >= 0, "sizes are not negative")

    def result_dtypes(self) -> tuple[str, ...]:
        """Element types that the next output may have."""
        return self._tensor_dtypes(self._formal_output())

    def _check_wanted(self, made: TensorType) -> None:
        if not self.support.dtypes((made.dtype,)) or not self.support.ranks((made.rank,)):
            raise NotAllowedError(f"no {made.dtype} of {made.rank} axes is wanted")

    # The schema

    def _formal_input(self, name: str | None) -> Formal:
        formals = self.schema.inputs
        if name is None:
            return formals[min(len(self.inputs), len(formals) - 1)]
        return formals[self.schema.places[name]]

    def _formal_output(self) -> Formal:
        """What the schema says of the next output."""
        return self.schema.outputs[min(len(self.outputs), len(self.schema.outputs) - 1)]

    def _place(self, formal: Formal) -> int:
        """Where an input stands: the next of a list's is behind those that it has."""
        place = self.schema.places[formal.name]
        return max(place, len(self.inputs)) if formal.option == VARIADIC else place

    def _put(self, formal: Formal, operand: Operand) -> None:
        place = self._place(formal)
        self.inputs += [None] * (place + 1 - len(self.inputs))
        self.inputs[place] = operand
        self._bind(formal, operand.type.dtype)

    def _dtypes(self, formal: Formal, narrower: Iterable[str] | None = None) -> tuple[str, ...]:
        bound = self.types.get(formal.type_str)
        allowed = dtypes_of(self.op, self.opset, formal.type_str) if bound is None else (bound,)
        if narrower is not None:
            allowed = tuple(dtype for dtype in narrower if dtype in allowed)
        if bound is not None:
            return self._left(allowed, formal)
        return self._left(self.support.choices(self.op, self.types, formal.type_str, allowed), formal)

    def _tensor_dtypes(self, formal: Formal, narrower: Iterable[str] | None = None) -> tuple[str, ...]:
        return self._left(self.support.dtypes(self._dtypes(formal, narrower)), formal)

    def _left(self, choices: Collection[Choice], formal: Formal) -> tuple[Choice, ...]:
        if not choices:
            raise NotAllowedError(f"nothing is left for {formal.name}")
        return tuple(choices)

    def _bind(self, formal: Formal, dtype: str) -> None:
        if formal.option == VARIADIC and not formal.is_homogeneous:
            return
        self.types.setdefault(formal.type_str, dtype)


def _size(value: Number) -> Number:
    """A size that a constant of real numbers may have said."""
    return int(value) if isinstance(value, float) else value
