"""Attributes that hold tensors."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from conrepair.generate.domains import Domain
from conrepair.generate.setting import Setting
from conrepair.generate.sizes import drawn_size
from conrepair.generate.tensors import TensorType
from conrepair.generate.values.drawn import drawn_values

__all__ = ["literal"]

_ROOM = 256


def literal(s: Setting, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray[Any, Any]:
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
