"""What a network is after one of its nodes was taken out."""

from __future__ import annotations

from random import Random

from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.weaving import Weaver


def _chain(*operators: str) -> tuple[Draft, list[str]]:
    """A chain behind a tensor of 2 by 3, and the tensors' names."""
    draft = Draft(20)
    weaver = Weaver(draft, Random(0), Support(), 4096, "test")
    names = [weaver.new("float32", (2, 3))]
    for op in operators:
        names.append(weaver.node(op, names[-1]))
    return draft, names


def test_what_read_a_node_that_is_taken_out_reads_what_that_read() -> None:
    draft, (first, second, third, last) = _chain("Relu", "Tanh", "Neg")
    draft.cut(draft.producers()[third])
    assert [(node.op, node.inputs) for node in draft.nodes] == [("Relu", [first]), ("Neg", [second])]
    assert list(draft.sources) == [first]
    assert draft.tensors[second].readers == 1
    assert third not in draft.tensors
    assert draft.outputs() == [last]
    assert draft.origins() == {second: {first}, last: {first}}


def test_what_would_read_nothing_that_a_node_makes_goes_with_it() -> None:
    draft, (first, second, third, _) = _chain("Relu", "Shape", "Abs")
    draft.tensors[third].told = None  # as if it weren't known
    draft.cut(draft.producers()[third])
    assert [node.op for node in draft.nodes] == ["Relu"]
    assert draft.tensors.keys() == {first, second}
    assert draft.outputs() == [second]
