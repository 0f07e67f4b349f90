"""What a campaign has done, in SQLite: it survives whatever ends the campaign, and says what is left to do.

That's no store of results, which may be lost, as what they're made of makes them again. Here is what was seen: which
network ended which system's process, what was put off and in which turn, what a suspicion came to. All of it is asked
together (what's left, how many of what sort), and it lies in the campaign's own folder for as long as a person wants.
"""

from __future__ import annotations

import collections
import itertools
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.application.report.encode import encode
from conrepair.ground.runtime.errors import StorageError, UsageError
from conrepair.ground.runtime.typed import typed
from conrepair_lab.fuzz.looking import SUSPECT, Looked
from conrepair_lab.fuzz.suspicion import Suspicion

DATABASE = "campaign.sqlite"
_TURNS = 1 << 20
_FORM = 2  # of what is kept of findings
WAITS = "waits"
"""Verdict of what was put off."""

_TABLES = """
create table if not exists campaign (name text primary key, value text not null);
create table if not exists tries (
    network text not null, entry text not null, verdict text not null, suspicion text, message text not null,
    seconds real not null, near real not null, plainly integer, odd integer not null, primary key (network, entry)
) without rowid;
create table if not exists reductions (
    network text not null, entry text not null, verdict text not null, told text not null, cause text not null,
    primary key (network, entry)
) without rowid;
create table if not exists screened (
    entry text not null, pattern text not null, step integer not null, told text not null,
    primary key (entry, pattern, step)
) without rowid;
"""
_TRIED = """
insert or ignore into tries
values (:network, :entry, :verdict, :suspicion, :message, :seconds, :near, :plainly, :odd)
"""
_REDUCED = "insert or replace into reductions values (?, ?, ?, ?, ?)"


@dataclass(frozen=True)
class Suspect:
    """A suspicion that nothing has been made of yet.

    Attributes:
        network: In which it was seen.
        entry: By which.
        suspicion: What was seen.
        plainly: Whether the system's plain setting shows it, too; None where nobody asked.
        odd: Which draw of odd numbers showed it; 0 for the usual ones.
    """

    network: str
    entry: str
    suspicion: Suspicion
    plainly: bool | None = None
    odd: int = 0


class Database:
    """A file with a campaign. Use as a context manager.

    Args:
        path: The file; made where there's none.
        identity: What the campaign was asked for; another one's file is refused.

    Raises:
        UsageError: if the file is another campaign's.
        StorageError: if it's no such file, or can't be written.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        self._path = path
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=60.0)
            self._connection.execute("pragma journal_mode=wal")
            self._connection.execute("pragma synchronous=normal")
            self._connection.executescript(_TABLES)
            known = self._connection.execute("select value from campaign where name = 'identity'").fetchone()
        except sqlite3.Error as error:
            raise StorageError(f"{path} can't be used: {error}. Choose another folder (-o).") from error
        told = json.dumps({**identity, "form": _FORM}, sort_keys=True)
        if known is not None and known[0] != told:
            self.close()
            raise UsageError(
                f"{path.parent} has another campaign ({known[0]}). The same options continue it; else choose another "
                "folder (-o)."
            )
        self._connection.execute("insert or ignore into campaign values ('identity', ?)", (told,))

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def tried(self, entry: str) -> dict[str, str]:
        """Networks that a system has been tried with, and their verdicts."""
        return dict(self._connection.execute("select network, verdict from tries where entry = ?", (entry,)))

    def add_tries(self, entry: str, found: Iterable[tuple[str, Looked]]) -> None:
        """Keep what came of networks, all or nothing.

        Args:
            entry: The system and its setting.
            found: By network.
        """
        rows = [{"network": network, "entry": entry, **vars(item)} for network, item in found]
        for row in rows:
            row["suspicion"] = row["suspicion"] and json.dumps(encode(row["suspicion"]))
        self._put(_TRIED, rows)

    def _put(self, statement: str, rows: Sequence[Any]) -> None:
        """All rows, or none."""
        self._connection.execute("begin")
        self._connection.executemany(statement, rows)
        self._connection.execute("commit")

    def add_screened(self, entry: str, pattern: str, step: int, told: Any) -> None:
        """Keep what came of a pattern.

        Args:
            entry: The system and its setting.
            pattern: Its name.
            step: Of `conrepair_lab.fuzz.screen.screening`.
            told: A `Screened`.
        """
        self._put(
            "insert or replace into screened values (?, ?, ?, ?)", [(entry, pattern, step, json.dumps(encode(told)))]
        )

    def screened(self) -> dict[tuple[str, str, int], dict[str, Any]]:
        """By entry, pattern and step, what came of it."""
        rows = self._connection.execute(
            "select entry, pattern, step, told from screened order by step, pattern, entry"
        )
        return {(entry, pattern, step): json.loads(told) for entry, pattern, step, told in rows}

    def suspects(self, turn: int = 0) -> list[Suspect]:
        """Suspicions of which nothing was made, in an order that doesn't depend on who was faster.

        Args:
            turn: Of the campaign: what was put off before (`put_off`) is asked for again.
        """
        rows = self._connection.execute(
            "select network, entry, suspicion, plainly, odd from tries where verdict = ? and not exists "
            "(select 1 from reductions as made where made.network = tries.network and made.entry = tries.entry "
            "and not (made.verdict = ? and json_extract(made.told, '$.turn') < ?)) order by network, entry",
            (SUSPECT, WAITS, turn),
        )
        names = ("network", "entry", "suspicion", "plainly", "odd")
        found = [{**dict(zip(names, row, strict=True)), "suspicion": json.loads(row[2])} for row in rows]
        return [typed(Suspect, item) for item in found]

    def add_reduction(self, suspect: Suspect, verdict: str, told: Mapping[str, Any], cause: str = "") -> None:
        """Keep what was made of a suspicion.

        Args:
            suspect: Which.
            verdict: As of `conrepair_lab.fuzz.reducing.Reduction`, or "double".
            told: All of it.
            cause: The key of the finding.
        """
        self._put(_REDUCED, [(suspect.network, suspect.entry, verdict, json.dumps(told), cause)])

    def put_off(self, suspects: Iterable[Suspect], turn: int) -> None:
        """Leave suspicions for later, all or nothing: others like them are looked into.

        Args:
            suspects: Which.
            turn: In which they aren't asked for.
        """
        told = json.dumps({"turn": turn})
        self._put(_REDUCED, [(item.network, item.entry, WAITS, told, "") for item in suspects])

    def turns(self, *, before: int) -> Iterator[int]:
        """Turns that aren't used yet.

        Args:
            before: All are smaller.
        """
        rows = self._connection.execute("select json_extract(told, '$.turn') from reductions").fetchall()
        used = [turn for (turn,) in rows if turn is not None and turn < before]
        return itertools.count(max(used, default=before - _TURNS) + 1)

    def reductions(self) -> Iterator[tuple[str, str, str, dict[str, Any], str]]:
        """Network, entry, verdict, what was told, and the finding's key, in the order of `suspects`."""
        rows = self._connection.execute(
            "select network, entry, verdict, told, cause from reductions order by network, entry"
        ).fetchall()
        for network, entry, verdict, told, cause in rows:
            yield network, entry, verdict, json.loads(told), cause

    def counts(self) -> dict[str, dict[str, int]]:
        """By entry, how many networks got which verdict."""
        found: dict[str, dict[str, int]] = collections.defaultdict(dict)
        rows = self._connection.execute(
            "select entry, verdict, count(*) from tries group by entry, verdict order by entry, verdict"
        )
        for entry, verdict, count in rows:
            found[entry][verdict] = count
        return dict(found)

    def seconds(self) -> dict[str, float]:
        """By entry, how long its tries took."""
        rows = self._connection.execute("select entry, sum(seconds) from tries group by entry order by entry")
        return {entry: round(total, 3) for entry, total in rows}

    def refusals(self, most: int = 10) -> dict[str, Sequence[tuple[str, int]]]:
        """By entry, the most frequent words with which networks were refused."""
        found: dict[str, list[tuple[str, int]]] = collections.defaultdict(list)
        rows = self._connection.execute(
            "select entry, message, count(*) as times from tries where verdict = 'refused' group by entry, message "
            "order by entry, times desc, message"
        )
        for entry, message, times in rows:
            if len(found[entry]) < most:
                found[entry].append((message, times))
        return dict(found)
