"""Operators that make tensors from shapes or from nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from conrepair_lab.generate.settings.domains import Domain
from conrepair_lab.generate.settings.expressions import known, product
from conrepair_lab.generate.settings.ports import MAX_RANK
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import AnyShape
from conrepair_lab.generate.settings.sizes import drawn_size
from conrepair_lab.generate.settings.tensors import TensorType
from conrepair_lab.generate.specifications.specification import operator
from conrepair_lab.generate.values.drawn import drawn_values

_ROOM = 256


@operator(still=True)
def constant(s: Setting) -> None:
    if s.has("value"):
        held = _literal(s, "value")
        s.output(held.shape, held.dtype.name, held)
    elif s.has("value_ints"):
        count = s.length("value_ints", 0, 64, (s.wanted or (None,))[0])
        numbers = s.integers("value_ints", None, None, count, usual=(-8, 8))
        s.output([count], "int64", np.array(numbers, np.int64))
    elif s.has("value_floats"):
        count = s.length("value_floats", 0, 64, (s.wanted or (None,))[0])
        s.reals("value_floats", -float("inf"), float("inf"), count)
        s.output([count], "float32")
    elif s.has("value_int"):
        number = s.integer("value_int", None, None, usual=(-8, 8))
        s.output([], "int64", np.array(number))
    else:
        s.real("value_float", -float("inf"), float("inf"))
        s.output([], "float32")


@operator(still=True)
def constant_of_shape(s: Setting) -> None:
    sizes = s.sizes("input", AnyShape(range(MAX_RANK + 1)))
    s.output(sizes, _literal(s, "value", (1,)).dtype.name if s.has("value") else "float32")


@operator(still=True)
def eye_like(s: Setting) -> None:
    x = s.input("input", rank=2)
    dtype = s.element_type("dtype") if s.has("dtype") else x.dtype
    s.integer("k", None, None, usual=(-3, 3))
    s.output(x.shape, dtype)


@operator("Range", still=True)
def counted(s: Setting) -> None:
    start = s.integer("start", None, None, usual=(-4, 4))
    step = s.integer("delta", None, None, usual=(-3, 3))
    s.require(step != 0, "a step of 0")
    fewest, most = (s.wanted[0], s.wanted[0]) if s.wanted else (1, 20)
    ends = sorted((start + (fewest - 1) * step + (1 if step > 0 else -1), start + most * step))
    end = s.integer("limit", None, None, usual=(ends[0], ends[1]))
    s.output([max(0, -((start - end) // step))])


@operator(still=True)
def shape(s: Setting) -> None:
    x = s.input("data")
    first = s.integer("start", None, None, usual=(-x.rank, x.rank)) if s.has("start") else 0
    last = s.integer("end", None, None, usual=(-x.rank, x.rank)) if s.has("end") else x.rank
    sizes = x.shape[first:last]
    s.output([len(sizes)], told=np.array(sizes, np.int64) if all(map(known, sizes)) else None)


@operator(still=True)
def size(s: Setting) -> None:
    elements = product(s.input("data").shape)
    s.output([], told=np.array(elements, np.int64) if known(elements) else None)


# Attributes that hold tensors.


def _literal(s: Setting, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray[Any, Any]:
    """Draw a tensor that an attribute holds, of an element type that the next output has.

    Args:
        s: The node.
        name: Of the attribute.
        shape: Sizes; any for None.
    """
    held = s.value(name, _Literal(s.result_dtypes(), shape, s.wanted if shape is None else shape))
    return np.asarray(numpy_helper.to_array(held))


@dataclass(frozen=True)
class _Literal(Domain):
    """A tensor.

    Attributes:
        dtypes: Element types that it may have.
        shape: Sizes that it must have; any for None.
        wanted: Sizes that it's drawn with; any for None.
    """

    dtypes: Collection[str]
    shape: tuple[int, ...] | None
    wanted: tuple[int, ...] | None

    def drawn(self, random: Random) -> onnx.TensorProto:
        shape = self.wanted
        if shape is None:
            rank = random.randint(0, 4)
            shape = tuple(drawn_size(random, 1, None, int(_ROOM ** (1 / rank))) for _ in range(rank))
        made = TensorType(random.choice(tuple(self.dtypes)), shape)
        return numpy_helper.from_array(drawn_values(made, None, np.random.default_rng(random.randrange(2**32))))

    def allows(self, value: Any) -> bool:
        return (
            isinstance(value, onnx.TensorProto)
            and numpy_helper.to_array(value).dtype.name in self.dtypes
            and self.shape in (None, tuple(value.dims))
        )
