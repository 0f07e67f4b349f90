"""Write hostile files, and load each by all that conrepair loads it by."""

from __future__ import annotations

import os
import random
import resource
import shutil
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.containers.canaries import NOTE, Canary, canary_of
from benchmarks.containers.disguises import disguised_archive, flipped
from conrepair.formats.models.model import Model
from conrepair.formats.models.outline import describe_unrun
from conrepair.formats.models.registry import framework
from conrepair.ground.data.tensors import read_tensors
from conrepair.ground.runtime.errors import ConrepairError

__all__ = ["trial"]

_FRAMEWORKS = {"pt2": "torch", "torchscript": "torch", "keras": "keras", "h5": "keras", "savedmodel": "tensorflow"}
_LONGEST = 10.0  # seconds; the first case of a process imports a framework
_MADE: dict[tuple[str, str], Canary] = {}


def trial(folder: Path, **payload: Any) -> dict[str, Any]:
    """Do some cases.

    Args:
        payload: "format", "seed", "first" and "count" of the cases, "mark" (a path), "limit" (bytes).
        folder: Where the files are written.

    Returns:
        "outcomes" (how many were loaded, refused, or ended otherwise), "wrong" (a line each), and "memory" (bytes
        that the process has held at most).
    """
    name, mark = payload["format"], Path(payload["mark"])
    known = (name, str(mark))
    if known not in _MADE:
        scratch = folder / "whole"
        scratch.mkdir(parents=True)
        _MADE[known] = canary_of(name, mark, scratch)
        mark.unlink(missing_ok=True)
    canary = _MADE[known]
    outcomes: Counter[str] = Counter()
    wrong = []
    for number in range(payload["first"], payload["first"] + payload["count"]):
        draw = random.Random(f"{payload['seed']} {name} {number}")  # noqa: S311 (no secret)
        path = folder / f"case{canary.suffix}"
        _write(path, canary, draw)
        started = time.monotonic()
        outcome, words = _loaded(name, path)
        if (seconds := time.monotonic() - started) > _LONGEST:
            outcome, words = "slow", f"{seconds:.0f} s"
        if mark.exists() or os.environ.pop(NOTE, ""):
            outcome = "canary"
            mark.unlink(missing_ok=True)
        outcomes[outcome] += 1
        if outcome in {"canary", "traceback", "slow"}:
            wrong.append(f"{name}:{number}: {outcome}: {words}")
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return {"outcomes": outcomes, "wrong": wrong, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10}


def _loaded(name: str, path: Path) -> tuple[str, str]:
    loads = [read_tensors] if name == "npz" else []
    if name != "npz":
        model = Model(_FRAMEWORKS[name], str(path), "")
        known = framework(model.framework)
        loads = [lambda _: describe_unrun(model), lambda _: known.describe(model), lambda _: _ran(known, model)]
    outcome = "loaded"
    for load in loads:
        try:
            load(path)
        except ConrepairError:
            outcome = "refused"
        # Anything else would be a traceback on the command line.
        except Exception:  # noqa: BLE001
            return "traceback", "".join(traceback.format_exc().splitlines(keepends=True)[-4:])
    return outcome, ""


def _ran(known: Any, model: Model) -> None:
    """Call it, as code may wait for that."""
    runnable = known.load(model)
    feeds = {
        spec.name: np.zeros([size if isinstance(size, int) else 2 for size in spec.shape], spec.dtype)
        for spec in runnable.inputs
    }
    try:
        runnable.run(feeds)
    # A network's own operators may fail in any way, which is a job's failure and no traceback.
    except Exception as error:  # noqa: BLE001
        del error


def _write(path: Path, canary: Canary, draw: random.Random) -> None:
    hostile = draw.choice(canary.hostile)
    if canary.suffix in {".pt2", ".pt", ".keras", ".npz"}:
        path.write_bytes(disguised_archive(canary.whole, hostile, draw))
    elif canary.suffix == ".h5":
        path.write_bytes(_hdf5(canary.whole, hostile[""], draw))
    else:
        _folder(path, canary.whole, hostile["saved_model.pb"], draw)


def _hdf5(whole: dict[str, bytes], hostile: bytes, draw: random.Random) -> bytes:
    """With something before or behind it, of which it's told by its end that it's an archive."""
    content = flipped(hostile, draw) if draw.random() < 0.5 else hostile
    before = draw.choice([b"", b"", bytes(512), whole["zip"] + bytes(-len(whole["zip"]) % 512), bytes(2048)])
    behind = draw.choice([b"", b"", whole["zip"], whole["zip"][-22:], whole[""], b"x"])
    ends = bytearray(behind)
    if len(ends) >= 6 and draw.random() < 0.5:  # the list of members, counted from the file's beginning
        shift = len(before) + len(content)
        place = int.from_bytes(ends[-6:-2], "little") + shift
        ends[-6:-2] = (place % (1 << 32)).to_bytes(4, "little")
    return before + content + bytes(ends)


def _folder(path: Path, files: dict[str, bytes], hostile: bytes, draw: random.Random) -> None:
    """The graph under each name that TensorFlow knows, before and behind the ordinary one."""
    whole = files["saved_model.pb"]
    graph = draw.choice(
        [hostile, hostile, hostile + whole, whole + hostile, flipped(hostile, draw), flipped(hostile, draw), whole]
    )
    for name, content in {**files, "saved_model.pb": graph}.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    other = draw.choice(["", "saved_model.pbtxt", "saved_model.cpb", "SAVED_MODEL.PB", "fingerprint.pb", "assets/x"])
    if other:
        (path / other).parent.mkdir(parents=True, exist_ok=True)
        (path / other).write_bytes(_as_text(hostile) if other.endswith("pbtxt") else hostile)
    if draw.random() < 0.2:
        victim = draw.choice(sorted(files))
        (path / victim).write_bytes(flipped((path / victim).read_bytes(), draw))


def _as_text(hostile: bytes) -> bytes:
    from google.protobuf import text_format
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    return text_format.MessageToString(SavedModel.FromString(hostile)).encode()
