"""Patterns that nearly fit: valid networks, with one node that isn't as the pattern has it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from contextlib import suppress
from random import Random

import onnx
import pytest

from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.networks import made
from conrepair_lab.generate.patterns.pattern import patterns
from conrepair_lab.generate.settings.ports import NotAllowedError, Support
from conrepair_lab.generate.slips import Slipping
from conrepair_lab.generate.weaving import Body
from conrepair_lab.generate.wishes import Wishes

WISHES = Wishes(nodes=14, woven=1.0, patterns={"layer norm written out": 1.0})

LAYER_NORM = patterns()["layer norm written out"].body


def slipped(seed: int, pattern: Body = LAYER_NORM) -> Draft | None:
    """A pattern in which something slips; None where that isn't allowed."""
    draft = Draft(20)
    weaver = Slipping(draft, Random(seed), Support(), 4096, "pattern")
    for _ in range(4):
        with suppress(NotAllowedError), weaver.whole():
            pattern(weaver)
            return draft
    return None


def written(draft: Draft) -> list[tuple[str, tuple[tuple[str, object], ...]]]:
    """Operators and attributes."""
    return [(node.op, tuple(sorted(node.attributes.items()))) for node in draft.nodes]


def test_one_node_slips_and_the_others_are_the_patterns() -> None:
    found = [written(draft) for seed in range(300) if (draft := slipped(seed)) is not None]
    assert len(found) > 100
    sorts = Counter(tuple(found_in) for found_in in found)
    assert len(sorts) >= 8, "flags, nodes between"
    assert any(("keepdims", 0) in attributes for item in found for _, attributes in item)
    assert {"Identity", "Cast", "Transpose"} <= {op for item in found for op, _ in item}


@pytest.mark.parametrize("seed", range(12))
def test_networks_with_slips_are_valid(seed: int) -> None:
    network = made(dataclasses.replace(WISHES, slips=1.0), Random(seed), Support())
    onnx.checker.check_model(network.model, full_check=True)


def test_without_slips_networks_are_what_they_were() -> None:
    one, two = (made(wishes, Random(3), Support()) for wishes in (WISHES, dataclasses.replace(WISHES, slips=0.0)))
    assert one.model.SerializeToString() == two.model.SerializeToString()
    other = made(dataclasses.replace(WISHES, slips=1.0), Random(3), Support())
    assert other.model.SerializeToString() != one.model.SerializeToString()


def test_a_pattern_slips_into_another_type() -> None:
    drafts = [draft for seed in range(60) if (draft := slipped(seed)) is not None]
    types = {
        frozenset(tensor.type.dtype for tensor in draft.tensors.values() if "float" in tensor.type.dtype)
        for draft in drafts
    }
    assert types == {frozenset({"float16"}), frozenset({"float32"}), frozenset({"float64"})}


def test_all_nodes_of_an_operator_slip_alike() -> None:
    flags = [
        [node.attributes.get("keepdims", 1) for node in draft.nodes if node.op == "ReduceMean"]
        for seed in range(1000)
        if (draft := slipped(seed)) is not None
    ]
    assert [0, 0] in flags
    assert [0, 1] in flags or [1, 0] in flags


def test_what_a_specification_allows_is_drawn_anew() -> None:
    found = Counter[str]()
    for draft in filter(None, (slipped(seed, patterns()["pad and pool"].body) for seed in range(600))):
        for node in draft.nodes:
            if node.op == "AveragePool":
                said = {"kernel_shape": (3, 3), "count_include_pad": 1}
                found.update(name for name, value in node.attributes.items() if said.get(name) != value)
            if node.op == "Pad":
                array = draft.tensors[node.inputs[1]].value
                found.update(["pads of Pad"] if array is not None and set(array[[0, 1]]) != {0} else [])
    assert {"ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides", "pads of Pad"} <= found.keys(), found


def test_a_network_of_one_pattern_has_nothing_else() -> None:
    bare = dataclasses.replace(WISHES, nodes=2, bare=1.0)
    drafts = [made(bare, Random(seed), Support()).draft for seed in range(20)]
    single = [draft for draft in drafts if len({node.origin for node in draft.nodes}) == 1]
    assert len(single) >= 16, "nodes that aren't finite have others in their place"
    assert len({draft.nodes[0].origin for draft in single}) > 10
