"""Measuring a system."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.ground.runtime.errors import ConversionError
from conrepair_lab.accuracy.measured import Measured
from conrepair_lab.accuracy.operators.all_operators import FAMILIES
from conrepair_lab.accuracy.operators.elementwise import UNARY
from conrepair_lab.accuracy.sweep import measure


def opened(path: Path) -> Runnable:
    return OnnxRunnable(Model("onnx", str(path), ""))


SOME = ("Abs", "Atanh", "Elu", "Exp", "HardSwish", "Pow 3", "Sigmoid", "Softplus", "Sqrt", "Tan")


@pytest.fixture(autouse=True, scope="module")
def _fewer() -> Iterator[None]:
    """A tenth of a minute less."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FAMILIES, "unary", tuple(case for case in UNARY if case.operator in SOME))
        yield


@pytest.fixture(scope="module")
def unary() -> dict[str, Measured]:
    return {one.operator: one for one in measure(opened, families=["unary"], system="onnxruntime-none")}


@pytest.fixture(scope="module")
def others() -> dict[str, Measured]:
    families = [name for name in FAMILIES if name != "unary"]
    return {one.operator: one for one in measure(opened, families=families, system="onnxruntime-none")}


def test_there_are_as_many_operators_as_were_asked_for() -> None:
    counts = {name: len({case.operator for case in cases}) for name, cases in FAMILIES.items()}
    counts["unary"] = len({case.operator for case in UNARY})
    assert counts["unary"] >= 38
    assert counts["binary"] >= 10
    assert counts["reductions"] >= 10
    assert sum(counts.values()) >= 80


def test_names_of_cases_are_unlike() -> None:
    names = [case.name for cases in FAMILIES.values() for case in cases]
    assert len(set(names)) == len(names)


def test_the_sigmoid_that_loses_its_digits_is_found(unary: dict[str, Measured]) -> None:
    sigmoid = unary["Sigmoid"]
    assert sigmoid.relative >= 1
    assert sigmoid.above > 10_000
    assert sigmoid.region == "-87.3 < x < -2.97"
    assert "rational function" in sigmoid.form
    assert "subnormal results become 0" in sigmoid.specials


def test_elu_loses_its_digits_near_zero(unary: dict[str, Measured]) -> None:
    assert unary["Elu"].region.startswith("x < 0, |x| < ")
    assert unary["Elu"].form == "e^x - 1: loses its digits for tiny negative x"


@pytest.mark.parametrize("operator", ["Abs", "Exp", "Sqrt", "Tan", "Atanh", "Softplus", "HardSwish", "Pow 3"])
def test_good_kernels_are_good(operator: str, unary: dict[str, Measured]) -> None:
    assert unary[operator].ulps < 5
    assert not unary[operator].faulty
    assert unary[operator].region == unary[operator].form == ""


def test_a_sum_that_is_infinite_is_told_apart(others: dict[str, Measured]) -> None:
    mean = others["Mean"]
    assert mean.ulps <= 0.5
    assert mean.missing > 50
    assert mean.missing_region == "|a| > 1.7e+38"
    assert mean.form == "(a + b) / 2: infinite where a + b is"


def test_nothing_but_the_one_pass_variance_is_above_its_bound(others: dict[str, Measured]) -> None:
    assert {one.operator for one in others.values() if (one.of_bound or 0) > 1} == {"GroupNormalization"}
    found = others["GroupNormalization"]
    assert found.region == "terms far from zero"
    assert "E[x^2] - E[x]^2" in found.form


def test_what_is_refused_is_told_and_the_rest_measured() -> None:
    calls = []

    def without_exp(path: Path) -> Runnable:
        types = {node.op_type for node in onnx.load(path).graph.node}
        calls.append(len(types))
        if types & {"Add", "PRelu"}:
            raise ConversionError("no kernel")
        return opened(path)

    found = {one.operator: one for one in measure(without_exp, families=["binary"])}
    assert {name for name, one in found.items() if one.refused} == {"Add", "PRelu"}
    assert found["Add"].refused == "no kernel"
    assert found["Mul"].ulps == pytest.approx(0.5, rel=1e-4)
    assert len(calls) < 2 * len(found)


def test_other_element_types_are_measured() -> None:
    found = {one.operator: one for one in measure(opened, "float16", ["binary"])}
    assert found["Mul"].dtype == "float16"
    assert 0.4 < found["Mul"].ulps <= 1


def test_a_wrong_answer_is_found_wherever_it_is() -> None:
    class Wrong(Runnable):
        def __init__(self, inner: Runnable) -> None:
            self._inner, self.inputs, self.outputs = inner, inner.inputs, inner.outputs

        def _run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            answers = self._inner.run(feeds)
            x, y = feeds["values"], answers["o_Sqrt"].copy()
            y[(x > 3) & (x < 4)] *= np.float32(1 + 1e-5)
            return answers | {"o_Sqrt": y}

    (found,) = (
        one for one in measure(lambda path: Wrong(opened(path)), families=["unary"]) if one.operator == "Sqrt"
    )
    assert found.relative == pytest.approx(1e-5, rel=0.05)
    assert found.region == "3 < x < 4"
    assert found.form == "no form known"


def test_a_refusal_that_names_an_operator_costs_few_tries() -> None:
    calls = []

    def opener(path: Path) -> Runnable:
        calls.append(path)
        types = {node.op_type for node in onnx.load(path).graph.node}
        if refused := types & {"PRelu", "Mod"}:
            raise ConversionError(f"no kernel for {min(refused)}")
        return opened(path)

    found = measure(opener, families=["binary"])
    assert {one.operator for one in found if one.refused} == {"Mod (fmod)", "PRelu"}
    assert len(calls) == 5
