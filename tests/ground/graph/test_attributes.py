"""Attributes are read as what they are, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.formats.editing.operation import Operation


def _operation(**attributes: object) -> Operation:
    return Operation("Softmax", ("x",), attributes)  # type: ignore[arg-type]


def test_what_is_there_is_read_in_its_type() -> None:
    operation = _operation(axis=np.int64(2), size=3.0, alpha=1, mode="reflect")
    assert (operation.integer("axis"), type(operation.integer("axis"))) == (2, int)
    assert operation.integer("size", 1) == 3
    assert (operation.real("alpha"), type(operation.real("alpha"))) == (1.0, float)
    assert operation.text("mode") == "reflect"


def test_a_default_stands_for_what_is_missing_or_none_and_not_for_zero() -> None:
    operation = _operation(axis=None, epsilon=0.0)
    assert operation.integer("axis", -1) == -1
    assert operation.integer("group", 1) == 1
    assert operation.real("epsilon", 1e-5) == 0.0


@pytest.mark.parametrize(
    ("value", "read"),
    [
        *((value, "integer") for value in ("1", 1.5, None, (1,))),
        *((value, "real") for value in ("x", None)),
        *((value, "text") for value in (1, None)),
    ],
)
def test_what_is_of_another_type_is_refused(value: object, read: str) -> None:
    with pytest.raises(TypeError):
        getattr(_operation(axis=value), read)("axis")
