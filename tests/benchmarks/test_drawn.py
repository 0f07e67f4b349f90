"""Networks that a seed draws, and who has them."""

from __future__ import annotations

import pytest

from benchmarks.common.cases import plan
from benchmarks.common.drawn import drawn
from benchmarks.common.making import build
from benchmarks.common.models import DEVELOPMENT_SEEDS, MODELS, REPORTING_SEEDS, models_of
from conrepair.formats.models.registry import framework

_SETS = (DEVELOPMENT_SEEDS, REPORTING_SEEDS)


def test_development_and_reporting_share_no_network() -> None:
    development, reporting = (set(models_of(seeds)) for seeds in _SETS)
    assert not development & reporting
    assert development | reporting == set(MODELS)
    assert {MODELS[name].size for name in development} == {MODELS[name].size for name in reporting}
    one, two = ({case.name for case in plan(models_of(seeds), seeds)} for seeds in _SETS)
    assert not one & two  # right conversions, too


def test_a_network_has_the_faults_of_its_own_seed() -> None:
    cases = plan(models_of(REPORTING_SEEDS), REPORTING_SEEDS)
    seeds = {(case.model, case.seed) for case in cases if case.count and MODELS[case.model].seed}
    assert seeds == {(name, MODELS[name].seed) for name, _ in seeds}
    assert len(seeds) == 10


def test_seeds_draw_other_networks() -> None:
    for one, two in zip(drawn(3), drawn(4), strict=True):
        assert one.factory == two.factory
        assert (one.kwargs, one.name) != (two.kwargs, two.name)
    assert drawn(3) == drawn(3)


@pytest.mark.parametrize("family", range(1, 5))  # the first one is trained
@pytest.mark.parametrize("seed", [3, 4])
def test_what_is_drawn_runs(family: int, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    wanted = drawn(seed)[family]
    model = build(wanted, tmp_path_factory.mktemp("drawn"))
    assert len(framework("torch").describe(model).inputs) == len(wanted.inputs)
