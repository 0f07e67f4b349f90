"""Searches compared on one small network, the rows that are kept of them, and the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.trace import search
from benchmarks.trace.kept import Kept
from benchmarks.trace.known_faults import FAULTS, written
from benchmarks.trace.networks import OPERATORS
from benchmarks.trace.page import found, page, ratio
from benchmarks.trace.rate import rates
from benchmarks.trace.search import METHODS, PLAIN, TENTH, opened, searched


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "elu" / "model.onnx"
    path.parent.mkdir(parents=True)
    written(next(fault for fault in FAULTS if fault.name == "ort-all Elu"), 11, path)
    return path


@pytest.mark.parametrize("other", ["ort-all", "exact"])
def test_all_methods_search_a_network(
    network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setitem(search.PAIRS, "ort", ("ort-none", other, frozenset()))
    rows = searched(network, "ort", 1, 200, tmp_path, 1)
    assert [row["method"] for row in rows] == [*METHODS, TENTH, *(f"plain {name}" for name in PLAIN)]
    assert not any(row["failed"] for row in rows)
    by_name = {row["method"]: row for row in rows}
    assert (by_name["mega"]["largest"] > 0) == (other == "exact")  # both of ONNX Runtime's levels are wrong alike
    assert by_name["mega"]["over"] > 1
    assert by_name["plain random"]["over"] < 1  # tiny numbers are never drawn there


def test_operators_are_those_of_the_trial() -> None:
    assert len(set(OPERATORS)) == 42


def test_a_search_is_timed_beside_a_loop(network: Path, tmp_path: Path) -> None:
    sides, space = opened(["ort-all", "ort-none"], network, tmp_path)
    timed = rates(sides, space, 40)
    assert timed["ratio"] == timed["search"] / timed["loop"]
    assert 0.05 < timed["ratio"] < 2


def test_rows_are_kept_for_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "below" / "rows.jsonl"
    Kept(path, "python -m it").add([{"network": "a", "refused": "no"}, {"network": "b"}])
    again = Kept(path, "python -m another")
    assert [any(words in line for line in again.about) for words in ("-m it", "-m another")] == [True, True]
    assert again.known(network="a")
    assert not again.known(network="a", refused=None)
    assert again.known(network="b", refused=None)


def _row(network: str, seed: int, method: str, largest: float, over: float | None = 0.0) -> dict[str, object]:
    about = {"pair": "tvm", "sort": "generated", "network": network, "seconds": 1.0}
    return {**about, "method": method, "seed": seed, "largest": largest, "over": over}


def test_findings_are_counted_by_network_and_seed() -> None:
    rows = [_row("a", 1, "mega", 1.0), _row("a", 2, "mega", 0.0)]
    rows += [_row("b", 1, "mega", 1.0), _row("b", 2, "mega", 1.0)]
    rows += [_row("a", 1, "random", 0.0), _row("a", 2, "random", 1.0), _row("b", 1, "random", 0.0)]
    assert found(rows, ["mega"], lambda row: row["largest"] > 0.1).tolist() == [0.5, 1.0]
    assert found(rows, ["mega", "random"], lambda row: row["largest"] > 0.1).tolist() == [1.0, 1.0]
    assert ratio(np.array([1.0, 1.0]), np.array([0.5, 0.5])) == "2.00 [2.00, 2.00]"


def test_the_page_has_what_was_found(tmp_path: Path) -> None:
    methods = [*METHODS, TENTH, *(f"plain {name}" for name in PLAIN)]
    rows = [_row("a", 1, method, 1.0 if method == "mega" else 0.0, None) for method in methods]
    Kept(tmp_path / "search-reporting-tvm.jsonl", "python -m searches").add(
        [*rows, {"pair": "tvm", "sort": "generated", "network": "c", "refused": "no"}]
    )
    fault = {"fault": "ort Elu", "kind": "wrong", "blamed": "both", "reached": True, "over": np.inf, "searched": 2.0}
    Kept(tmp_path / "known-faults-90001.jsonl", "python -m faults").add([fault])
    rated = {"pair": "ort", "sort": "real", "search": 90.0, "loop": 100.0, "ratio": 0.9}
    Kept(tmp_path / "rate-reporting.jsonl", "python -m rates").add(
        [rated, {"pair": "ort", "sort": "real", "refused": "no"}]
    )
    text = page(tmp_path)
    assert "1 generated networks, 0 real ones, 1 seeds; 1 others" in text
    assert "| mega | 1.0 [1.0, 1.0] | 1.0 [1.0, 1.0] | 0.0 [0.0, 0.0] | 1.0 |" in text
    assert "| ort Elu | 1 of 1 | wrong both | inf | 2.0 |" in text
    assert "| ort | 1 real | 90 | 100 | 0.90 | 0.90 to 0.90 |" in text
