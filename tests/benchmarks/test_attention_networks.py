"""Networks of attention: their writings agree, their faults don't, and splits share none."""

from __future__ import annotations

import pytest

from benchmarks.attention.cases import plan
from benchmarks.attention.faults.catalogue import FAULTS, put_in
from benchmarks.attention.networks import build
from benchmarks.attention.samples import samples
from benchmarks.attention.spec import MASKS, POSITIONS, networks, writing_of
from benchmarks.common.cases import DEVELOPMENT_SEEDS, REPORTING_SEEDS
from benchmarks.common.exact import difference, in_float32, in_float64
from benchmarks.common.located import LEAST_EFFECT

SPECS = networks(DEVELOPMENT_SEEDS[0])


@pytest.mark.parametrize("spec", [spec for spec in SPECS if not spec.massive][:4], ids=lambda spec: spec.name)
def test_all_writings_compute_the_same(spec: object) -> None:
    feeds = samples(spec)
    graphs = [build(spec, writing_of(spec, number)).model() for number in range(5)]
    first = in_float64(graphs[0], feeds)
    assert max(difference(first, in_float64(graph, feeds)) for graph in graphs[1:]) < 1e-6
    assert difference(first, in_float32(graphs[0], feeds)) < 1e-4


def test_each_fault_changes_some_network() -> None:
    left = set(FAULTS)
    for spec in (*SPECS, *networks(DEVELOPMENT_SEEDS[1])):
        writing, feeds = writing_of(spec, 0), samples(spec, 2)
        right = build(spec, writing)
        expected = in_float32(right.model(), feeds)
        for name in sorted(left):
            wrong = put_in(FAULTS[name], right, spec, writing, range(spec.blocks), 1)
            if wrong is None:
                continue
            given = in_float32(wrong.model(), feeds)
            if difference(expected, given) > LEAST_EFFECT:
                left.remove(name)
                assert wrong.differing(right)
        assert not right.differing(build(spec, writing))  # a fault is put into a copy
    assert not left


def test_development_and_reporting_share_no_network() -> None:
    specs = {
        seeds: [spec for seed in seeds for spec in networks(seed)] for seeds in (DEVELOPMENT_SEEDS, REPORTING_SEEDS)
    }

    def sorts(seeds: tuple[int, ...]) -> set[tuple[object, ...]]:
        return {
            (spec.mask, spec.position, spec.norm, spec.before, spec.mlp, bool(spec.past), spec.massive)
            for spec in specs[seeds]
        }

    assert not sorts(DEVELOPMENT_SEEDS) & sorts(REPORTING_SEEDS)
    for found in specs.values():
        assert {spec.mask for spec in found} == set(MASKS)
        assert {spec.position for spec in found} == set(POSITIONS)
    names = [{case.name for case in plan(seeds)} for seeds in (DEVELOPMENT_SEEDS, REPORTING_SEEDS)]
    assert not names[0] & names[1]
