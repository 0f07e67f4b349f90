"""A campaign's database: what was tried stays tried, whatever ended the campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from conrepair.ground.runtime.errors import StorageError, UsageError
from conrepair_lab.campaigns.fuzz_database import DATABASE, Database
from conrepair_lab.fuzz.looking import RIGHT, SUSPECT, Looked
from conrepair_lab.fuzz.suspicion import Suspicion

OURS = {"seed": 3}


def test_tries_outlive_the_campaign_and_are_counted_once(tmp_path: Path) -> None:
    wrong = Looked(SUSPECT, Suspicion("numbers", "answers", index=(1,), given=float("inf"), over=float("inf")))
    with Database(tmp_path / DATABASE, OURS) as database:
        database.add_tries("ort-all", [("b", wrong), ("a", Looked(RIGHT, seconds=0.5))])
        database.add_tries("ort-none", [("a", Looked("refused", message="no kernel"))])
    with Database(tmp_path / DATABASE, OURS) as database:
        database.add_tries("ort-all", [("b", Looked(RIGHT))])
        assert database.tried("ort-all") == {"a": "right", "b": "suspect"}
        assert database.counts() == {"ort-all": {"right": 1, "suspect": 1}, "ort-none": {"refused": 1}}
        assert database.refusals() == {"ort-none": [("no kernel", 1)]}
        (suspect,) = database.suspects()
        assert (suspect.network, suspect.entry, suspect.suspicion.over) == ("b", "ort-all", float("inf"))
        database.add_reduction(suspect, "double", {"tries": 3}, "key")
        assert not database.suspects()
        assert list(database.reductions()) == [("b", "ort-all", "double", {"tries": 3}, "key")]


def test_suspects_come_in_an_order_of_their_own(tmp_path: Path) -> None:
    wrong = Looked(SUSPECT, Suspicion("exception", "load"))
    with Database(tmp_path / DATABASE, OURS) as database:
        for network, entry in (("2", "b"), ("1", "b"), ("1", "a")):
            database.add_tries(entry, [(network, wrong)])
        assert [(item.network, item.entry) for item in database.suspects()] == [("1", "a"), ("1", "b"), ("2", "b")]


def test_another_campaigns_folder_is_refused(tmp_path: Path) -> None:
    Database(tmp_path / DATABASE, OURS).close()
    with pytest.raises(UsageError, match="another campaign"):
        Database(tmp_path / DATABASE, {"seed": 4})


def test_a_persons_file_of_that_name_stays(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_text("a diary of many pages" * 100)
    with pytest.raises(StorageError, match="can't be used"):
        Database(tmp_path / DATABASE, OURS)
    assert (tmp_path / DATABASE).read_text().startswith("a diary")
