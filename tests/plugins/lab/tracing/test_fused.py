"""Which operator of a fused kernel makes an error, or whether that's their fusion."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

from conrepair.formats.networks.network import CompiledKernel
from conrepair_lab.tracing.formed import has_guilty_groups, taken_apart
from conrepair_lab.tracing.propagation import KernelError, Replayed

MODEL = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["" : 17]>\n'
    "g (float[1, 3] x) => (float[1, 3] y) { h = Exp (x) g = Neg (h) k = Abs (g) y = Tanh (k) }"
)
KINDS = {"h": "Exp", "g": "Neg", "k": "Abs", "y": "Tanh"}


def error(tensor: str, operators: str, change: str = "generated") -> KernelError:
    return KernelError(tensor, (f"kernel_{tensor}",), tuple(operators.split()), (), 0.0, 1.0, 2.0, 1.0, change)


def run(*errors: KernelError) -> Replayed:
    return Replayed(errors, given={item.tensor: np.zeros(3) for item in errors})


FUSED = run(error("g", "Exp Neg"), error("y", "Abs Tanh"))
NETWORK: Any = SimpleNamespace(kernel=lambda tensor: CompiledKernel((), ((tensor, KINDS[tensor]),)))


@pytest.mark.parametrize(
    ("guilty", "culprits"),
    [
        ({"h"}, [("Exp 'h'",), ()]),
        ({"h", "g", "y"}, [("Exp 'h'", "Neg 'g'"), ("Tanh 'y'",)]),
        (set(), [(), ()]),
    ],
)
def test_operators_that_are_wrong_alone(guilty: set[str], culprits: list[tuple[str, ...]]) -> None:
    single = run(*(error(name, kind, "generated" if name in guilty else "rounded") for name, kind in KINDS.items()))
    told, own = taken_apart(MODEL, FUSED, NETWORK, single)
    assert [item.culprits for item in told.errors] == culprits
    assert {item.tensor for item in own.errors} == guilty


def test_only_kernels_of_several_operators_are_taken_apart() -> None:
    assert has_guilty_groups(FUSED)
    assert not has_guilty_groups(run(error("h", "Exp"), error("g", "Exp Neg", "rounded")))
    told, own = taken_apart(MODEL, run(error("h", "Exp"), error("g", "Neg Abs", "amplified")), NETWORK, FUSED)
    assert [item.culprits for item in told.errors] == [None, None]
    assert own.errors == ()
