"""Nobody's work is lost: each verb that writes, run again over a place where somebody has put files of their own."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import legacy_configs
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from conrepair.application.cli import main
from conrepair.application.cli.main import command_line
from conrepair.application.cli.parser import Parser
from conrepair.ground.runtime.files.listing import LIST

PAIR = "net.onnx scaled.onnx --samples 4"
NETWORKS = "--nodes 2 --operators Add,Relu --dtypes float32 -n 2"
# By verb, commands that are run one after the other; then again, with --force where there is one.
COMMANDS = {
    "compare": [f"compare {PAIR} -o out"],
    "localize": [f"localize {PAIR} -o out/one", f"localize {PAIR} other.onnx -o out/several"],
    "repair": [
        f"repair {PAIR} --advice 0 -o out/one",
        f"repair {PAIR} --advice 0",
        "repair scaled.onnx --apply out/one/patch.json -o out/again",
    ],
    "convert": [
        "convert net.onnx --to tensorflow -o out/saved --no-check",
        "convert net.onnx --via onnx-normalise --to onnx -o out/new.onnx",
    ],
    "inputs": ["inputs net.onnx -o out/inputs.npz --samples 2"],
    "execute": ["execute net.onnx -o out"],
    "build": ["build net.onnx -o out/build"],
    "run": ["run config.json -o out", "run config.json"],
    "report": [
        f"localize {PAIR} -o out/run",
        "report out/run",
        "report out/run -o out/again",
        "report out/run out/again -o out/changes",
        "report out/run out/again",
    ],
    "architectures": ["architectures --family torchvision --names squeezenet1_1 --size 32 -o out"],
    "config": ["config migrate old.json -o out/new.json"],
    "trace": [
        "trace net.onnx --setting ort-all --evaluations 5 -o out/one",
        "trace . --setting ort-all --evaluations 5 -o out/several",
    ],
    "fuzz": [
        "fuzz --systems ort-none --alone 3 --count 2 --nodes 3 -o out/fuzz",
        "fuzz net.onnx --systems ort-none -o out/own",
    ],
    "accuracy": ["accuracy ort-none --operator Relu -o out"],
    "generate": [f"generate {NETWORKS} --to torch -o out"],
    "cache": [f"localize {PAIR}", "cache clear", "cache --limit 3"],
}
SLOW = {"architectures", "build", "repair", "report", "run"}
QUICKER = {"run": ["run config.json -o out"], "report": COMMANDS["report"][:3], "repair": COMMANDS["repair"][:1]}
VERBS: dict[str, Parser] = next(
    item.choices for item in command_line()._actions if isinstance(item, argparse._SubParsersAction)
)


def save(name: str, factor: float = 1.0) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 4] x) => (float[n, 3] y) { y = MatMul (x, w) }'
    model = onnx.parser.parse_model(text)
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(factor * weight, "w"))
    onnx.save(model, name)


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands are run in; beside it what they have nothing to do with."""
    for name in ("elsewhere/deep", "room"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "elsewhere" / "deep" / "precious").write_text("years")
    monkeypatch.chdir(tmp_path / "room")
    monkeypatch.setenv("CONREPAIR_CACHE", str(tmp_path / "room" / "cache"))
    for name, factor in {"net.onnx": 1.0, "scaled.onnx": 2.0, "other.onnx": 0.5}.items():
        save(name, factor)
    pair = [{"name": "net", "path": "net.onnx"}, {"name": "scaled", "path": "scaled.onnx", "compare_with": "net"}]
    config = {
        "name": "audit", "output": "generated", "models": pair, "dataset": {"synthetic": {"samples": 4}},
        "localize": {}, "repair": {"advice_seconds": 0},
    }  # fmt: skip
    Path("config.json").write_text(json.dumps(config))
    data = {"datasets": [{"dataset_path_relative": "/photos"}], "selected_dataset": 0}
    Path("old.json").write_text(json.dumps(legacy_configs.minimal(**data)))
    return tmp_path / "room"


def files(root: Path) -> dict[str, bytes]:
    """All there is below a folder; of links what they say."""
    return {
        path.relative_to(root).as_posix(): str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        for path in root.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def run(commands: list[str], *, force: bool = False) -> list[int]:
    """Run them; their exit codes."""
    codes = []
    for command in commands:
        verb, *words = shlex.split(command)
        forced = ["--force"] if force and "--force" in VERBS[verb]._option_string_actions else []
        codes.append(main([verb, *words, *forced, "-q"]))
    return codes


def put_everywhere(room: Path, own: set[str]) -> dict[str, bytes]:
    """Put files, folders and links into every folder that was written; what they are."""
    folders = [path for path in room.rglob("*") if path.is_dir() and not path.is_symlink()]
    for folder in [room, *folders]:
        for name in ("stranger.txt", ".stranger", "mine/deep/f"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"of somebody, in {folder}")
        (folder / "link").symlink_to(room.parent / "elsewhere")
    return {name: content for name, content in files(room).items() if name not in own}


def parameters() -> Iterator[object]:
    for verb, commands in COMMANDS.items():
        if verb in QUICKER or verb not in SLOW:
            yield pytest.param(QUICKER.get(verb, commands), id=verb)
        if verb in SLOW:
            yield pytest.param(commands, id=f"{verb}, all of it", marks=pytest.mark.slow)


def test_no_verb_that_writes_is_forgotten() -> None:
    writing = {name for name, parser in VERBS.items() if any(item.dest == "output" for item in parser._actions)}
    assert writing | {"cache"} == set(COMMANDS)
    forced = {name for name, parser in VERBS.items() if "--force" in parser._option_string_actions}
    assert forced <= writing


@pytest.mark.parametrize("commands", parameters())
def test_what_others_put_into_every_folder_stays(
    room: Path, commands: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    beside = files(room.parent / "elsewhere")
    given = files(room)
    first = run(commands)
    assert max(first) < 2
    assert run(commands, force=True) == first, capsys.readouterr().err
    strangers = put_everywhere(room, set(files(room)))
    capsys.readouterr()
    again = run(commands, force=True)
    said = capsys.readouterr().err
    assert all(code in {2, before} for code, before in zip(again, first, strict=True)), said
    assert said.count("was written by no") >= again.count(2), "which file it is, is told"
    after = files(room)
    # Entries of a store are made anew without what doesn't belong to them; that lies beside them then.
    lost = {
        name: content
        for name, content in strangers.items()
        if after.get(name) != content and not any(f"/kept/{number}/" in other and after[other] == content
                                                  for other in after for number in range(99))
    }  # fmt: skip
    assert not lost
    assert {name: after.get(name) for name in given} == given
    assert files(room.parent / "elsewhere") == beside
    in_outputs = [name for name in strangers if name.startswith("out/") and "/store/" not in name]
    assert all(after[name] == strangers[name] for name in in_outputs), "where it was"


@pytest.mark.parametrize("commands", parameters())
def test_what_others_changed_stays(room: Path, commands: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each file that a list names is annotated: no text of somebody's is gone afterwards, in none of them."""
    given = files(room)
    run(commands)
    annotated = {}
    for file in sorted(room.rglob(f"*{LIST}")):
        names = (json.loads(line[line.index('"') :]) for line in file.read_text().splitlines()[1:] if line[0] != "-")
        for name in names:
            with (file.parent / name).open("ab") as stream:
                stream.write(f"\nannotated: {name}".encode())
            annotated[str(file.parent / name)] = (file.parent / name).read_bytes()
    run(commands, force=True)
    after = files(room)
    assert [name for name, content in annotated.items() if content not in after.values()] == []
    assert {name: after.get(name) for name in given} == given
    assert not annotated or "isn't as conrepair wrote it" in capsys.readouterr().err
