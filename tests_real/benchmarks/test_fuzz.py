"""A sample of damaged files, drawn configurations and command lines of `benchmarks.fuzz`; and how that goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.fuzz.damage import damaged_archive, damaged_json
from benchmarks.fuzz.seeds import write_data, write_models
from benchmarks.fuzz.trial import carry_out, warm

ROOT = Path(__file__).parents[2]
SEED = 2026


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    write_models(folder, ["onnx", "outside.onnx"])
    write_data(folder)
    return folder


@pytest.fixture
def ready(tmp_path: Path) -> Iterator[Path]:
    with warm(tmp_path / "warm", tmp_path):
        yield tmp_path


# Models of other formats, and what runs damaged ones, may take the process along: they're for the whole run.
@pytest.mark.parametrize(
    ("sort", "count"),
    [
        ("mistyped", 30),
        ("config", 30),
        ("inspected", 30),
        ("data", 20),
        ("recipe", 20),
        ("photos", 10),
        ("result", 30),
    ],
)
def test_a_sample_ends_in_an_exit_code_and_a_sentence(ready: Path, seeds: Path, sort: str, count: int) -> None:
    ended = [carry_out(f"{sort}:{number}", SEED, seeds, ready / f"case-{number}") for number in range(count)]
    assert [(item.name, item.wrong, item.words) for item in ended if item.wrong] == []
    assert len({item.code for item in ended}) > 1  # not all refused at the same door


def test_a_case_is_the_same_each_time(ready: Path, seeds: Path) -> None:
    for sort in ("config", "inspected"):
        one, two = (carry_out(f"{sort}:7", SEED, seeds, ready / f"case-{place}") for place in range(2))
        assert (one.code, one.wrong) == (two.code, two.wrong)


def test_what_is_wrong_is_told(ready: Path, seeds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(words: list[str]) -> int:
        if words[0] == "inspect":
            (Path.cwd() / words[1]).write_bytes(b"changed")
            return 0
        sys.stderr.write("Traceback (most recent call last):\n")
        return 2

    monkeypatch.setattr("benchmarks.fuzz.trial.main", broken)
    assert carry_out("inspected:0", SEED, seeds, ready / "a").wrong == "changed"
    assert carry_out("config:0", SEED, seeds, ready / "b").wrong == "traceback"
    monkeypatch.setattr("benchmarks.fuzz.trial.main", lambda _: 1)
    assert carry_out("inspected:0", SEED, seeds, ready / "c").wrong == "exit code"


def test_damage_changes_what_it_is_given(seeds: Path) -> None:
    import random

    archive, config = (seeds / "data.npz").read_bytes(), (seeds / "config.json").read_bytes()
    assert len({damaged_archive(archive, random.Random(number)) for number in range(50)}) > 40
    assert len({damaged_json(config, random.Random(number)) for number in range(50)}) > 40


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    results.write_text(json.dumps({"begun": "config:0"}) + "\n")
    words = ["--sorts", "config,mistyped", "--count", "3", "--results", str(results)]
    run = [sys.executable, "-m", "benchmarks.fuzz", *words]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line["name"] for line in map(json.loads, results.read_text().splitlines()) if "name" in line]
    assert sorted(names) == sorted(f"{sort}:{number}" for sort in ("config", "mistyped") for number in range(3))
    assert "| config | 3 |" in done.stdout
