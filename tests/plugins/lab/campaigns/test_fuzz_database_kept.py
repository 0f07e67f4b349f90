"""What a campaign's database keeps: all of a suspicion, in an order of its own, whoever closed the file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.runtime.errors import StorageError, UsageError
from conrepair_lab.campaigns.fuzz_database import DATABASE, Database
from conrepair_lab.fuzz.looking import ILL, RIGHT, SUSPECT, UNJUDGED, Looked
from conrepair_lab.fuzz.suspicion import REFUSED, Suspicion

WRONG = Looked(SUSPECT, Suspicion("numbers", "answers", "", "y is 1", "a.py:f", "y", (1, 2), 1.0, 2.0, 0.1, 10.0))


def test_a_suspicion_is_kept_whole(tmp_path: Path) -> None:
    with Database(tmp_path / DATABASE, {}) as database:
        database.add_tries("ort-all", [("a", WRONG)])
    with Database(tmp_path / DATABASE, {}) as database:
        (suspect,) = database.suspects()
    assert WRONG.suspicion is not None
    assert vars(suspect.suspicion) == vars(WRONG.suspicion)


@given(st.permutations([(network, entry) for network in "abc" for entry in ("x", "y")]))
def test_the_order_of_suspects_is_not_that_in_which_they_came(order: list[tuple[str, str]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / DATABASE, {}) as database:
        for network, entry in order:
            database.add_tries(entry, [(network, WRONG)])
        assert [(item.network, item.entry) for item in database.suspects()] == sorted(order)


def test_only_suspicions_are_suspects(tmp_path: Path) -> None:
    with Database(tmp_path / DATABASE, {}) as database:
        database.add_tries("x", [(verdict, Looked(verdict)) for verdict in (RIGHT, REFUSED, ILL, UNJUDGED)])
        assert not database.suspects()
        assert database.counts() == {"x": dict.fromkeys(sorted([RIGHT, REFUSED, ILL, UNJUDGED]), 1)}


def test_what_was_told_is_there_although_nobody_closed_it(tmp_path: Path) -> None:
    first = Database(tmp_path / DATABASE, {"seed": 1})
    first.add_tries("x", [("a", WRONG)])
    (suspect,) = first.suspects()
    first.add_reduction(suspect, "gone", {"words": "ä", "over": float("inf")})
    with Database(tmp_path / DATABASE, {"seed": 1}) as second:
        assert set(second.tried("x")) == {"a"}
        assert [told for *_, told, _ in second.reductions()] == [{"words": "ä", "over": float("inf")}]
    first.close()


def test_tries_are_kept_all_or_none(tmp_path: Path) -> None:
    def told() -> object:
        yield "a", WRONG
        raise RuntimeError("it ended on the way")

    with Database(tmp_path / DATABASE, {}) as database:
        with pytest.raises(RuntimeError):
            database.add_tries("x", told())  # type: ignore[arg-type]
        assert not database.tried("x")
        database.add_tries("x", [("b", WRONG)])
        assert set(database.tried("x")) == {"b"}


def test_the_most_frequent_refusals_come_first(tmp_path: Path) -> None:
    words = ["rare"] + ["often"] * 3 + ["more"] * 2
    with Database(tmp_path / DATABASE, {}) as database:
        database.add_tries("x", [(str(place), Looked(REFUSED, None, item)) for place, item in enumerate(words)])
        assert database.refusals(2) == {"x": [("often", 3), ("more", 2)]}


def test_the_order_of_what_was_asked_for_says_nothing(tmp_path: Path) -> None:
    Database(tmp_path / DATABASE, {"a": 1, "b": [1, 2]}).close()
    Database(tmp_path / DATABASE, {"b": [1, 2], "a": 1}).close()
    with pytest.raises(UsageError, match="another campaign"):
        Database(tmp_path / DATABASE, {"a": 1, "b": [2, 1]})


def test_a_folder_that_is_not_there_or_a_folder_of_that_name(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="can't be used"):
        Database(tmp_path / "none" / DATABASE, {})
    (tmp_path / DATABASE).mkdir()
    with pytest.raises(StorageError, match="can't be used"):
        Database(tmp_path / DATABASE, {})


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / DATABASE) as opened:
        opened.execute("create table campaign (votes integer)")
    with pytest.raises((StorageError, UsageError)):
        Database(tmp_path / DATABASE, {})
