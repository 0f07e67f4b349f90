"""Which suspicions are looked into, and which findings are one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from fuzz_cases import compared_by_halves, padded_pool
from fuzz_findings import finding_of

from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns.fuzz_database import Database
from conrepair_lab.campaigns.fuzz_networks import FuzzNetwork
from conrepair_lab.campaigns.fuzzing import Campaign
from conrepair_lab.fuzz.cause import Cause
from conrepair_lab.fuzz.known import Known
from conrepair_lab.fuzz.looking import RIGHT, SUSPECT, Looked
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.generate.generated import ABOUT
from conrepair_lab.options.fuzz import Fuzz

SYSTEMS = ["ort-none", "ort-all"]


def campaign(folder: Path) -> Campaign:
    with ProgressDisplay(quiet=True) as display:
        return Campaign(Fuzz(systems=SYSTEMS), folder, [], Known(), display)


def network(folder: Path, name: str, operators: dict[str, int]) -> FuzzNetwork:
    (folder / name).mkdir()
    (folder / name / ABOUT).write_text(json.dumps({"operators": operators}))
    return FuzzNetwork(name, 0, folder / name, False, "")


def wrong(message: str, *, plainly: bool = True) -> Looked:
    return Looked(SUSPECT, Suspicion("numbers", "answers", message=message, output="y"), plainly=plainly)


def chosen(
    folder: Path, tried: dict[str, tuple[dict[str, int], Looked, Looked]], known: Campaign
) -> list[tuple[str, str]]:
    known._networks = {name: network(folder, name, operators) for name, (operators, _, _) in tried.items()}
    with Database(folder / "campaign.sqlite", {}) as database:
        for place, name in enumerate(SYSTEMS):
            database.add_tries(name, [(each, told[1 + place]) for each, told in tried.items()])
        return [(item.network, item.entry) for item in known._chosen(0, database)]


def test_the_same_of_two_settings_is_looked_into_once(tmp_path: Path) -> None:
    found = chosen(tmp_path, {"a": ({"Max": 2}, wrong("y is 1"), wrong("y is 1"))}, campaign(tmp_path))
    assert len(found) == 1
    other = {"b": ({"Max": 2}, wrong("y is 1"), wrong("y is 2"))}
    (tmp_path / "other").mkdir()
    assert len(chosen(tmp_path / "other", other, campaign(tmp_path))) == 2


def test_kernels_faults_do_not_hide_those_of_optimizations(tmp_path: Path) -> None:
    tried = {
        f"n{number}": ({"Max": 1, "Add": 3}, wrong(f"y is {number}"), wrong(f"y is {number}")) for number in range(20)
    }
    tried["last"] = {"Pad": 1, "Max": 9}, Looked(RIGHT), wrong("y is 0", plainly=False)
    known = campaign(tmp_path)
    kernels = finding_of(compared_by_halves(), "ort-none", tmp_path)
    known.findings[kernels.key] = kernels
    found = chosen(tmp_path, tried, known)
    assert ("last", "ort-all") in found
    assert len(found) <= 6


def test_each_operator_that_stands_alone_is_looked_into(tmp_path: Path) -> None:
    operators = ("Abs", "Ceil", "Exp", "Max", "Neg", "Relu", "Sign")
    tried = {f"{op}-{number}": ({op: 1}, wrong("y"), wrong("y")) for op in operators for number in range(3)}
    found = chosen(tmp_path, tried, campaign(tmp_path))
    assert sorted(name for name, _ in found) == [f"{op}-0" for op in operators]


def test_what_was_put_off_is_asked_for_in_the_next_turn(tmp_path: Path) -> None:
    known = campaign(tmp_path)
    tried = {f"n{number}": {"Max": 1, "Add": 3 + number} for number in range(10)}
    known._networks = {name: network(tmp_path, name, operators) for name, operators in tried.items()}
    turns = []
    with Database(tmp_path / "campaign.sqlite", {}) as database:
        database.add_tries("ort-all", [(name, wrong(f"y is {name}")) for name in tried])
        for turn in (0, 0, 1, 2, 3, 0):  # the same turn again, as after an interruption
            found = known._chosen(turn, database)
            turns.append([item.network for item in found])
            if len(turns) != 1:
                for item in found:
                    database.add_reduction(item, "gone", {})
    assert turns == [
        [f"n{number}" for number in numbers] for numbers in (range(4), range(4), range(4, 8), (8, 9), (), ())
    ]


@pytest.mark.parametrize(("plainly", "double"), [(True, True), (False, False)])
def test_what_hangs_on_a_switch_is_no_double_of_a_kernels_fault(plainly: bool, double: bool, tmp_path: Path) -> None:
    known = campaign(tmp_path)
    suspicion = Suspicion("numbers", "answers")
    kernels = finding_of(padded_pool(), "ort-all", tmp_path, suspicion=suspicion, operators=("AveragePool",))
    known.findings[kernels.key] = kernels
    cause = Cause(plainly=True) if plainly else Cause(causes=(("PadFusion",),))
    other = finding_of(padded_pool(), "ort-all", tmp_path, suspicion=suspicion, cause=cause)
    assert (known._double(other) is not None) is double


def test_what_a_system_refuses_alone_is_seldom_dealt_among_others(tmp_path: Path) -> None:
    known = campaign(tmp_path)
    alone = {
        "a": ("Det", "refused"),
        "b": ("Det", "refused"),
        "c": ("Abs", "refused"),
        "d": ("Max", "refused"),
        "e": ("Max", "right"),
    }
    for name, (op, _) in alone.items():
        known._networks[name] = dataclasses.replace(network(tmp_path, name, {op: 1}), alone=True)
    with Database(tmp_path / "campaign.sqlite", {}) as database:
        database.add_tries("ort-all", [(name, Looked(verdict)) for name, (_, verdict) in alone.items()])
        refused = known._refused("ort-all", database)
    assert refused == {"Det"}
    others = [
        dataclasses.replace(network(tmp_path, f"n{place}", {"Det": 1, "Abs": 2}), place=place) for place in range(10)
    ]
    assert [item.place for item in others if known._worth(item, refused)] == [0, 5]
    assert known._worth(network(tmp_path, "m", {"Abs": 1, "Max": 1}), refused)
    assert known._worth(known._networks["a"], refused)
