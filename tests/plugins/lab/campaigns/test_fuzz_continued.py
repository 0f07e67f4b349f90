"""A campaign that's run again tries nothing twice, and one that was killed ends as if it hadn't been."""

from __future__ import annotations

import dataclasses
import functools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stand_in import StandIn, max_is_min, refuse_elu, registered, relu_is_abs

from benchmarks.common.here_lane import HereLane
from conrepair.ground.runtime.errors import UsageError
from conrepair_lab.campaigns import fuzz_jobs
from conrepair_lab.campaigns.fuzzing import FINDINGS
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.report.fuzz.folder import PAGE, read_finding
from conrepair_lab.report.fuzz.summary import Summary
from conrepair_lab.runs.fuzzing import fuzz

ASKED = Fuzz(
    systems=["wrong-none", "wrong-all", "raising-all"],
    alone=20,
    count=10,
    nodes=4,
    seed=8,
    operators=["Min", "Max", "Elu", "Relu", "Add", "Mul", "Neg"],  # all others take seconds to ask for
    workers=1,
    reduction_seconds=60,  # of which a busy machine needs some; a quiet one is done in two
    varied=0.0,
    screen=0,
)
SMALL = dataclasses.replace(ASKED, alone=6, count=2)


def files_of(root: Path) -> dict[str, bytes]:
    found = root / FINDINGS
    return {path.relative_to(found).as_posix(): path.read_bytes() for path in found.rglob("*") if path.is_file()}


def ended(summary: Summary) -> Any:
    """What doesn't depend on how fast it was."""
    return summary.findings, summary.counts, summary.refusals, summary.seen_in, summary.suspicions, summary.over


@pytest.fixture(scope="module", autouse=True)
def systems() -> Iterator[None]:
    """One with a wrong kernel and a wrong pass, and one that takes longer, whose pass raises."""
    raising = StandIn(passes=[refuse_elu], name="raising")
    raising.seconds = 3
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("conrepair.ground.runtime.processes.workers.Lane", HereLane)  # for what's made once, too
        registered(monkeypatch, StandIn(max_is_min, passes=[relu_is_abs], name="wrong"))
        registered(monkeypatch, raising)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary]:
    root = tmp_path_factory.mktemp("whole") / "fuzz"
    return root, fuzz(SMALL, root, quiet=True)


def counted(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[str]:
    """Jobs that are done from now on."""
    done = list[str]()
    for name in names:
        job = getattr(fuzz_jobs, name)

        @functools.wraps(job)  # a job's annotations are read
        def noted(*args: Any, _name: str = name, _job: Any = job, **more: Any) -> Any:
            done.append(_name)
            return _job(*args, **more)

        monkeypatch.setattr(fuzz_jobs, name, noted)
    return done


def test_a_small_campaign_finds_the_same_each_time_and_tries_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = counted(monkeypatch, "fuzz_try", "fuzz_reduce")
    monkeypatch.setattr(fuzz_jobs, "shown", lambda *_, **__: None)  # a process for each, which test_shown.py starts
    first = fuzz(ASKED, tmp_path / "fuzz", quiet=True)
    assert first.over
    assert first.findings
    assert {name: sum(verdicts.values()) for name, verdicts in first.counts.items()} == {
        "wrong-none": 30,
        "wrong-all": 30,
        "raising-all": 24,
    }
    assert done
    assert [read_finding(tmp_path / "fuzz" / FINDINGS / item.name) for item in first.findings] == list(first.findings)
    before = files_of(tmp_path / "fuzz")
    done.clear()
    again = fuzz(ASKED, tmp_path / "fuzz", quiet=True)
    assert done == []
    assert ended(again) == ended(first)
    assert files_of(tmp_path / "fuzz") == before


def test_another_folder_has_the_same_findings(whole: tuple[Path, Summary], tmp_path: Path) -> None:
    found = fuzz(SMALL, tmp_path / "other", quiet=True)
    assert ended(found) == ended(whole[1])
    assert files_of(tmp_path / "other") == files_of(whole[0])


def test_more_networks_continue_a_campaign_and_other_systems_dont(
    whole: tuple[Path, Summary], tmp_path: Path
) -> None:
    root = tmp_path / "fuzz"
    shutil.copytree(whole[0], root)
    found = fuzz(dataclasses.replace(SMALL, alone=8), root, quiet=True)
    assert sum(found.counts["wrong-none"].values()) == 10
    assert whole[1].findings
    assert all(item in found.findings for item in whole[1].findings)
    for other in ({"systems": ["wrong-none"]}, {"seed": 6}, {"nodes": 5}):
        with pytest.raises(UsageError, match="another campaign"):
            fuzz(dataclasses.replace(SMALL, **other), root, quiet=True)


def test_a_campaign_without_time_says_so_and_goes_on(whole: tuple[Path, Summary], tmp_path: Path) -> None:
    found = fuzz(dataclasses.replace(SMALL, seconds=1e-6), tmp_path / "fuzz", quiet=True)
    assert not found.over
    assert "The time was up" in (tmp_path / "fuzz" / PAGE).read_text(encoding="utf-8")
    assert ended(fuzz(SMALL, tmp_path / "fuzz", quiet=True)) == ended(whole[1])
