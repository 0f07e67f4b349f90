"""Legal nonsense: each form fits into a network, alone, and leaves it valid; one that doesn't fit leaves no trace."""

from __future__ import annotations

from random import Random

import onnx
import pytest

from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.forms.form import forms
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.growing import Growing
from conrepair_lab.generate.networks import made
from conrepair_lab.generate.onnx_form import accepted, model_of
from conrepair_lab.generate.settings.ports import NotAllowedError
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.weaving import Weaver
from conrepair_lab.generate.wishes import Wishes

SUPPORT = Probed(20, accepted)
_ENOUGH = 2
"""Networks with a form."""
OPERATORS = ("Add", "Conv", "Identity", "MatMul", "Mul", "Relu", "Sigmoid", "Transpose")


@pytest.mark.parametrize("name", list(forms()))
def test_a_form_fits(name: str) -> None:
    wishes = Wishes(nodes=8, woven=0, quotas={other: float(other == name) for other in forms()})
    found = 0
    for seed in range(6):
        network = made(wishes, Random(seed), SUPPORT)
        assert network.parts <= {name}
        found += name in network.parts
        onnx.checker.check_model(network.model, full_check=True)
        if found == _ENOUGH:
            break
    assert found


def test_what_does_not_fit_leaves_no_trace() -> None:
    random = Random(1)
    draft = Draft(20)
    Growing(Wishes(operators=OPERATORS), random, SUPPORT, Diversity(()), 4096).grow(draft, 10)
    before = model_of(draft, {}).SerializeToString(deterministic=True)
    weaver = Weaver(draft, random, SUPPORT, 4096, "test")
    with pytest.raises(NotAllowedError), weaver.whole():  # noqa: PT012 (what comes before is what must be undone)
        x = weaver.pick()
        weaver.takes_over(x, weaver.node("Relu", x))
        weaver.draft.hidden.add(weaver.node("Mul", x, weaver.new(weaver.type_of(x).dtype, ())))
        weaver.node("MatMul", x, weaver.constant([1.0], "float64"))
    assert model_of(draft, {}).SerializeToString(deterministic=True) == before
