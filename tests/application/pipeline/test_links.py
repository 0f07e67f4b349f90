"""Links that code in a worker leaves where the main process writes: nothing is written through them."""

from __future__ import annotations

from pathlib import Path

import pytest

from conrepair.application.engine.scheduler import Scheduler
from conrepair.application.engine.task import Result, Task
from conrepair.ground.runtime.errors import StorageError
from conrepair.ground.runtime.files.journal import end_early
from conrepair.ground.runtime.files.store import Store
from conrepair.ground.runtime.processes.workers import Workers

pytestmark = [pytest.mark.timeout(60), pytest.mark.workers]
KINDS = ("leave_links", "swap_folder", "leave_journal", "leave_log")


def run(tmp_path: Path, kind: str, victim: Path, **options: bool) -> Result:
    jobs = {name: f"reaching_jobs:{name}" for name in KINDS}
    with Store(tmp_path / "store") as store, Workers(1, jobs=jobs, folders=(store.work,)) as workers:
        scheduler = Scheduler(store, workers)
        task = Task("a", kind, lambda _: {"victim": str(victim)}, timeout=20.0, **options)
        scheduler.run([task])
        return scheduler.results["a"]


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    path = tmp_path / "outside" / "victim"
    path.write_text("whole")
    return path


def test_links_among_its_files_are_dropped(tmp_path: Path, victim: Path) -> None:
    result = run(tmp_path, "leave_links", victim)
    assert victim.read_text() == "whole"
    assert result.entry is not None
    assert sorted(item.name for item in result.entry.folder.rglob("*")) == ["file", "record.json", "sub"]


def test_a_folder_that_is_a_link_isnt_kept(tmp_path: Path, victim: Path) -> None:
    with pytest.raises(StorageError, match="made a link"):
        run(tmp_path, "swap_folder", victim.parent)
    assert [item.name for item in victim.parent.iterdir()] == ["victim"]


def test_a_journal_isnt_written_through_links(tmp_path: Path, victim: Path) -> None:
    result = run(tmp_path, "leave_journal", victim, continues=True)
    assert result.failure is not None
    assert result.failure.kind == "crash"
    (journal,) = (tmp_path / "store" / ".work").glob(".journal-*")
    end_early(journal)
    assert victim.read_text() == "whole"


def test_a_log_that_never_ends_isnt_read(tmp_path: Path, victim: Path) -> None:
    result = run(tmp_path, "leave_log", victim)
    assert result.failure is not None
    assert (result.failure.error_type, result.failure.last_words) == ("ValueError", "")
