"""Which networks a campaign has, in which order, and who tries them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns.fuzz_jobs import read_network
from conrepair_lab.campaigns.fuzz_networks import ROUND, FuzzNetwork, dealt, rounds
from conrepair_lab.options.fuzz import Fuzz

FEW: Any = {
    "operators": ["Add", "Max", "Relu", "Concat"],
    "dtypes": ["float32", "int64"],
}  # others take seconds to ask for
SYSTEMS = ["ort-none", "convert-version", "tvm-O3", "torch-compile", "convert-keras"]


def listed(asked: Fuzz, root: Path, own: list[tuple[Path, str]] | None = None) -> list[list[FuzzNetwork]]:
    with ProgressDisplay(quiet=True) as display:
        return list(rounds(asked, root, own or [], display))


def test_networks_of_one_operator_come_first(tmp_path: Path) -> None:
    (both,) = listed(Fuzz(alone=3, count=2, nodes=4, seed=7, **FEW), tmp_path)
    alone, others = both[:3], both[3:]
    assert [item.alone for item in both] == [True] * 3 + [False] * 2
    assert [item.place for item in others] == [0, 1]
    assert len({item.name for item in alone + others}) == 5
    for item in alone + others:
        case, answers = read_network(item.folder)
        assert answers is not None
        assert item.source.startswith("seed 7, ")
        assert (len(case.model.graph.node) == 1) or not item.alone


def test_the_same_seed_gives_the_same_networks_and_more_are_more_of_them(tmp_path: Path) -> None:
    (few,) = listed(Fuzz(alone=2, count=0, seed=3, **FEW), tmp_path / "few")
    (again,) = listed(Fuzz(alone=4, count=0, seed=3, **FEW), tmp_path / "few")
    (many,) = listed(Fuzz(alone=4, count=0, seed=3, **FEW), tmp_path / "many")
    assert [item.name for item in again] == [item.name for item in many]
    assert [item.name for item in few] == [item.name for item in many[:2]]
    for one, two in zip(again, many, strict=True):
        assert read_network(one.folder)[0].key == read_network(two.folder)[0].key


def test_none_are_none(tmp_path: Path) -> None:
    assert listed(Fuzz(alone=0, count=0), tmp_path) == []


def test_a_persons_own_come_in_one_round_and_nothing_is_generated(tmp_path: Path) -> None:
    own = [(tmp_path / f"hash-{place}", f"net.onnx, inputs {place}") for place in range(3)]
    (only,) = listed(Fuzz(models=["net.onnx"], alone=5), tmp_path, own)
    assert [(item.name, item.place, item.source) for item in only] == [
        (folder.name, place, source) for place, (folder, source) in enumerate(own)
    ]
    assert not list(tmp_path.iterdir())


@given(st.lists(st.sampled_from(SYSTEMS), min_size=1, unique=True), st.integers(1, ROUND), st.booleans())
def test_everybody_tries_some_and_the_fastest_all(systems: list[str], count: int, alone: bool) -> None:
    networks = [FuzzNetwork(str(place), place, Path(), alone, "") for place in range(count)]
    shares = dealt(Fuzz(systems=systems), networks)
    assert list(shares) == systems
    assert max(map(len, shares.values())) == count
    assert min(map(len, shares.values())) >= 1


@pytest.mark.parametrize("systems", [SYSTEMS, SYSTEMS[3:]])
def test_a_persons_own_are_tried_by_everybody(systems: list[str]) -> None:
    networks = [FuzzNetwork(str(place), place, Path(), False, "") for place in range(7)]
    assert all(len(share) == 7 for share in dealt(Fuzz(models=["a.onnx"], systems=systems), networks).values())
