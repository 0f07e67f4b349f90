"""What is done in each case, by its sort and number: files are damaged, configurations and command lines drawn."""

from __future__ import annotations

import argparse
import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from benchmarks.fuzz.damage import damaged_archive, damaged_bytes, damaged_json, damaged_message
from benchmarks.fuzz.seeds import FORMATS
from benchmarks.fuzz.values import odd_text, odd_whole
from conrepair.application.cli.main import command_line
from conrepair.application.cli.parser import Parser, path_kind

__all__ = ["SORTS", "Prepared", "prepare"]

_BOUNDS = ["--timeout", "30", "-q"]
_LOADING, _RUNNING, _READING = frozenset({0, 3}), frozenset({0, 1, 2, 3, 4}), frozenset({0, 1, 2})
_FED = frozenset({0, 1, 2})
_NAMES = ["net.onnx", "net.outside.onnx", "data.npz", "photos", "recipe.json", "config.json", "patch.json", "gone"]
_NO_MODELS = ["gone", "gone.onnx", "photos", "data.npz", "recipe.json", "config.json"]
_WORDS = ["onnx", "x=1,3,8,8", "batch,3,8,8:float32", "torchvision", "llvm", "onnx-normalise", "Relu", "a=b"]
_NOT_DRAWN = {"architectures", "environments", "doctor", "run"}  # whole audits, and what makes environments


@dataclass(frozen=True)
class Prepared:
    """A command to run in a folder, and how it may end.

    Attributes:
        words: Of the command line.
        codes: That are right.
    """

    words: list[str] = field(default_factory=list)
    codes: frozenset[int] = _RUNNING


def prepare(name: str, seed: int, seeds: Path, room: Path) -> Prepared:
    """Write what a case needs, and say what is run.

    Args:
        name: "SORT:NUMBER".
        seed: Of all cases.
        seeds: The whole files.
        room: The current folder of the command; empty.
    """
    sort = name.partition(":")[0]
    draw = random.Random(f"{seed} {name}")  # noqa: S311 (no secret)
    return SORTS[sort](sort, draw, seeds, room)


def _inspected(sort: str, draw: random.Random, seeds: Path, room: Path) -> Prepared:
    """An ONNX file that is read and not run, which needs no worker."""
    (room / "damaged.onnx").write_bytes(_of_onnx(seeds / "net.onnx", draw))
    return Prepared(["inspect", "damaged.onnx", *_BOUNDS], _LOADING)


def _model(sort: str, draw: random.Random, seeds: Path, room: Path) -> Prepared:
    whole = seeds / ("saved" if sort == "saved" else f"net.{sort}")
    damaged = room / ("saved" if sort == "saved" else f"damaged.{sort}")
    if sort == "saved":
        shutil.copytree(whole, damaged)
        file = draw.choice(sorted(path for path in damaged.rglob("*") if path.is_file()))
        file.write_bytes(_of_graph(file.read_bytes(), file.name, draw))
    else:
        damaged.write_bytes(_DAMAGED.get(whole.suffix, _raw)(whole, draw))
    if sort.startswith("outside"):
        beside = seeds / f"net.{sort}.data"
        (room / beside.name).write_bytes(beside.read_bytes())
    verb = draw.random()
    if verb < 0.5:
        return Prepared(["inspect", damaged.name, *_BOUNDS], _LOADING)
    if verb < 0.75:
        return Prepared(["execute", damaged.name, "--samples", "2", *_BOUNDS])
    return Prepared(["compare", str(whole), damaged.name, "--samples", "2", *_BOUNDS])


def _raw(whole: Path, draw: random.Random) -> bytes:
    return damaged_bytes(whole.read_bytes(), draw)


def _of_onnx(whole: Path, draw: random.Random) -> bytes:
    if draw.random() < 0.3:
        return _raw(whole, draw)
    return damaged_message(onnx.load(whole, load_external_data=False), draw)


def _of_archive(whole: Path, draw: random.Random) -> bytes:
    return damaged_archive(whole.read_bytes(), draw)


def _of_frozen(whole: Path, draw: random.Random) -> bytes:
    return _of_graph(whole.read_bytes(), whole.name, draw)


def _of_graph(content: bytes, name: str, draw: random.Random) -> bytes:
    if draw.random() < 0.3 or not name.endswith(".pb") or name == "fingerprint.pb":
        return damaged_bytes(content, draw)
    if name == "saved_model.pb":
        from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

        return damaged_message(SavedModel.FromString(content), draw)
    from tensorflow.core.framework.graph_pb2 import GraphDef

    return damaged_message(GraphDef.FromString(content), draw)


def _of_keras2(whole: Path, draw: random.Random) -> bytes:
    if draw.random() < 0.5:
        return _raw(whole, draw)
    import io

    import h5py

    stream = io.BytesIO(whole.read_bytes())
    with h5py.File(stream, "r+") as file:
        key = draw.choice(["model_config", "model_config", "model_config", "keras_version", "backend"])
        text = str(file.attrs[key])
        new = damaged_json(text.encode(), draw) if key == "model_config" else odd_text(draw).encode(errors="replace")
        file.attrs[key] = new.replace(b"\0", b"")[:60000]
    return stream.getvalue()


_DAMAGED: dict[str, Callable[[Path, random.Random], bytes]] = {
    ".onnx": _of_onnx,
    ".pt": _of_archive,
    ".pt2": _of_archive,
    ".keras": _of_archive,
    ".pb": _of_frozen,
    ".h5": _of_keras2,
}


def _data(sort: str, draw: random.Random, seeds: Path, room: Path) -> Prepared:
    name = draw.choice(["data.npz", "data.npz", "data.npy"])
    content = (seeds / name).read_bytes()
    damaged = damaged_archive(content, draw) if name.endswith("z") else damaged_bytes(content, draw)
    (room / name).write_bytes(damaged)
    return Prepared(["execute", str(seeds / "net.onnx"), "--data", name, *_BOUNDS], _FED)


def _photos(sort: str, draw: random.Random, seeds: Path, room: Path) -> Prepared:
    shutil.copytree(seeds / "photos", room / "photos")
    files = sorted(path for path in (room / "photos").rglob("*") if path.is_file())
    file = draw.choice(files)
    deed = draw.random()
    if deed < 0.6:
        file.write_bytes(damaged_bytes(file.read_bytes(), draw))
    elif deed < 0.7:
        file.unlink()
        file.symlink_to(draw.choice(["/dev/zero", file.name, "gone", ".", "/dev/null"]))
    elif deed < 0.8:
        file.rename(
            file.with_name(draw.choice([f"{'x' * 250}.png", "caf\udce9.png", "²_².png", "\x1b[31m.png", ".png"]))
        )
    else:
        labels = damaged_bytes((seeds / "labels.csv").read_bytes(), draw)
        (room / "photos" / "labels.csv").write_bytes(labels)
    words = ["execute", str(seeds / "net.onnx"), "--data", "photos", "--recipe", "torchvision"]
    return Prepared([*words, *_BOUNDS], _FED)


def _recipe(sort: str, draw: random.Random, seeds: Path, room: Path) -> Prepared:
    (room / "recipe.json").write_bytes(damaged_json((seeds / "recipe.json").read_bytes(), draw))
    words = ["execute", str(seeds / "net.onnx"), "--data", str(seeds / "photos"), "--recipe", "recipe.json"]
    return Prepared([*words, *_BOUNDS], _FED)


def _patch(sort: str, draw: random.Random, seeds: Path, room: Path) -> Prepared:
    from conrepair.formats.models.identity import model_sha256

    value = json.loads((seeds / "patch.json").read_text()) | {"target_sha256": model_sha256(seeds / "net.onnx")}
    value["edits"] = draw.sample(value["edits"], 1)
    (room / "patch.json").write_bytes(damaged_json(json.dumps(value).encode(), draw, once=draw.random() < 0.7))
    words = ["repair", str(seeds / "net.onnx"), "--apply", "patch.json", "-o", "out"]
    return Prepared([*words, *_BOUNDS], frozenset({0, 2, 4}))


def _result(sort: str, draw: random.Random, seeds: Path, room: Path) -> Prepared:
    """A run's document, of which its page is made again."""
    (room / "run").mkdir()
    (room / "run" / "result.json").write_bytes(damaged_json((seeds / "result.json").read_bytes(), draw, once=True))
    return Prepared(["report", "run", "-q"], _READING)


def _config(sort: str, draw: random.Random, seeds: Path, room: Path) -> Prepared:
    once = draw.random() < 0.7
    (room / "config.json").write_bytes(damaged_json((seeds / "config.json").read_bytes(), draw, once=once))
    (room / "net.onnx").write_bytes((seeds / "net.onnx").read_bytes())
    (room / "photos").symlink_to(seeds / "photos")
    words = ["config", draw.choice(["check", "check", "check", "migrate"]), "config.json"]
    return Prepared([*words, *(["-o", "new.json"] if "migrate" in words else []), "-q"], _READING)


def _run(sort: str, draw: random.Random, seeds: Path, room: Path) -> Prepared:
    (room / "run.json").write_bytes(damaged_json((seeds / "run.json").read_bytes(), draw, once=True))
    for name in ("net.onnx", "other.onnx"):
        (room / name).write_bytes((seeds / "net.onnx").read_bytes())
    return Prepared(["run", "run.json", "-q"])


def _line(sort: str, draw: random.Random, seeds: Path, room: Path) -> Prepared:
    """A verb with options of its own, most of them with values that may be meant; of "mistyped" no model is there."""
    names = _NAMES if sort == "line" else _NO_MODELS
    parser = command_line()
    (verbs,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    verb = draw.choice([name for name in verbs.choices if name not in _NOT_DRAWN])
    words = [verb]
    chosen: Parser = verbs.choices[verb]
    for action in chosen._actions:
        if not action.option_strings:
            count = 0 if draw.random() < 0.05 else 1
            words += [_value(action, draw, seeds, names) for _ in range(count)]
    options = [action for action in chosen._actions if action.option_strings and action.dest != "help"]
    for action in draw.sample(options, min(len(options), draw.randrange(5))):
        words.append(draw.choice(action.option_strings))
        if action.nargs != 0:
            words.append(_value(action, draw, seeds, names))
    if draw.random() < 0.1:
        words.insert(draw.randrange(len(words) + 1), odd_text(draw))
    if any(action.dest == "timeout" for action in options) and "--timeout" not in words:
        words += ["--timeout", "30"]
    return Prepared(words)


def _value(action: argparse.Action, draw: random.Random, seeds: Path, names: Sequence[str]) -> str:
    odd = draw.random() < 0.25
    if odd:
        return odd_text(draw)
    if action.choices:
        return str(draw.choice(list(action.choices)))
    if action.dest == "output":
        return draw.choice(["out", "out.onnx", ".", "x" * 240, "/dev/null/x", "made/deep/out"])
    if path_kind(action):
        return str(seeds / draw.choice(names))
    if action.metavar in {"N", "X", "S"}:
        return draw.choice(["1", "2", "8", "0.5", "0", "-1", str(odd_whole(draw))])
    return draw.choice(_WORDS)


SORTS: dict[str, Callable[[str, random.Random, Path, Path], Prepared]] = {
    **dict.fromkeys(FORMATS, _model),
    "inspected": _inspected,
    "data": _data,
    "photos": _photos,
    "recipe": _recipe,
    "patch": _patch,
    "result": _result,
    "config": _config,
    "run": _run,
    "mistyped": _line,
    "line": _line,
}
