"""Patterns in which one node is changed on purpose, so that an optimization must not match them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import onnx

from conrepair.ground.metrics.ulps import is_real
from conrepair_lab.generate.settings.domains import Domain
from conrepair_lab.generate.settings.drawing import drawn
from conrepair_lab.generate.settings.ports import NotAllowedError
from conrepair_lab.generate.settings.reading import Reading
from conrepair_lab.generate.settings.tensors import element_type, numpy_type
from conrepair_lab.generate.weaving import REAL, Weaver

# A setting that is there already, in which one value is drawn anew.

_GRAPHS = {onnx.defs.OpSchema.AttrType.GRAPH, onnx.defs.OpSchema.AttrType.GRAPHS}


@dataclass(kw_only=True)
class _Redrawing(Reading):
    """A setting of which all is given, but for one attribute, or one input that's constant.

    Attributes:
        freed: Its name.
        constant: What was drawn for an input.
        place: Of that input.
    """

    freed: str
    constant: np.ndarray[Any, Any] | None = None
    place: int = -1

    @staticmethod
    def may_free(setting: Reading) -> Iterator[str]:
        """Attributes that its operator has, and its inputs that are constants.

        Args:
            setting: A setting that is allowed.
        """
        schema = setting.schema
        yield from sorted(name for name, attribute in schema.attributes.items() if attribute.type not in _GRAPHS)
        for formal, operand in zip(schema.inputs, setting.given, strict=False):
            if operand is not None and operand.array is not None:
                yield formal.name

    def _has(self, name: str) -> bool:
        return name == self.freed or super()._has(name)

    def length(self, name: str, low: int, high: int, usual: int | None = None) -> int:
        if name != self.freed:
            return super().length(name, low, high, usual)
        return self.random.randint(low, high) if usual is None else min(max(usual, low), high)

    def _value(self, name: str, domain: Domain) -> Any:
        if name != self.freed:
            return super()._value(name, domain)
        self.attributes[name] = value = drawn(domain, self.random)
        return value

    def _constant(self, name: str, domain: Domain, dtypes: tuple[str, ...]) -> Any:
        if name != self.freed:
            return super()._constant(name, domain, dtypes)
        self.place = self._place(self._formal_input(name))
        operand = self._at(self.place)
        if operand is None:
            raise NotAllowedError(f"{name} is missing")
        value = drawn(domain, self.random)
        self.constant = np.asarray(value, numpy_type(operand.type.dtype))
        self._put(self._formal_input(name), operand)
        return value


_SQUARE = 0.5  # how likely its tensors have axes of one size
_TYPES = "float64", "float16"
_OF_TYPE = 0.15  # of those that slip: the type of all
_TWO, _EACH = 0.2, 0.5  # how likely a second one slips; how likely all further ones of the operator do so alike
_SOME, _TRIES = 8, 6  # nodes of a pattern that wasn't woven yet; values drawn for a node


@dataclass(frozen=True)
class _Said:
    op: str
    inputs: tuple[str | None, ...]
    attributes: Mapping[str, Any]
    outputs: int

    def fed(self, place: int, name: str) -> _Said:
        return replace(self, inputs=(*self.inputs[:place], name, *self.inputs[place + 1 :]))


class Slipping(Weaver):
    """Writes down what a pattern says, but for one node, or two, or for all of one operator."""

    _nodes = _SOME  # of the pattern, as it was last time

    @contextmanager
    def whole(self) -> Iterator[None]:
        """As a weaver's; each try slips anew.

        Raises:
            NotAllowedError: if something wasn't allowed, or nothing slipped.
        """
        typed = self.random.random() < _OF_TYPE
        self.real = self.random.choice(_TYPES) if typed else REAL
        self.square = self.random.random() < _SQUARE
        places = [
            self.random.randrange(self._nodes) for _ in range(0 if typed else 1 + (self.random.random() < _TWO))
        ]
        self._left, self._place = set(places), 0
        self._alike: tuple[str, _Slip, int] | None = None
        with super().whole():
            try:
                yield
            except (IndexError, ValueError) as error:  # a pattern takes what it reads to be as it wrote it
                raise NotAllowedError(f"it can't go on: {error}") from error
            self._nodes = max(self._place, 1)
            if self._left:
                raise NotAllowedError("nothing slipped")

    def nodes(self, op: str, *inputs: str | None, outputs: int = 1, **attributes: Any) -> list[str]:
        """The weaver's nodes, one of them changed."""
        said = _Said(op, *self.by_schema(op, inputs, attributes), outputs)
        if self._alike is not None and self._alike[0] == op:
            said = self._slipped(said, *self._alike[1:])
        elif self._place in self._left:
            self._left.remove(self._place)
            slip, seed = self.random.choice(_SLIPS), self.random.getrandbits(32)
            said = self._slipped(said, slip, seed)
            if self.random.random() < _EACH:
                self._alike = op, slip, seed
        self._place += 1
        return super().nodes(op, *said.inputs, outputs=outputs, **said.attributes)

    def _slipped(self, said: _Said, slip: _Slip, seed: int) -> _Said:
        """By numbers of its own, so that others of the operator can slip alike."""
        kept = self.random, self._place, self._left, self._alike
        self.random, self._left, self._alike = Random(seed), set(), None  # what it adds slips no further
        try:
            return slip(self, said)
        finally:
            self.random, self._place, self._left, self._alike = kept

    def picked(self, said: _Said, *, constant: bool) -> tuple[int, str]:
        """An input that is a constant, or isn't: its place and name.

        Args:
            said: What reads it.
            constant: Which.

        Raises:
            NotAllowedError: if there's none.
        """
        known = [(place, name) for place, name in enumerate(said.inputs) if name is not None]
        found = [(place, name) for place, name in known if (self.draft.tensors[name].value is not None) == constant]
        if not found:
            raise NotAllowedError("there's no such input")
        return self.random.choice(found)


_Slip = Callable[[Slipping, _Said], _Said]


def _something_between(w: Slipping, said: _Said) -> _Said:
    """A node that changes nothing stands in front of it."""
    place, name = w.picked(said, constant=False)
    made = w.type_of(name)
    nodes: Mapping[str, dict[str, Any]] = {
        "Identity": {},
        "Cast": {"to": element_type(made.dtype)},
        "Transpose": {"perm": tuple(range(len(made.shape)))},
    }
    op = w.random.choice(sorted(nodes))
    return said.fed(place, w.node(op, name, **nodes[op]))


def _another_value(w: Slipping, said: _Said) -> _Said:
    """An attribute, or a constant that is one to its operator, has another value, as its specification allows."""
    read = w.read(Reading, said.op, said.inputs, said.attributes, said.outputs)
    names = list(_Redrawing.may_free(read))
    for _ in range(_TRIES if names else 0):
        freed = w.random.choice(names)
        with suppress(NotAllowedError):
            other = w.read(_Redrawing, said.op, said.inputs, said.attributes, said.outputs, freed=freed)
            if other.constant is not None:
                place, dtype = other.place, other.constant.dtype.name
                return said.fed(place, w.constant(other.constant, dtype))
            if freed in other.attributes and other.attributes[freed] != read.attributes.get(freed):
                return replace(said, attributes={**said.attributes, freed: other.attributes[freed]})
    raise NotAllowedError("it has no such attribute")


def _another_constant(w: Slipping, said: _Said) -> _Said:
    """It has another shape that broadcasts: an axis of one element, an axis more, which widens the result."""
    place, name = w.picked(said, constant=True)
    value = w.draft.tensors[name].value
    if value is None or not is_real(value):
        raise NotAllowedError("it holds sizes")
    other = w.random.choice([value[None], np.repeat(value[None], 2, axis=0), np.atleast_1d(value)[..., :1]])
    return said.fed(place, w.constant(other, value.dtype.name))


def _other_way_round(_: Slipping, said: _Said) -> _Said:
    """Its two inputs are exchanged."""
    if len(said.inputs) != 2:
        raise NotAllowedError("it has another number of inputs")
    return replace(said, inputs=said.inputs[::-1])


def _shown(w: Slipping, said: _Said) -> _Said:
    """What it reads is an output, too."""
    _, name = w.picked(said, constant=False)
    if name in w.draft.sources:
        raise NotAllowedError("no node makes it")
    w.draft.shown.add(name)
    return said


_SLIPS: tuple[_Slip, ...] = (
    _something_between,
    _another_value,
    _another_value,  # there are many
    _another_constant,
    _other_way_round,
    _shown,
)
