"""Pairs whose label is known, and what both laws say of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.common.exact import in_float32
from benchmarks.judges.cases import KINDS, SEEDS, Case, plan
from benchmarks.judges.conditioned import CONDITIONED
from benchmarks.judges.deep import DEEP
from benchmarks.judges.edits import EDITS, edited
from benchmarks.judges.exact import BOUND, exact_of
from benchmarks.judges.rows import Rows, read_rows, word
from benchmarks.judges.shallow import SHALLOW
from benchmarks.judges.sources import source
from benchmarks.judges.tables import changes, summary, wrong
from benchmarks.judges.trial import EITHER, FAULTY, RIGHT, run

_SEED = 3  # of neither set


@pytest.mark.parametrize("seeds", SEEDS)
def test_a_set_has_three_hundred_pairs_of_all_kinds(seeds: str) -> None:
    cases = plan(SEEDS[seeds])
    assert len({case.name for case in cases}) == len(cases) == 300
    assert {case.kind for case in cases[:10]} == set(KINDS)


def test_development_and_reporting_share_no_pair() -> None:
    one, two = ({case.name for case in plan(seeds)} for seeds in SEEDS.values())
    assert not one & two


@pytest.mark.parametrize("name", [*SHALLOW, *CONDITIONED])
def test_a_network_runs_and_its_exact_values_are_told(name: str) -> None:
    network = source(name, _SEED)
    model = network.graph.model()
    answers, exact = in_float32(model, network.feeds), exact_of(model, network.feeds)
    assert {key: array.shape for key, array in answers.items()} == {key: a.shape for key, a in exact.truth.items()}
    rounded = {key: array.astype(np.float32) for key, array in exact.truth.items()}
    assert exact.over(rounded) <= 1


@pytest.mark.parametrize("name", DEEP)
def test_a_chain_is_a_network_as_deep_as_its_name_says(name: str) -> None:
    network = source(name, _SEED)
    network.graph.model()
    assert len(network.graph.nodes) > int(name.rpartition("-")[2])


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_has_a_place_and_leaves_the_right_network_alone(name: str) -> None:
    networks = (source(network, _SEED).graph for network in SHALLOW)
    for graph in networks:
        before = graph.model().SerializeToString()
        done, copy, guilty = next(iter(edited(graph, name, np.random.default_rng(0))))
        assert graph.model().SerializeToString() == before
        if done == name:
            assert copy.differing(graph) == {guilty}
            return
    pytest.fail("it has no place in any network")


def test_the_exact_law_tells_a_wrong_number_from_rounding() -> None:
    network = source("dense", _SEED)
    model = network.graph.model()
    exact = exact_of(model, network.feeds)
    answers = in_float32(model, network.feeds)
    assert exact.road == BOUND
    assert exact.over(answers) <= 1
    assert exact.over({name: 1.01 * array for name, array in answers.items()}) > 1
    assert exact.over({name: array[:, :2] for name, array in answers.items()}) == np.inf


def test_the_exact_law_takes_outputs_whose_last_size_is_one() -> None:
    network = source("cancelling-sum", _SEED)
    model = network.graph.model()
    assert exact_of(model, network.feeds).over(in_float32(model, network.feeds)) <= 1


@pytest.mark.parametrize(
    ("case", "label"),
    [
        (Case("right", "dense", "recorded", "", _SEED), RIGHT),
        (Case("faulty", "dense", "file", "weights off by 10 %", _SEED), FAULTY),
        (Case("ill-conditioned", "sigmoid-tail", "recorded optimized", "", _SEED), EITHER),
        (Case("ill-conditioned", "long-logistic-map", "file", "weights off by 0.1 %", _SEED), EITHER),
    ],
)
def test_a_pair_gets_its_label_and_both_verdicts(case: Case, label: str, tmp_path: Path) -> None:
    folder = tmp_path / "case"
    folder.mkdir()
    told = run(folder, case=dataclasses.asdict(case), kept=str(tmp_path / "kept"))
    assert told["status"] == "judged"
    assert told["label"] == label
    assert bool(told["guilty"]) == bool(case.fault)
    if label != EITHER:
        assert (
            (told["compare"]["verdict"] == "faulty") == (told["localize"]["verdict"] == "faulty") == bool(case.fault)
        )
        assert (told["exact"]["target"] <= 1) == (label == RIGHT)


def test_a_pair_that_cant_be_made_says_why(tmp_path: Path) -> None:
    case = Case("right", "dense", "nothing", "", _SEED)
    told = run(tmp_path, case=dataclasses.asdict(case), kept=str(tmp_path))
    assert told["status"].startswith("not made: ")


@pytest.mark.parametrize(
    ("label", "verdict", "wanted"),
    [
        (RIGHT, "noise", "good"),
        (RIGHT, "faulty", "accused"),
        (FAULTY, "faulty", "good"),
        (FAULTY, "quantized", "cleared"),
        (FAULTY, "undecided", "undecided"),
        (EITHER, "faulty", "open"),
        (RIGHT, "failed", "failed"),
    ],
)
def test_a_verdict_beside_a_label(label: str, verdict: str, wanted: str) -> None:
    assert word(_row("a", label, verdict), "compare") == wanted


def test_changes_say_what_is_better_and_worse() -> None:
    before = {
        "a": _row("a", RIGHT, "faulty"),
        "b": _row("b", FAULTY, "faulty", layer="one", hit=True),
        "c": _row("c", EITHER, "faulty"),
        "d": _row("d", RIGHT, "noise"),
    }
    after = {
        "a": _row("a", RIGHT, "noise"),
        "b": _row("b", FAULTY, "equivalent", layer="two", hit=False),
        "c": _row("c", EITHER, "undecided"),
        "d": _row("d", RIGHT, "equivalent"),
    }
    lines = changes(before, after).splitlines()
    assert "| a | right | compare | faulty | noise | better |" in lines
    assert "| b | faulty | compare | faulty | equivalent | worse |" in lines
    assert "| b | faulty | first layer | one | two | worse |" in lines
    assert "| c | either | compare | faulty | undecided | neither |" in lines
    assert "| d | right | compare | noise | equivalent | neither |" in lines
    assert changes(after, after) == "4 pairs in both: nothing changed"


def test_what_is_wrong_is_listed_and_counted() -> None:
    rows = {"a": _row("a", RIGHT, "faulty"), "b": _row("b", FAULTY, "faulty")}
    assert "- a (right: why)" in wrong(rows)
    assert "- b" not in wrong(rows)
    assert "| all | right | 1 | 0 | 1 | 0 | 0 |" in summary(rows)


def test_rows_are_kept_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    Rows(path, "command").add(_row("a", RIGHT, "noise"))
    kept = Rows(path, "command")
    kept.add(_row("b", RIGHT, "noise"))
    assert list(kept.known) == list(read_rows(path)) == ["a", "b"]


def _row(name: str, label: str, verdict: str, layer: str = "", hit: bool | None = None) -> dict[str, Any]:
    return {
        "case": name,
        "kind": "right",
        "status": "judged",
        "label": label,
        "why": "why",
        "planted": "",
        "guilty": [],
        "compare": {"verdict": verdict, "reason": "reason"},
        "localize": {
            "verdict": "equivalent" if label == RIGHT else "faulty",
            "reason": "",
            "layer": layer,
            "hit": hit,
        },
        "exact": {"road": BOUND, "target": 0.5, "source": 2.0},
    }
