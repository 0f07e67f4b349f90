"""Constants that say shapes, places and equations: what's drawn means what it should."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.settings.expressions import Unknown
from conrepair_lab.generate.settings.layouts import NewShape, Parts, Places
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.settings.shapes import Broadcast, Lettered
from conrepair_lab.generate.settings.tensors import Range, TensorType
from conrepair_lab.generate.specifications.products import Equation, terms_of
from conrepair_lab.generate.symbolic import retyped
from conrepair_lab.generate.values.drawn import drawn_values
from conrepair_lab.generate.weaving import Weaver


class Small:
    """Sizes that are drawn, all up to 5."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def size(self, low: int, high: int | None) -> int:
        return self.random.randint(max(1, low), 5 if high is None else high)

    def rank(self, choices: tuple[int, ...]) -> int:
        return self.random.choice(choices)


@pytest.mark.parametrize("shape", [(2, 3, 4), (12,), (1, 1), (), (7, 5)])
def test_another_shape_has_the_same_elements(shape: tuple[int, ...]) -> None:
    for seed in range(40):
        new = NewShape(shape, zeros=True)
        value = new.drawn(Random(seed))
        assert new.allows(value)
        filled = [shape[place] if size == 0 else size for place, size in enumerate(value)]
        assert np.zeros(shape).reshape(filled).size == np.prod(shape)


def test_a_shape_that_is_wanted_is_drawn_whatever_there_is() -> None:
    size = Unknown("size", 1, 64)
    for seed in range(30):
        value = NewShape((size,), zeros=False, wanted=(2, 6)).drawn(Random(seed))
        assert np.zeros(12).reshape(value).shape == (2, 6)


@pytest.mark.parametrize("step", [1, 3, -1, -2])
def test_slices_mostly_leave_something(step: int) -> None:
    kept = 0
    for seed in range(60):
        random = Random(seed)
        begins = Places([5], [step]).drawn(random)
        ends = Places([5], [step], begins, 2**63 - 1).drawn(random)
        kept += bool(range(5)[begins[0] : ends[0] : step])
    assert kept > 30


def test_parts_make_the_whole() -> None:
    for seed in range(30):
        parts = Parts(7, 3)
        assert parts.allows(parts.made(Small(seed)))
    assert not Parts(7, 2).allows((3, 3))


def test_the_same_letter_has_the_same_size() -> None:
    for seed in range(30):
        pattern = Lettered("a...bb", {"a": 3}, Broadcast((4, 1)))
        shape = pattern.made(Small(seed))
        named, others = pattern.split(shape)
        assert shape[0] == named["a"] == 3
        assert shape[-1] == shape[-2] == named["b"]
        assert pattern.allows((3, *others, 2, 2))
    assert not Lettered("ii").allows((2, 3))
    assert not Lettered("ij").allows((2, 3, 4))


def test_equations_say_inputs_and_output() -> None:
    assert terms_of("ij, jk -> ik") == (["ij", "jk"], "ik")
    assert terms_of("b...a,cb") == (["b...a", "cb"], "...ac")
    assert terms_of("ii") == (["ii"], "")
    for seed in range(60):
        drawn = Equation().drawn(Random(seed))
        assert Equation().allows(drawn), drawn
    for wrong in ("ij->ik", "ij->ii", "...i->i", "i.j", "Ab", "ij->...i"):
        assert not Equation().allows(wrong)


def test_places_are_drawn_once_each() -> None:
    generator = np.random.default_rng(0)
    rows = Range((0, 0), (1, 3), rows=True)
    drawn = drawn_values(TensorType("int64", (2, 4, 2)), rows, generator)
    assert len(np.unique(drawn.reshape(-1, 2), axis=0)) == 8
    assert rows.allows(drawn)
    assert not rows.allows(np.zeros((2, 2)))
    assert not rows.allows(np.array([[2, 0]]))
    columns = drawn_values(TensorType("int32", (4, 3)), Range(0, 3, distinct=True, axis=0), generator)
    assert (np.sort(columns, axis=0) == np.arange(4)[:, None]).all()


def test_a_shape_that_is_calculated_says_what_it_gives() -> None:
    draft = Draft(20)
    weaver = Weaver(draft, Random(0), Support(), 4096, "test")
    x = weaver.new("float32", (2, 3, 4))
    batch = weaver.node("Gather", weaver.node("Shape", x), weaver.constant([0]), axis=0)
    shape = weaver.node("Concat", batch, weaver.constant([-1]), axis=0)
    flat = weaver.node("Reshape", x, shape)
    assert draft.tensors[flat].type == TensorType("float32", (2, 12))
    larger = retyped(draft, {x: TensorType("float32", (5, 3, 4))}, Support())
    assert larger[flat].shape == (5, 12)
    draft.cut(draft.producers()[shape])
    assert draft.tensors[shape].array is not None
    assert draft.tensors[shape].array.tolist() == [2, -1]
