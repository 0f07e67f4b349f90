"""Nodes that give back what they got, between a tensor and some of those that read it."""

from __future__ import annotations

from collections.abc import Callable

from conrepair.generate.forms.form import form
from conrepair.generate.tensors import BOOL, FLOATS, INTEGERS, NUMERIC, element_type
from conrepair.generate.weaving import Weaver

Between = Callable[[Weaver, str], str]

_ALL_TYPES = NUMERIC + BOOL


def _on_an_edge(name: str, dtypes: tuple[str, ...] = _ALL_TYPES) -> Callable[[Between], Between]:
    """Register what makes a tensor of the same type and values as a form."""

    def registered(body: Between) -> Between:
        @form(name)
        def put(w: Weaver) -> None:
            old = w.pick_or_new(dtypes)
            w.takes_over(old, body(w, old))

        return body

    return registered


@_on_an_edge("identity transpose")
def identity_transpose(w: Weaver, x: str) -> str:
    return w.node("Transpose", x, perm=tuple(range(w.type_of(x).rank)))


@_on_an_edge("cast to its own type")
def own_cast(w: Weaver, x: str) -> str:
    return w.node("Cast", x, to=element_type(w.type_of(x).dtype))


@_on_an_edge("multiplied by one", NUMERIC)
def times_one(w: Weaver, x: str) -> str:
    return w.node("Mul", x, w.constant(_scalar_or_one(w, 1), w.type_of(x).dtype))


@_on_an_edge("divided by one", NUMERIC)
def over_one(w: Weaver, x: str) -> str:
    return w.node("Div", x, w.constant(_scalar_or_one(w, 1), w.type_of(x).dtype))


@_on_an_edge("zero added", NUMERIC)
def plus_nothing(w: Weaver, x: str) -> str:
    zero = w.constant(_scalar_or_one(w, 0), w.type_of(x).dtype)
    return w.node("Add", zero, x) if w.random.random() < 0.5 else w.node(w.random.choice(["Add", "Sub"]), x, zero)


@_on_an_edge("padded by nothing")
def no_pads(w: Weaver, x: str) -> str:
    return w.node("Pad", x, w.constant([0] * 2 * w.type_of(x).rank))


@_on_an_edge("whole slice")
def whole_slice(w: Weaver, x: str) -> str:
    rank = w.type_of(x).rank
    end = w.random.choice([2**31 - 1, 2**63 - 1, max(w.type_of(x).shape)])
    return w.node("Slice", x, w.constant([0] * rank), w.constant([end] * rank), w.constant(list(range(rank))))


@_on_an_edge("concat of one")
def concat_of_one(w: Weaver, x: str) -> str:
    return w.node("Concat", x, axis=w.random.randrange(w.type_of(x).rank))


@_on_an_edge("split into one")
def split_into_one(w: Weaver, x: str) -> str:
    axis = w.random.randrange(w.type_of(x).rank)
    return w.node("Split", x, w.constant([w.type_of(x).shape[axis]]), axis=axis)


@_on_an_edge("reshape to the same shape")
def same_reshape(w: Weaver, x: str) -> str:
    shape = w.type_of(x).shape
    return w.node("Reshape", x, w.constant(w.random.choice([list(shape), [0] * len(shape), [-1, *shape[1:]]])))


@_on_an_edge("expand that does nothing")
def no_expand(w: Weaver, x: str) -> str:
    shape = w.type_of(x).shape
    return w.node("Expand", x, w.constant(w.random.choice([list(shape), [1] * len(shape), [1]])))


@_on_an_edge("dropout in inference", FLOATS)
def no_dropout(w: Weaver, x: str) -> str:
    return w.node("Dropout", x)


@_on_an_edge("two transposes that cancel")
def two_transposes(w: Weaver, x: str) -> str:
    order = w.random.sample(range(w.type_of(x).rank), w.type_of(x).rank)
    turned = w.node("Transpose", x, perm=tuple(order))
    return w.node("Transpose", turned, perm=tuple(order.index(axis) for axis in range(len(order))))


@_on_an_edge("two casts that cancel", INTEGERS)
def two_casts(w: Weaver, x: str) -> str:
    wide = w.node("Cast", x, to=element_type("int64" if w.type_of(x).dtype != "uint64" else "uint64"))
    return w.node("Cast", wide, to=element_type(w.type_of(x).dtype))


def _scalar_or_one(w: Weaver, value: int) -> int | list[int]:
    return value if w.random.random() < 0.5 else [value]
