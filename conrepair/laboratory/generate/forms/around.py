"""Nodes, outputs and weights that a network has twice, or without need."""

from __future__ import annotations

from conrepair.laboratory.generate.forms.form import form, written_forms
from conrepair.laboratory.generate.settings.ports import NotAllowedError
from conrepair.laboratory.generate.weaving import Weaver

written_forms("""
dead branch:
    hidden(apply(one("Sigmoid", "Abs", "Neg"), Tanh(some(FLOATS, rank=ANY_RANK))))
one tensor twice:
    x = some(NUMERIC, rank=ANY_RANK); apply(one("Add", "Sub", "Mul", "Max", "Min"), x, x)
shared weight:
    x = some(FLOATS); factor = new(width(x), dtype=dtype(x)); (x + factor) * factor
scalar against one element:
    type = a_type(FLOATS); both = apply(one("Add", "Mul", "Sub"), new(dtype=type), new(1, dtype=type))
    some(dtypes=(type,), rank=ANY_RANK) * both
""")


@form("duplicated node")
def duplicated(w: Weaver) -> None:
    draft = w.draft
    usual = [node for node in draft.nodes if node.piece is None]
    nodes = [node for node in usual if len(node.outputs) == 1 and draft.tensors[node.outputs[0]].free]
    if not nodes:
        raise NotAllowedError("no node can be there twice")
    node = w.random.choice(nodes)
    inputs = [name or None for name in node.inputs]
    w.takes_over(node.outputs[0], w.node(node.op, *inputs, **node.attributes))


@form("input that is an output")
def shown_input(w: Weaver) -> None:
    names = [name for name, tensor in w.draft.sources.items() if tensor.readers]
    if not names:
        raise NotAllowedError("the network has no input")
    w.draft.shown.add(w.random.choice(names))


@form("output that is read")
def shown_inside(w: Weaver) -> None:
    names = [name for name in w.draft.made() if w.draft.tensors[name].readers]
    if not names:
        raise NotAllowedError("nothing inside is read")
    w.draft.shown.add(w.random.choice(names))


@form("several broadcast inputs")
def broadcast(w: Weaver) -> None:
    x = w.pick(("float32",), rank=(3, 4), new=True)
    made = w.type_of(x)
    shapes = (
        tuple(size if place == axis else 1 for place, size in enumerate(made.shape)) for axis in range(made.rank)
    )
    parts = [w.new(made.dtype, shape) for shape in shapes]
    w.node(w.random.choice(["Sum", "Max", "Min", "Mean"]), x, *parts)
