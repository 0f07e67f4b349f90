"""Modules whose outputs are none, complex, or of types that NumPy hasn't, through the verbs of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import conrepair
from conrepair.verdicts.evaluate.verdict import Verdict

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


class Module(torch.nn.Module):
    """A linear layer, and something made of what it gives."""

    def __init__(self, made: Callable[[torch.Tensor], Any], scale: float = 1.0) -> None:
        super().__init__()
        self.made, self.layer = made, torch.nn.Linear(3, 3)
        with torch.no_grad():
            self.layer.weight.copy_(torch.eye(3) * scale)
            self.layer.bias.zero_()

    def forward(self, value: torch.Tensor) -> Any:
        return self.made(self.layer(value))


@pytest.mark.parametrize("made", [lambda _: None, lambda _: 3], ids=["None", "a number"])
def test_a_module_that_gives_no_tensor(made: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(conrepair.ConrepairError, match="the model gives no tensor"):
        conrepair.execute(Module(made), data=X, in_process=True)
    with pytest.raises(conrepair.ConrepairError, match="the model gives no tensor"):
        conrepair.localize(Module(made), Module(made), data=X, in_process=True)
    found = conrepair.compare(Module(made), Module(made), data=X, in_process=True)
    assert found.exit_code == 4
    assert "the model gives no tensor" in found.reason


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda value: value.bfloat16(), X.astype(np.float32)),
        (lambda value: torch.complex(value, 2 * value), X + 2j * X),
        (lambda value: (value, None), X),
    ],
    ids=["bfloat16", "complex", "with None"],
)
def test_outputs_are_kept_and_compared(made: Callable[[torch.Tensor], Any], expected: np.ndarray) -> None:
    run = conrepair.execute(Module(made), data=X, in_process=True)
    (values,) = run.outputs.values()
    assert values.dtype.kind == expected.dtype.kind
    np.testing.assert_allclose(values, expected, rtol=1e-2)
    same = conrepair.compare(Module(made), Module(made), data=X, in_process=True)
    assert same.verdict is Verdict.EQUIVALENT
    other = conrepair.compare(Module(made), Module(made, 1.5), data=X, in_process=True)
    assert other.verdict is Verdict.FAULTY
    (output,) = other.row.comparison.outputs if other.row.comparison is not None else ()
    assert output.error.relative_l2 == pytest.approx(0.5, rel=1e-2)
    found = conrepair.localize(Module(made), Module(made, 1.5), data=X, in_process=True)
    assert found.verdict is Verdict.FAULTY
