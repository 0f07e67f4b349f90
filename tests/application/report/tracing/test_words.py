"""A trace in words."""

from __future__ import annotations

import dataclasses

from conrepair.application.report.tracing.words import traced_lines
from conrepair.laboratory.systems.system import Switch
from conrepair.laboratory.tracing.propagation import KernelError
from conrepair.laboratory.tracing.result import Culprits, Deviation, Errors, Kernels, Side, Traced

NONE = Errors(0.0, 0.0, 0.0)
WRONG = Deviation("y", 0, "wrong", "setting", (0,), dict.fromkeys(("setting", "against", "exact"), 0.0), 0, NONE, NONE, NONE)  # fmt: skip  # noqa: E501


def told(culprits: Culprits, *kernels: KernelError) -> str:
    traced = Traced("m", "", Side("one"), Side("two"), "mega", "guide", 0, deviations=(WRONG,), culprits=culprits, kernels=Kernels(kernels))  # fmt: skip  # noqa: E501
    return "\n".join(traced_lines(traced))


def test_a_set_that_is_not_the_smallest_is_not_said_to_be_a_cause() -> None:
    cause = tuple(Switch(f"pass {number}", "pass", "") for number in range(11))
    found = told(Culprits(asked=98, causes=(cause,), builds=6, exact=False))
    assert "among: pass 0 (pass) and pass 1 (pass)" in found
    assert "pass 7 (pass) and 3 more (trace.json)" in found
    assert "or smaller sets" in found
    assert "only together" not in found
    assert "only together: pass 0 (pass) and pass 1 (pass)\n" in f"{told(Culprits(asked=98, causes=(cause[:2],)))}\n"


def test_a_fused_kernel_names_its_operator_or_the_fusion() -> None:
    error = KernelError("y", ("fused_a_b",), ("Abs", "Tanh"), (), 0.0, 1.0, 2.0, 1.0, "generated")
    for culprits, words in (
        (("Tanh 'y'",), "1 its own; alone, it's Tanh 'y'\n"),
        ((), "1 its own; each operator alone is right: it's their fusion\n"),
        (None, "1 its own\n"),
    ):
        assert words in f"{told(Culprits(), dataclasses.replace(error, culprits=culprits))}\n"
