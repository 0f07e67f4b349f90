"""Results that somebody else has written: a report says what is wrong, or shows them, and touches nothing else."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import strangers

from conrepair.application.cli import main
from conrepair.ground.runtime.files.listing import LIST

CODES = {0, 1, 2, 3, 4, 130}
OPTIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("-o", "new"),
    ("-f", "json"),
    ("--margin", "3"),
    ("--rtol", "1", "--atol", "1"),
)


class Room:
    """A folder of somebody's beside one's own files, which are hashed before and after."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.run, self._capsys = folder, folder / "room" / "run", capsys
        (folder / "outside").mkdir()
        for name in ("precious.onnx", "inputs.csv", "app.log", "provenance.json", "layers.csv"):
            for place in (folder, folder / "outside"):
                (place / name).write_text(f"years of {name}")
        self.run.mkdir(parents=True)
        monkeypatch.chdir(self.run.parent)

    def tree(self) -> dict[str, str]:
        """Everything but what a report may write."""
        ours = (self.run, self.run.parent / "new")
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "a folder"
            for path in self.folder.rglob("*")
            if not any(path.is_relative_to(place) for place in ours)
        }

    def report(self, document: Any, *options: str) -> tuple[int, str]:
        """The exit code, and what is said of errors; nothing else has changed."""
        if (self.run / LIST).exists():  # what another document's report has written isn't replaced
            self.again()
        (self.run / "result.json").write_text(document if isinstance(document, str) else json.dumps(document))
        before = self.tree()
        code = main(["report", "run", "-q", *options])
        said = self._capsys.readouterr().err
        assert self.tree() == before
        assert "Traceback" not in said
        assert code in CODES
        return code, said

    def again(self) -> None:
        """Make it empty for another one."""
        shutil.rmtree(self.run)
        self.run.mkdir()
        shutil.rmtree(self.run.parent / "new", ignore_errors=True)


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Room:
    return Room(tmp_path, monkeypatch, capsys)


def hostile(room: Room, seed: int, count: int) -> int:
    """Report so many of them; returns how many were shown and not refused."""
    shown = 0
    for number in range(count):
        generator = random.Random(f"{seed}, {number}")
        document = strangers.full_document(generator.choice(strangers.KINDS))
        document = strangers.mutated(document, generator, generator.choice((1, 1, 2, 4)))
        if generator.random() < 0.2:
            strangers.with_links(room.run, room.folder / "outside", generator)
        code, said = room.report(document, *generator.choice(OPTIONS))
        assert code != 2 or (said.startswith("conrepair: ") and said.count("\n") == 1), said
        shown += code != 2
        room.again()
    return shown


def test_hostile_results_touch_nothing_else(room: Room) -> None:
    assert hostile(room, seed=1, count=25) > 5


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_300_hostile_results_touch_nothing_else(room: Room) -> None:
    assert hostile(room, seed=46, count=300) > 100


@pytest.mark.parametrize("field", ["model", "conversion", "backend"])
@pytest.mark.parametrize(
    "name", ["..", "../../..", "/../../../outside/app", "/etc", "", "a\0b", "n" * 300, "\\", "\n"]
)
def test_names_lead_nowhere(field: str, name: str, room: Room) -> None:
    for kind in ("audit", "localize"):
        document = strangers.full_document(kind)
        document["rows"][1][field] = name
        assert room.report(document)[0] == 4


def document(*path: Any, value: Any, kind: str = "audit") -> dict[str, Any]:
    """A document of which one thing is another."""
    found = holder = strangers.full_document(kind)
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return found


LAYERS = ("rows", 1, "localized", "steps", 0, "localization")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (document("rows", value=[]), "rows: there are none"),
        (document("rows", value=[], kind="localize"), "rows: there are none"),
        (document("rows", 1, "localized", "explaining", value=99), "rows.1.localized: there is no step 99 of 1"),
        (document("rows", 1, "localized", "explaining", value=-1), "there is no step -1 of 1"),
        (document("rows", 1, "problem", "exit_code", value=99), "rows.1.problem.exit_code: Input should be 0, 1, 2"),
        (document("rows", 1, "problem", "exit_code", value=251), "rows.1.problem.exit_code: Input should be"),
        (document("kind", value="fuzz"), "kind: Input should be 'audit'"),
        (document("seconds", value=10**30), "a number in it has more than 64 bits"),
        (f'{{"schema_version": 1, "seconds": 1{"0" * 5000}}}', "is damaged"),
        (document("seconds", value="soon"), "seconds: "),
        (document("rows", 1, "ran", "accuracy", value=[3, 2]), "3 of 2 labelled samples"),
        (document("name", value="\ud800"), "a text in it is no text"),
        (document("name", value=5), "name: Input should be a valid string"),
        (document("config", value={"a": [[[[]]]]} | {}) | {"schema_version": "9" * 9999}, "is of version 99"),
        ("[" * 100_000, "nested more than 200 deep"),
        ('{"schema_version": 1, "seconds": NaN}', "NaN is no JSON"),
        ("5", "is no result"),
        ("", "is damaged"),
    ],
    ids=lambda item: "" if isinstance(item, dict) else str(item)[:30],
)  # fmt: skip
def test_what_no_run_leaves_is_refused_with_its_place(found: Any, said: str, room: Room) -> None:
    code, told = room.report(found)
    assert code == 2
    assert said in told
    assert told.count("\n") == 1
    assert len(told) < 1500


def test_what_a_run_may_leave_out_is_shown(room: Room) -> None:
    for path, value in (
        ((*LAYERS, "latent", 0, "evidence"), []),
        ((*LAYERS, "faults", 0, "evidence"), []),
        ((*LAYERS, "layers"), []),
        (("rows", 1, "repaired", "result", "unseen_before", "samples"), 0),
    ):
        for kind in ("audit", "localize", "repair"):
            assert room.report(document(*path, value=value, kind=kind))[0] == 4


@pytest.mark.parametrize("name", ["[/x]", "[link=http://evil.example]x[/link]", "[red]", ":warning:"])
def test_no_name_is_markup_on_the_console(name: str, room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("sys.stdout.write", lambda text: said.append(text) or len(text))
    for kind in ("audit", "localize", "repair"):
        found = json.loads(json.dumps(strangers.full_document(kind)).replace('"net"', json.dumps(name)))
        assert room.report(found)[0] == 4
        assert name in "".join(said)
        said.clear()


def test_two_strangers_are_compared_and_touch_nothing_else(room: Room) -> None:
    (room.run.parent / "new").mkdir()
    plain = strangers.full_document("audit")
    (room.run.parent / "new" / "result.json").write_text(json.dumps(plain))
    for value in ("../../outside", "a\0b", "=1+1"):
        assert room.report(document("rows", 1, "model", value=value), "new")[0] in {0, 1}
    (room.run.parent / "new" / "comparison.html").unlink()
    (room.run.parent / "new" / "comparison.html").symlink_to(room.folder / "precious.onnx")
    code, said = room.report(plain, "new")
    assert (code, "comparison.html is a link, and nothing is written through links" in said) == (2, True)
