"""Outputs among a person's files: what a command didn't write, or wrote and somebody changed, is never lost."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conrepair.runtime.errors import StorageError, UsageError
from conrepair.runtime.outputs import LIST, Output

NOTES = {"notes.txt": "mine", "mine/deep/f": "mine", "runs/a/notes": "mine", ".hidden": "mine"}
OURS = ("layers.csv", "runs/a/b.txt")


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def write(output: Output, text: str, names: tuple[str, ...] = OURS) -> None:
    with output.write() as temporary:
        put(temporary, dict.fromkeys(names, text))


def add(output: Output, text: str, names: tuple[str, ...], *, strict: bool = False) -> None:
    with output.add(strict=strict) as temporary:
        put(temporary, dict.fromkeys(names, text))


def texts(folder: Path) -> dict[str, str]:
    """Of all files, but for lists of what was written; of links what they say."""
    return {
        path.relative_to(folder).as_posix(): str(path.readlink()) if path.is_symlink() else path.read_text()
        for path in sorted(folder.rglob("*"))
        if (path.is_symlink() or path.is_file()) and not path.name.endswith(LIST)
    }


@pytest.fixture
def output(tmp_path: Path) -> Output:
    """A localization that was written once."""
    output = Output(tmp_path / "X", "localization")
    write(output, "old")
    return output


# --- What stays ---


@pytest.mark.parametrize("filler", ["", " " * (33 << 20)])
def test_a_list_of_too_many_files_is_refused(tmp_path: Path, filler: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    files = {f"file{number}": [[1, "a"]] for number in range(3 if filler else 100_001)}
    value = {"version": 1, "by": "localization", "files": files, "folders": []}
    (out / LIST).write_text(json.dumps(value) + filler)
    with pytest.raises(UsageError, match=r"lists more than 100,000 files, so .*out isn't looked through"):
        Output(out, "localization").check()


def test_an_earlier_output_is_replaced_and_nothing_else(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    write(output, "new", ("layers.csv", "other.csv"))
    assert texts(output.path) == {"layers.csv": "new", "other.csv": "new"}
    assert [path.name for path in output.path.parent.iterdir()] == ["X"]
    assert capsys.readouterr().err == ""


def test_all_else_stays_where_it_was_and_is_told(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    folder, elsewhere = output.path, output.path.parent / "elsewhere"
    put(elsewhere, {"f": "of somebody"})
    put(folder, NOTES)
    (folder / "link").symlink_to(elsewhere)
    (folder / "runs" / "dangling").symlink_to("nowhere")
    (folder / "empty").mkdir()
    (folder / "notes.txt").chmod(0o400)
    places = {name: (folder / name).stat().st_ino for name in NOTES}
    output.check()
    write(output, "new", ("other.csv",))
    links = {"link": str(elsewhere), "runs/dangling": "nowhere"}
    assert texts(folder) == NOTES | links | {"other.csv": "new"}
    assert {name: (folder / name).stat().st_ino for name in NOTES} == places, "moved, not copied"
    assert (folder / "empty").is_dir()
    assert (folder / "notes.txt").stat().st_mode & 0o777 == 0o400
    assert texts(elsewhere) == {"f": "of somebody"}
    told = capsys.readouterr().err
    assert told.startswith(f"conrepair: kept in {folder.parent}, as no localization wrote it: X/.hidden, X/empty,")
    assert told.endswith("and 2 more\n")


@pytest.mark.parametrize("mode", [0o700, 0o2775])
def test_who_may_read_a_folder_stays(output: Output, mode: int) -> None:
    output.path.chmod(mode)
    write(output, "new")
    assert output.path.stat().st_mode & 0o7777 == mode


def test_what_is_in_the_way_is_called_otherwise(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    """It came, or was changed, while the command ran: nobody throws minutes of work away for that."""
    put(output.path, {"layers.csv": "annotated", "repaired.onnx": "mine", "a/f": "mine", "b": "mine"})
    write(output, "new", ("layers.csv", "repaired.onnx", "a", "b/f"))
    assert texts(output.path) == {
        "layers.csv": "new", "layers.csv.kept": "annotated", "repaired.onnx": "new", "repaired.onnx.kept": "mine",
        "a": "new", "a.kept/f": "mine", "b/f": "new", "b.kept": "mine",
    }  # fmt: skip
    assert "X/layers.csv (now layers.csv.kept)" in capsys.readouterr().err
    put(output.path, {"layers.csv": "annotated again"})
    write(output, "newer")
    assert texts(output.path)["layers.csv.kept-2"] == "annotated again"


# --- What is refused before any work ---


def _changed(folder: Path) -> None:
    (folder / "layers.csv").write_text("odd")  # as long as before


def _changed_with_its_times(folder: Path) -> None:
    file = folder / "runs" / "a" / "b.txt"
    before = file.stat()
    file.write_text("odd")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def _a_link_in_place_of_a_file(folder: Path) -> None:
    (folder / "layers.csv").rename(folder / "layers.csv.real")
    (folder / "layers.csv").symlink_to("layers.csv.real")


def _a_link_in_place_of_a_folder(folder: Path) -> None:
    (folder / "runs").rename(folder.parent / "runs")
    (folder / "runs").symlink_to("../runs")


def _a_folder_in_place_of_a_file(folder: Path) -> None:
    (folder / "layers.csv").unlink()
    put(folder, {"layers.csv/f": "mine"})


def _no_list(folder: Path) -> None:
    """As an earlier release left it."""
    (folder / LIST).unlink()


def _list(text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / LIST).write_text(text)

    return write


def _only_somebody_s(folder: Path) -> None:
    for path in (folder / "runs" / "a" / "b.txt", folder / "layers.csv", folder / LIST):
        path.unlink()
    put(folder, NOTES)


REFUSED = {
    "a changed file": (_changed, "layers.csv isn't as conrepair wrote it"),
    "a changed file with its old times": (_changed_with_its_times, "b.txt isn't as conrepair wrote it"),
    "a link to a file": (_a_link_in_place_of_a_file, "layers.csv isn't as conrepair wrote it"),
    "a link to a folder": (_a_link_in_place_of_a_folder, "runs isn't as conrepair wrote it"),
    "a folder for a file": (_a_folder_in_place_of_a_file, "layers.csv isn't as conrepair wrote it"),
    "no list": (_no_list, "no localization of this version wrote it"),
    "a damaged list": (_list('{"by": "localization", "files'), "no localization of this version wrote it"),
    "a list that is a list": (_list("[]"), "no localization of this version wrote it"),
    "a list with a size that is no number": (
        _list('{"version": 1, "by": "localization", "files": {"layers.csv": [[1e999, "0"]]}, "folders": []}'),
        "no localization of this version wrote it",
    ),
    "a list of another version": (
        _list('{"version": 2, "by": "localization", "files": {}, "folders": []}'),
        "no localization of this version wrote it",
    ),
    "somebody's folder": (_only_somebody_s, "no localization of this version wrote it"),
}


@pytest.mark.parametrize(("change", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_would_lose_something_is_refused(output: Output, change: Callable[[Path], None], words: str) -> None:
    change(output.path)
    before = texts(output.path.parent)
    with pytest.raises(UsageError, match=words):
        output.check()
    write(output, "new")  # and who doesn't ask loses nothing either
    after = list(texts(output.path.parent).values())
    lost = [text for text in before.values() if text != "old" and text not in after]
    assert lost == []


def test_a_list_names_no_files_elsewhere(output: Output) -> None:
    """A list may be a stranger's: what it names is looked for among what is there, not the other way around."""
    stamp = (output.path / LIST).read_text().partition('"layers.csv":')[2].partition("]]")[0]
    put(output.path.parent, {"precious": "old"})
    names = ("../precious", "/etc/hostname", "runs/../../precious", str(output.path.parent / "precious"))
    files = ", ".join(f'"{name}": {stamp}]]' for name in names)
    text = f'{{"version": 1, "by": "localization", "files": {{{files}}}, "folders": ["..", "/", ""]}}'
    (output.path / LIST).write_text(text)
    write(output, "new")
    output.remove()
    assert texts(output.path.parent)["precious"] == "old"


def test_other_outputs_and_links_are_refused(output: Output) -> None:
    with pytest.raises(UsageError, match="no repair of this version wrote it"):
        Output(output.path, "repair").check()
    for name, leads_to in {"link": "X", "dangling": "nowhere"}.items():
        link = output.path.with_name(name)
        link.symlink_to(leads_to)
        with pytest.raises(UsageError, match="is a link, and stays one"):
            Output(link, "localization").check()


@pytest.mark.parametrize("place", ["", "mine", "runs"])
def test_where_a_disk_is_mounted_nothing_is_replaced(
    output: Output, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (output.path / "mine").mkdir()
    mounted = output.path / place
    monkeypatch.setattr(Path, "is_mount", lambda path: path == mounted)
    with pytest.raises(UsageError, match=f"{mounted} is where a disk is mounted"):
        output.check()


def test_a_folder_that_was_made_read_only_is_refused(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    (output.path / "runs").chmod(0o500)
    put(output.path, {"notes.txt": "mine"})
    if os.geteuid() == 0:  # who may do anything
        monkeypatch.setattr(os, "access", lambda path, mode: bool(Path(path).stat().st_mode & 0o200))
    with pytest.raises(UsageError, match="runs can't be written to"):
        output.check()
    with contextlib.suppress(StorageError):
        write(output, "new")
    assert texts(output.path)["notes.txt"] == "mine"


def test_nobody_s_current_folder_is_taken_away(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("", "runs"):
        monkeypatch.chdir(output.path / place)
        with pytest.raises(UsageError, match="is the current folder, or holds it"):
            output.check()


def test_an_empty_folder_is_anybody_s(tmp_path: Path) -> None:
    (tmp_path / "X").mkdir()
    Output(tmp_path / "X", "localization").check()


# --- Files and models: the list lies beside them ---


def test_a_model_with_its_weights(tmp_path: Path) -> None:
    output = Output(tmp_path / "net.onnx", "conversion", beside=True)

    def convert(text: str) -> None:
        with output.write() as temporary:
            put(temporary.parent, {"net.onnx": text, "net.onnx.data": text})

    convert("1")
    output.check()
    assert output.wrote("net.onnx.data")
    convert("2")
    output.check()
    assert texts(tmp_path) == {"net.onnx": "2", "net.onnx.data": "2"}
    (tmp_path / "net.onnx").write_text("mine")
    with pytest.raises(UsageError, match=r"net\.onnx isn't as conrepair wrote it"):
        output.check()
    (tmp_path / f".net.onnx{LIST}").unlink()
    with pytest.raises(UsageError, match="no conversion of this version wrote it"):
        output.check()
    convert("3")
    assert set(texts(tmp_path).values()) == {"3", "mine", "2"}


def test_a_model_s_folder_holds_only_the_model(tmp_path: Path) -> None:
    output = Output(tmp_path / "saved", "conversion", beside=True)
    write(output, "1")
    assert set(texts(tmp_path / "saved")) == {path for path in OURS if not (tmp_path / "saved" / LIST).exists()}
    put(tmp_path / "saved", NOTES)
    output.check()
    write(output, "2")
    assert texts(tmp_path / "saved") == NOTES | dict.fromkeys(OURS, "2")


# --- Files that are put into a folder ---


def test_the_rest_stays_and_what_isn_t_as_it_was_written_is_refused(output: Output) -> None:
    put(output.path, NOTES)
    folder = output.path.stat().st_ino
    add(output, "again", ("layers.csv", "more/c"), strict=True)
    assert output.path.stat().st_ino == folder, "somebody may be in it"
    assert texts(output.path) == NOTES | {"layers.csv": "again", "runs/a/b.txt": "old", "more/c": "again"}
    output.check()
    for name, text in {"layers.csv": "annotated", "mine": "", "link/x": ""}.items():
        if text:
            put(output.path, {name: text})
        elif "/" in name:
            (output.path / "link").symlink_to("..")
        before = texts(output.path.parent)
        with pytest.raises(UsageError, match="isn't as conrepair wrote it"):
            add(output, "new", (name,), strict=True)
        assert texts(output.path.parent) == before
    add(output, "new", ("layers.csv", "link/x"))
    for strict in (False, True):
        link = output.path.with_name(f"link{strict}")
        link.symlink_to(".")
        with pytest.raises(UsageError, match=f"{link} isn't as conrepair wrote it"):
            add(Output(link, "localization"), "new", ("layers.csv",), strict=strict)
    assert not (output.path.with_name("layers.csv")).exists()
    told = {name: text for name, text in texts(output.path).items() if name.startswith(("l", "link"))}
    assert told == {"layers.csv": "new", "layers.csv.kept": "annotated", "link/x": "new", "link.kept": ".."}


def test_removing_leaves_what_others_put_there(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    put(output.path, NOTES | {"layers.csv": "annotated"})
    output.remove()
    assert texts(output.path) == NOTES | {"layers.csv": "annotated"}
    assert "X/layers.csv" in capsys.readouterr().err
    other = Output(output.path.with_name("Y"), "localization")
    write(other, "1")
    other.remove()
    assert not other.path.exists()


# --- Commands that end in the midst of it, and several at once ---


def _count_moves(monkeypatch: pytest.MonkeyPatch, last: int, end: Callable[[], Any]) -> None:
    """Do something else than the last of so many renames."""
    count = iter(range(1, 10_000))
    for name in ("rename", "replace"):
        move = getattr(Path, name)

        def counted(path: Path, to: Path, move: Any = move) -> Any:
            return end() if next(count) == last else move(path, to)

        monkeypatch.setattr(Path, name, counted)


def _fail() -> None:
    raise OSError(errno.EIO, "the disk is gone")


MOST_MOVES = 16


@pytest.mark.parametrize("how", ["killed", "failed"])
def test_wherever_it_ends_all_of_it_is_there_or_comes_back(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = 0
    for moves in range(1, MOST_MOVES + 1):
        folder = tmp_path / str(moves)
        output = Output(folder / "X", "localization")
        write(output, "old")
        put(output.path, NOTES)
        if how == "failed":
            with monkeypatch.context() as patched:
                _count_moves(patched, moves, _fail)
                with contextlib.suppress(StorageError):
                    write(output, "new")
        elif (child := os.fork()) == 0:
            _count_moves(monkeypatch, moves, lambda: os._exit(9))
            write(output, "new")
            os._exit(0)
        else:
            os.waitpid(child, 0)
        if how == "killed":
            write(Output(folder / "Y", "localization"), "1")  # the next command in that folder
        found = texts(output.path)
        assert found in [NOTES | dict.fromkeys(OURS, text) for text in ("old", "new")], moves
        assert not [path for path in folder.iterdir() if path.name not in {"X", "Y"}]
        output.check()
        whole += found["layers.csv"] == "new"
    assert 0 < whole < MOST_MOVES, "it was ended in the midst, and not always"


def test_weights_and_model_are_of_one_conversion_wherever_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for moves in range(1, 9):
        output = Output(tmp_path / str(moves) / "net.onnx", "conversion", beside=True)
        for text in ("old", "new"):
            if text == "new":
                _count_moves(monkeypatch, moves, _fail)
            with contextlib.suppress(StorageError), output.write() as temporary:
                put(temporary.parent, {"net.onnx": text, "net.onnx.data": text})
            monkeypatch.undo()
        assert len(set(texts(output.path.parent).values())) == 1
        output.check()


def test_two_that_write_the_same_folder_both_succeed(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    """What stands there afterwards is one of theirs, whole, with all of somebody's files."""
    put(output.path, NOTES)
    errors: list[BaseException] = []

    def write_on(text: str) -> None:
        try:
            for _ in range(40):
                write(output, text)
        except BaseException as error:  # noqa: BLE001 (reported below, in the thread of the test)
            errors.append(error)

    writers = [threading.Thread(target=write_on, args=(text,)) for text in ("one", "two")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert errors == []
    assert texts(output.path) in [NOTES | dict.fromkeys(OURS, text) for text in ("one", "two")]
    assert [path.name for path in output.path.parent.iterdir()] == ["X"]
