"""Outputs among a person's files: one that was written whole is replaced; with anything else in it it's refused."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conrepair.ground.runtime.errors import StorageError, UsageError
from conrepair.ground.runtime.files import replacing
from conrepair.ground.runtime.files.listing import LIST, Listing
from conrepair.ground.runtime.files.outputs import Output

NOTES = {"notes.txt": "mine", "mine/deep/f": "mine", "runs/a/notes": "mine", ".hidden": "mine"}
OURS = ("layers.csv", "runs/a/b.txt")


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def write(output: Output, text: str, names: tuple[str, ...] = OURS) -> None:
    with output.write() as temporary:
        put(temporary, dict.fromkeys(names, text))


def add(output: Output, text: str, names: tuple[str, ...]) -> None:
    with output.write(parts=True) as temporary:
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


def test_a_list_of_300_000_names_keeps_nobody_waiting(output: Output) -> None:
    lines = (f'{0:064} 5 "runs/file {number}"\n' for number in range(300_000))
    with (output.path / LIST).open("a") as stream:
        stream.writelines(lines)
    put(output.path, {"notes.txt": "mine"})
    begun = time.process_time()
    with pytest.raises(UsageError, match=r"notes\.txt was written by no"):
        output.check()
    assert time.process_time() - begun < 5


def test_a_list_that_is_longer_than_a_list_may_be_is_not_read(output: Output) -> None:
    os.truncate(output.path / LIST, 1 << 40)
    with pytest.raises(UsageError, match="no localization of this version wrote it"):
        output.check()


def test_an_earlier_output_is_replaced_and_nothing_else(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    write(output, "new", ("layers.csv", "other.csv"))
    assert texts(output.path) == {"layers.csv": "new", "other.csv": "new"}
    assert [path.name for path in output.path.parent.iterdir()] == ["X"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", [*NOTES, "link", "runs/dangling", "empty"])
def test_a_folder_with_anything_else_in_it_is_refused(output: Output, name: str) -> None:
    place = output.path / name
    if name in NOTES:
        put(output.path, {name: "mine"})
    elif name == "empty":
        place.mkdir()
    else:
        place.symlink_to("nowhere")
    before = texts(output.path)
    first = output.path / ("mine" if name.startswith("mine") else name)
    with pytest.raises(
        UsageError, match=f"^{re.escape(str(first))} was written by no {output.by}, so {output.path} isn't"
    ) as told:
        output.check()
    assert "Choose another output" in str(told.value)
    assert texts(output.path) == before


def test_a_folder_with_very_many_files_keeps_nobody_waiting(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3000):
        (output.path / f"{number}").touch()
    looked_at, owns = [], Listing.owns

    def counted(listing: Listing, root: Path, name: str) -> bool:
        looked_at.append(name)
        return owns(listing, root, name)

    monkeypatch.setattr(Listing, "owns", counted)
    with pytest.raises(UsageError, match="was written by no"):
        output.check()
    assert len(looked_at) < 4


def test_what_came_while_the_command_ran_is_kept_whole(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody throws minutes of work away for that."""
    folder, elsewhere = output.path, output.path.parent / "elsewhere"
    put(elsewhere, {"f": "of somebody"})
    put(folder, NOTES)
    (folder / "link").symlink_to(elsewhere)
    (folder / "notes.txt").chmod(0o400)
    places = {name: (folder / name).stat().st_ino for name in NOTES}
    write(output, "new", ("other.csv",))
    kept = folder.with_name("X.kept")
    assert texts(folder) == {"other.csv": "new"}
    assert texts(kept) == NOTES | {"link": str(elsewhere)} | dict.fromkeys(OURS, "old")
    assert {name: (kept / name).stat().st_ino for name in NOTES} == places, "moved, not copied"
    assert (kept / "notes.txt").stat().st_mode & 0o777 == 0o400
    assert texts(elsewhere) == {"f": "of somebody"}
    told = capsys.readouterr().err
    assert told == f"conrepair: kept in {folder.parent}, as no localization wrote it: X (now X.kept)\n"
    put(folder, {"other.csv": "annotated"})
    write(output, "newer")
    assert texts(folder.with_name("X.kept-2")) == {"other.csv": "annotated"}
    output.check()


@pytest.mark.parametrize("mode", [0o700, 0o2775])
def test_who_may_read_a_folder_stays(output: Output, mode: int) -> None:
    output.path.chmod(mode)
    write(output, "new")
    assert output.path.stat().st_mode & 0o7777 == mode


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
        (folder / LIST).write_text(text, errors="surrogateescape")

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
    "a damaged list": (_list("written whole by conrep"), "no localization of this version wrote it"),
    "a list in no text": (_list("\udcff\udcfe"), "no localization of this version wrote it"),
    "a list of an earlier release": (
        _list('{"version": 1, "by": "localization", "files": {}, "folders": []}'),
        "no localization of this version wrote it",
    ),
    "a list of nothing": (_list("written whole by conrepair, as localization\n"), "layers.csv was written by no"),
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
    listed = (output.path / LIST).read_text()
    entry = next(line for line in listed.splitlines() if line.endswith('"layers.csv"'))
    put(output.path.parent, {"precious": "old"})
    names = ("../precious", "/etc/hostname", "runs/../../precious", str(output.path.parent / "precious"))
    files = "".join(entry.replace("layers.csv", name) + "\n" for name in names)
    (output.path / LIST).write_text(f'{listed}{files}- - ".."\n- - "/"\n- - ""\n')
    output.check()
    write(output, "new")
    assert texts(output.path.parent)["precious"] == "old"


def test_a_list_beside_a_file_takes_no_other_file_away(tmp_path: Path) -> None:
    output = Output(tmp_path / "net.onnx", "conversion", beside=True)
    put(tmp_path, {"precious": "years"})
    Listing.of("conversion", tmp_path).write(tmp_path / f".net.onnx{LIST}")
    with output.write() as temporary:
        temporary.write_text("1")
    assert texts(tmp_path) == {"net.onnx": "1", "precious": "years"}


def test_other_outputs_and_links_are_refused(output: Output) -> None:
    with pytest.raises(UsageError, match="no repair of this version wrote it"):
        Output(output.path, "repair").check()
    for name, leads_to in {"link": "X", "dangling": "nowhere"}.items():
        link = output.path.with_name(name)
        link.symlink_to(leads_to)
        with pytest.raises(UsageError, match="is a link, and stays one"):
            Output(link, "localization").check()


@pytest.mark.parametrize("place", ["", "runs"])
def test_where_a_disk_is_mounted_nothing_is_replaced(
    output: Output, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = output.path / place
    monkeypatch.setattr(Path, "is_mount", lambda path: path == mounted)
    with pytest.raises(UsageError, match=f"{mounted} is where a disk is mounted"):
        output.check()


def test_a_folder_that_was_made_read_only_is_refused(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    (output.path / "runs").chmod(0o500)
    if os.geteuid() == 0:  # who may do anything
        monkeypatch.setattr(os, "access", lambda path, mode: bool(Path(path).stat().st_mode & 0o200))
    with pytest.raises(UsageError, match="runs can't be written to"):
        output.check()


def test_nobody_s_current_folder_is_taken_away(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("", "runs"):
        monkeypatch.chdir(output.path / place)
        with pytest.raises(UsageError, match="is the current folder, or holds it"):
            output.check()


def test_an_empty_folder_is_anybody_s(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "X").mkdir()
    output = Output(tmp_path / "X", "localization")
    output.check()
    write(output, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["X"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("way", ["X/new/../../X", "new/../X", "other/../X"])
def test_a_way_over_a_folder_that_is_missing(output: Output, way: str) -> None:
    """What was there when the way was looked at is what's replaced."""
    again = Output(output.path.parent / way, output.by)
    assert again.path == output.path
    again.check()
    write(again, "new")
    assert set(texts(output.path).values()) == {"new"}
    assert [path.name for path in output.path.parent.iterdir()] == ["X"]


def test_nothing_that_is_read_is_replaced(output: Output) -> None:
    with pytest.raises(UsageError, match=r"layers\.csv lies in .*X, which this localization would replace"):
        output.check(inputs=[output.path / "layers.csv"])
    with pytest.raises(UsageError, match="X is read, and would be replaced"):
        output.check(inputs=[output.path])
    output.check(inputs=[output.path.parent / "elsewhere.npz"])


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
    output.check()
    write(output, "2", ("other",))
    assert texts(tmp_path / "saved") == {"other": "2"}
    put(tmp_path / "saved", NOTES)
    with pytest.raises(UsageError, match=r"saved/\.hidden was written by no"):
        output.check()


def test_weights_go_with_the_model_that_had_them(tmp_path: Path) -> None:
    output = Output(tmp_path / "net.onnx", "conversion", beside=True)
    with output.write() as temporary:
        put(temporary.parent, {"net.onnx": "1", "net.onnx.data": "1"})
    with output.write() as temporary:
        put(temporary.parent, {"net.onnx": "2"})
    assert texts(tmp_path) == {"net.onnx": "2"}
    output.check()


# --- Files that are put into a folder ---


def test_the_rest_stays_and_what_isn_t_as_it_was_written_is_refused(output: Output) -> None:
    put(output.path, NOTES)
    folder = output.path.stat().st_ino
    for _ in range(2):
        add(output, "again", ("layers.csv", "more/c"))
    assert output.path.stat().st_ino == folder, "somebody may be in it"
    assert texts(output.path) == NOTES | {"layers.csv": "again", "runs/a/b.txt": "old", "more/c": "again"}
    with pytest.raises(UsageError, match="was written by no"):
        output.check()
    (output.path / "link").symlink_to("..")
    output.path.with_name("X link").symlink_to("X")
    put(output.path, {"layers.csv": "annotated"})
    before = texts(output.path.parent)
    for place, name, words in (
        ("X", "layers.csv", "layers.csv isn't as conrepair wrote it"),
        ("X", "mine", "mine is no file"),
        ("X", "link/x", "link is a link, and nothing is written through links"),
        ("X link", "new", "X link isn't as conrepair wrote it"),
    ):
        with pytest.raises(UsageError, match=words):
            add(Output(output.path.with_name(place), output.by), "new", ("a", name))
    assert texts(output.path.parent) == before


def test_a_file_is_removed_unless_somebody_changed_it(tmp_path: Path) -> None:
    output = Output(tmp_path / "page.html", "page", beside=True)
    for text in ("1", "2"):
        with output.write() as temporary:
            temporary.write_text(text)
    output.remove()
    output.remove()
    assert list(tmp_path.iterdir()) == []
    with output.write() as temporary:
        temporary.write_text("3")
    output.path.write_text("annotated")
    output.remove()
    assert texts(tmp_path) == {"page.html": "annotated"}


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


MOST_MOVES = 8


def _without_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system on which two folders can't trade places."""
    monkeypatch.setattr(replacing, "_exchanged", lambda one, other: False)


@pytest.mark.parametrize("how", ["killed", "failed"])
@pytest.mark.parametrize("exchange", [True, False])
def test_wherever_it_ends_all_of_it_is_there_or_comes_back(
    tmp_path: Path, how: str, exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        _without_exchange(monkeypatch)
    whole = 0
    for moves in range(1, MOST_MOVES + 1):
        folder = tmp_path / str(moves)
        output = Output(folder / "X", "localization")
        write(output, "old")
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
        if exchange:
            assert len(texts(output.path)) == len(OURS), "it's there at any time"
        if how == "killed":
            write(Output(folder / "Y", "localization"), "1")  # the next command in that folder
        found = texts(output.path)
        assert found in [dict.fromkeys(OURS, text) for text in ("old", "new")], moves
        assert not [path for path in folder.iterdir() if path.name not in {"X", "Y"}]
        output.check()
        whole += found["layers.csv"] == "new"
    assert 0 < whole < MOST_MOVES, "it was ended in the midst, and not always"


def test_what_somebody_put_where_a_killed_command_left_nothing_stays(
    output: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    if (child := os.fork()) == 0:
        with pytest.MonkeyPatch.context() as patched:
            _without_exchange(patched)
            _count_moves(patched, 4, lambda: os._exit(9))  # the old one is away, the new one isn't there yet
            write(output, "new")
        os._exit(0)
    os.waitpid(child, 0)
    assert not output.path.exists()
    put(output.path, {"f": "mine"})
    write(Output(output.path.with_name("Y"), "localization"), "1")
    assert texts(output.path) == {"f": "mine"}
    assert texts(output.path.with_name("X.kept")) == dict.fromkeys(OURS, "old")
    assert "X (now X.kept)" in capsys.readouterr().err


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
    """What stands there afterwards is one of theirs, whole."""
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
    assert texts(output.path) in [dict.fromkeys(OURS, text) for text in ("one", "two")]
    assert [path.name for path in output.path.parent.iterdir()] == ["X"]
