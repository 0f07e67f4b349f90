"""Patterns in which one node isn't as it should be: optimizations have to see that they don't fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from onnx import helper

from conrepair.generate.ports import NotAllowedError
from conrepair.generate.schemas import schema_of
from conrepair.generate.tensors import numpy_type
from conrepair.generate.weaving import REAL, Weaver
from conrepair.metrics.ulps import is_real

__all__ = ["Slipping"]

_AT = 0.3  # how likely it's the next node
_SQUARE = 0.5  # how likely its tensors have axes of one size
_TYPES = "float64", "float16"
_OF_TYPE = 0.2  # of those that slip: the type of all
_FLAG = "keepdims"

_Inputs = tuple[str | None, ...]
_Slip = Callable[["Slipping", str, _Inputs, dict[str, Any]], tuple[_Inputs, dict[str, Any]]]


class Slipping(Weaver):
    """Writes down what a pattern says, but for one node."""

    _slipped = False

    @contextmanager
    def whole(self) -> Iterator[None]:
        """As a weaver's; each try slips anew."""
        self._slipped = self.random.random() < _OF_TYPE
        self.real = self.random.choice(_TYPES) if self._slipped else REAL
        self.square = self.random.random() < _SQUARE
        with super().whole():
            yield

    def nodes(self, op: str, *inputs: str | None, outputs: int = 1, **attributes: Any) -> list[str]:
        """As a weaver's, or nearly."""
        if not self._slipped and self.random.random() < _AT:
            self._slipped = True
            inputs, attributes = self.random.choice(_SLIPS)(self, op, inputs, attributes)
        return super().nodes(op, *inputs, outputs=outputs, **attributes)

    def picked(self, inputs: _Inputs, *, constant: bool) -> int:
        """The place of an input that is a constant, or isn't.

        Raises:
            NotAllowedError: if there's none.
        """
        known = [(place, name) for place, name in enumerate(inputs) if name is not None]
        found = [place for place, name in known if (self.draft.tensors[name].value is not None) == constant]
        if not found:
            raise NotAllowedError("there's no such input")
        return self.random.choice(found)


def _with(inputs: _Inputs, place: int, name: str) -> _Inputs:
    return (*inputs[:place], name, *inputs[place + 1 :])


def _something_between(
    w: Slipping, _: str, inputs: _Inputs, attributes: dict[str, Any]
) -> tuple[_Inputs, dict[str, Any]]:
    """A node that changes nothing stands in front of it."""
    place = w.picked(inputs, constant=False)
    name = inputs[place]
    if name is None:
        raise NotAllowedError("there's no such input")
    made = w.type_of(name)
    to = helper.np_dtype_to_tensor_dtype(numpy_type(made.dtype))
    nodes: Mapping[str, dict[str, Any]] = {
        "Identity": {},
        "Cast": {"to": to},
        "Transpose": {"perm": tuple(range(len(made.shape)))},
    }
    op = w.random.choice(sorted(nodes))
    return _with(inputs, place, w.node(op, name, **nodes[op])), attributes


def _another_attribute(
    w: Slipping, op: str, inputs: _Inputs, attributes: dict[str, Any]
) -> tuple[_Inputs, dict[str, Any]]:
    """Axes are dropped or kept, others, or in another order."""
    if _FLAG in schema_of(op, w.draft.opset).attributes:
        return inputs, {**attributes, _FLAG: 1 - attributes.get(_FLAG, 1)}
    if "axis" in attributes:
        return inputs, {**attributes, "axis": attributes["axis"] + w.random.choice([-1, 1])}
    lists = [name for name, value in attributes.items() if isinstance(value, tuple) and len(set(value)) > 1]
    if not lists:
        raise NotAllowedError("it has no such attribute")
    name = w.random.choice(lists)
    return inputs, {**attributes, name: tuple(w.random.sample(attributes[name], len(attributes[name])))}


def _another_constant(
    w: Slipping, _: str, inputs: _Inputs, attributes: dict[str, Any]
) -> tuple[_Inputs, dict[str, Any]]:
    """It has another shape that broadcasts: an axis of one element, an axis more, which widens the result."""
    place = w.picked(inputs, constant=True)
    value = w.draft.tensors[str(inputs[place])].value
    if value is None or not is_real(value):
        raise NotAllowedError("it holds sizes")
    other = w.random.choice([value[None], np.repeat(value[None], 2, axis=0), np.atleast_1d(value)[..., :1]])
    return _with(inputs, place, w.constant(other, value.dtype.name)), attributes


def _other_way_round(
    _: Slipping, __: str, inputs: _Inputs, attributes: dict[str, Any]
) -> tuple[_Inputs, dict[str, Any]]:
    """Its two inputs are exchanged."""
    if len(inputs) != 2:
        raise NotAllowedError("it has another number of inputs")
    return inputs[::-1], attributes


def _shown(w: Slipping, _: str, inputs: _Inputs, attributes: dict[str, Any]) -> tuple[_Inputs, dict[str, Any]]:
    """What it reads is an output, too."""
    name = inputs[w.picked(inputs, constant=False)]
    if name is None or name in w.draft.sources:
        raise NotAllowedError("no node makes it")
    w.draft.shown.add(name)
    return inputs, attributes


_SLIPS: tuple[_Slip, ...] = (_something_between, _another_attribute, _another_constant, _other_way_round, _shown)
