"""The page of both benchmarks is made of the rows that they keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.common.rows import write_rows
from benchmarks.trace import faulty_passes, isolation, plants


def test_the_page_holds_both_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (case, *_), (network, *_) = faulty_passes.plan((11,)), plants.plan((11,))
    place = {"step": "FuseTIR", "applied": "FuseTIR#0", "site": "tensor_1", "sorts": ["scaled"]}
    planted = {"place": place, "sort": "scaled", "own": None, "only_after": None}
    told = {"plants": [planted], "planted": ["FuseTIR#0"], "causes": [["FuseTIR#0"]], "heals": [["FuseTIR#0"]]}
    told |= {"builds": 11, "failed": 0, "asked": 62, "seconds": 4.0}
    write_rows(tmp_path / "a", {"seeds": "development"}, [faulty_passes.Row(case, "measured", "", told)])
    one = {"pair": "O3", "units": 1, "value": "1.0", "elements": 1, "named": ["1.0"], "without": []}
    write_rows(tmp_path / "b", {"seeds": "reporting"}, [plants.Row(network, "measured", "", {"plants": [one]})])
    page = tmp_path / "page.md"
    rows = ["--passes", str(tmp_path / "a"), "--plants", str(tmp_path / "b")]
    monkeypatch.setattr("sys.argv", ["isolation", *rows, "-o", str(page)])
    isolation.main()
    text = page.read_text(encoding="utf-8")
    assert "faulty_passes --seeds development" in text
    assert "plants --seeds reporting" in text
    assert "62 to 62 of their switches" in text
    assert "| **single** | 1 | 100.0% |" in text
    assert "| O0, O3 | all | 1 | 100.0% |" in text
