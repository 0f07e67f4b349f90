"""Which forms are seen where."""

from __future__ import annotations

import dataclasses
import json

import onnx
import pytest
import unstable_forms as unstable

from conrepair.ground.equations.expression import names_in, parse
from conrepair.ground.forms.all_forms import FORMS, found, words
from conrepair.ground.forms.form import Place

_VARIANCE = "a = ReduceMean(q, last) m = ReduceMean(x, last) s = Mul(m, m) y = Sub(a, s)"
ALIKE = {  # one step away from a form
    "log of 2 + e^x": "a = Exp(x) b = Add(two, a) y = Log(b)",
    "1 - e^x": "a = Exp(x) y = Sub(one, a)",
    "the mean of another tensor": "n = Neg(x) q = Mul(x, x) " + _VARIANCE.replace("(x,", "(n,"),
    "over other axes": "q = Mul(x, x) " + _VARIANCE.replace("(x, last)", "(x)"),
    "a difference of a product with another": "q = Mul(x, two) " + _VARIANCE,
    "exponentials of other tensors": "n = Neg(x) a = Exp(x) b = Exp(n) s = ReduceSum(b, last) y = Div(a, s)",
}
OTHERS = {
    "1/sqrt": "s = Sqrt(x) y = Div(two, s)",
    "e^(y log x)": "y = Pow(x, two)",
    "argument reduced in few bits": "y = Cos(x)",
    "fast e^x": "y = Softmax(x)",
    "contraction": "p = Mul(x, two) y = Add(one, p)",
    "order of a sum": "t = Transpose(x) y = MatMul(x, t)",
    "bounded argument": "y = Erf(x)",
    "folded constants": "l = Log(two) e = Exp(l) y = Mul(x, e)",
}


def at_the_end(model: onnx.ModelProto) -> dict[str, Place]:
    return {place.form: place for place in found(model) if place.output == "y"}


@pytest.mark.parametrize("name", unstable.CASES)
def test_each_form_is_found_at_its_last_node(name: str) -> None:
    case = unstable.CASES[name]
    place = at_the_end(unstable.network(case.body, case.x.shape))[case.form]
    assert place.inputs[0] == "x"
    assert place.nodes[0] == "y"
    assert Place(**json.loads(json.dumps(dataclasses.asdict(place)))).numbers == place.numbers
    assert set(place.nodes) == {step.split(" = ")[0].split()[-1] for step in case.body.split(")")[:-1]}


@pytest.mark.parametrize("form", OTHERS)
def test_forms_without_a_case_are_found_too(form: str) -> None:
    places = found(unstable.network(OTHERS[form], (8, 8)))
    assert form in {place.form for place in places}


def test_there_are_twelve_forms_and_more_of_which_seven_have_a_stable_one() -> None:
    assert len(FORMS) >= 12
    assert sum(bool(form.remedy) for form in FORMS.values()) >= 7
    for form in FORMS.values():
        assert bool(form.remedy) == (form.wider is not None or any(writing.stable for writing in form.writings))


@pytest.mark.parametrize("body", ALIKE.values(), ids=ALIKE)
def test_what_is_alike_is_no_form(body: str) -> None:
    places = at_the_end(unstable.network(body, (8, 8)))
    assert not set(places) - {"order of a sum", "contraction"}


def test_sums_with_the_terms_in_another_order_and_powers_are_the_same_form() -> None:
    for body in ("a = Exp(x) b = Add(a, one) y = Log(b)", "a = Exp(x) b = Add(one, a) y = Log(b)"):
        assert at_the_end(unstable.network(body, (8,)))["log(1 + e^x)"].inputs == ("x",)
    body = "q = Pow(x, two) " + _VARIANCE
    assert "E[x^2] - E[x]^2" in at_the_end(unstable.network(body, (8, 8)))


@pytest.mark.parametrize(("opset", "axes"), [(11, [1, 2]), (13, [2])])
def test_softmax_sums_over_the_axes_of_its_opset(opset: int, axes: list[int]) -> None:
    place = at_the_end(unstable.network("y = Softmax(x)", (2, 3, 4), opset=opset))[
        "e^x without the largest taken out"
    ]
    assert place.numbers["axes"] == axes


@pytest.mark.parametrize(
    ("call", "axes"),
    [
        ("ReduceLogSumExp(x)", [0, 1]),
        ("ReduceLogSumExp<noop_with_empty_axes = 1>(x)", None),
        ("ReduceLogSumExp(x, last)", [1]),
        ("ReduceLogSumExp(x, made)", None),
    ],
)
def test_reductions_of_known_axes_sum_over_them(call: str, axes: list[int] | None) -> None:
    made = "made = Shape(x) " if "made" in call else ""
    place = at_the_end(unstable.network(f"{made}y = {call}", (2, 2))).get("e^x without the largest taken out")
    assert (None if place is None else place.numbers["axes"]) == axes


def test_attributes_and_their_defaults_are_told() -> None:
    assert at_the_end(unstable.network("y = Elu(x)", (8,)))["e^x - 1"].numbers == {"alpha": 1.0}
    assert at_the_end(unstable.network("y = Elu<alpha = 0.5>(x)", (8,)))["e^x - 1"].numbers == {"alpha": 0.5}


def test_half_precision_sums_are_those_of_half_precision() -> None:
    body = "y = ReduceSum(x, last)"
    assert "half precision sums" not in at_the_end(unstable.network(body, (8, 8)))
    for dtype in ("float16", "bfloat16"):
        assert "half precision sums" in at_the_end(unstable.network(body, (8, 8), dtype=dtype))


def test_constants_that_are_only_moved_or_computed_of_the_input_are_not_folded() -> None:
    for body in ("r = Reshape(two, last) y = Mul(x, r)", "l = Log(x) y = Mul(l, two)"):
        assert "folded constants" not in {place.form for place in found(unstable.network(body, (8,)))}
    places = found(unstable.network("l = Log(two) e = Exp(l) y = Mul(x, e)", (8,)))
    assert [place.nodes for place in places if place.form == "folded constants"] == [("e", "l")]


def test_places_are_told_in_words() -> None:
    model = unstable.network("m = Mish(x) y = Cos(m)", (8,))
    model.graph.node[0].name = "activation"
    told = words(found(model))
    assert told[0].startswith("Mish 'activation': log(1 + e^x). Instead: max(x, 0) + log1p(e^-|x|)")
    assert told[1].startswith("Cos 'y': argument reduced in few bits. Instead: compute it in float64.")


def test_an_expression_names_what_it_reads_in_order() -> None:
    assert names_in(parse("e = Exp(y); e / (x + e)")) == ["y", "x"]
    assert parse("-x * 2") == parse("Mul(Neg(x), 2)")
    for text in ("", "e = Exp(x)"):
        with pytest.raises(ValueError, match="computes nothing"):
            parse(text)
    with pytest.raises(ValueError, match="no operator is meant"):
        parse("(x, y)")
