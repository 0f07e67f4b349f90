"""Modules whose outputs are none, complex, or of types that NumPy hasn't, through the verbs of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from odd_modules import ODD_OUTPUTS, ROWS, Module

import conrepair


@pytest.mark.parametrize("made", [lambda _: None, lambda _: 3], ids=["None", "a number"])
def test_a_module_that_gives_no_tensor(made: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(conrepair.ConrepairError, match="the model has no output that is a tensor"):
        conrepair.execute(Module(made), data=ROWS, in_process=True)
    with pytest.raises(conrepair.ConrepairError, match="the model has no output that is a tensor"):
        conrepair.localize(Module(made), Module(made), data=ROWS, in_process=True)
    found = conrepair.compare(Module(made), Module(made), data=ROWS, in_process=True)
    assert found.exit_code == 4
    assert "the model has no output that is a tensor" in found.reason


@pytest.mark.parametrize(
    ("made", "expected"), [("bfloat16", ROWS.astype(np.float32)), ("complex", ROWS + 2j * ROWS), ("with None", ROWS)]
)
def test_outputs_are_kept(made: str, expected: np.ndarray) -> None:
    run = conrepair.execute(Module(ODD_OUTPUTS[made]), data=ROWS, in_process=True)
    (values,) = run.outputs.values()
    assert values.dtype.kind == expected.dtype.kind
    np.testing.assert_allclose(values, expected, rtol=1e-2)
