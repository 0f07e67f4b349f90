"""What workers do for `generate`: ask ONNX Runtime what it takes, make the networks of a block, a folder each."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from conrepair.campaigns.generate_functions import functions_at
from conrepair.campaigns.generate_material import material_at
from conrepair.campaigns.network_folder import REASON, name_of
from conrepair.frameworks.model import from_json
from conrepair.generate.blocks import BLOCK, block
from conrepair.generate.generated import generated
from conrepair.generate.narrowing.table import Acceptance, Narrowed
from conrepair.generate.networks import NotMadeError
from conrepair.generate.ports import Support
from conrepair.generate.running import RefusedError, accepted
from conrepair.generate.support import Probed
from conrepair.generate.wishes import Wishes
from conrepair.runtime.journal import Journal

AT, TRYING = "at.json", "trying"
"""In a job's folder: which network is being made, and its files so far."""


def generate(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make the networks of a block.

    Args:
        payload: "wishes", "seed", "block" (its number), "wanted" (numbers of networks), "without" (those that ended a
            worker, which aren't tried again), "seconds" (for each), "known" (file of "types",
            what `element_types` found, and "taken", what a target takes, by operator), "models" (to grow from),
            "instances" (file of what was learned), "functions" (the user's own).
        folder: Receives a folder, `name_of` its number, for each network, whole from when it's there; or a file with
            `REASON` as suffix that says why there is none.

    Returns:
        Nothing.
    """
    wishes, number, wanted = from_json(Wishes, payload["wishes"]), payload["block"], set(payload["wanted"])
    functions = functions_at(payload["functions"])
    support = functions.narrowed(_support(wishes.opset, payload["known"]))
    material = material_at(tuple(payload["models"]), payload["instances"], wishes.opset)
    last = max(wanted)
    without = {index - number * BLOCK for index in payload["without"]}
    networks = block(wishes, payload["seed"], number, support, last + 1 - number * BLOCK, without, material)
    for index in range(number * BLOCK, last + 1):
        _write(folder / AT, json.dumps(index))
        with bounded(payload["seconds"]):
            network = next(networks)
            if index not in wanted:
                continue
            if isinstance(network, NotMadeError):
                _write(folder / f"{name_of(index)}{REASON}", str(network))
                continue
            try:
                found = generated(network, payload["seed"], index)
                functions.keep(found)
                _deliver(folder, name_of(index), found.refereed())
            except RefusedError as error:
                _write(folder / f"{name_of(index)}{REASON}", str(error))
    return {}


def element_types(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Ask ONNX Runtime which element types it takes for operators; none of one that ends its process.

    Args:
        payload: "opset", "operators"; "versions", that the answers depend on; "journal" and "whose" it is.
        folder: Not used.

    Returns:
        "found", as of `Probed`.
    """
    support, journal = Probed(payload["opset"], accepted), Journal(Path(payload["journal"]), payload["whose"])
    for op in payload["operators"]:
        if op in journal:
            support.found[op] = []
            continue
        with journal.trying(op):
            support.ask(op)
    return {"found": support.found}


@cache
def _support(opset: int, known: str) -> Support:
    found = json.loads(Path(known).read_text(encoding="utf-8"))
    taken = {op: Acceptance(**item) for op, item in found["taken"].items()}
    return Narrowed(Probed(opset, accepted, found["types"]), taken)


def _deliver(folder: Path, name: str, network: Any) -> None:
    """Write a network; should ONNX Runtime's optimizations end this process, it's there already, and says so."""
    trying = folder / TRYING
    shutil.rmtree(trying, ignore_errors=True)
    trying.mkdir()
    network.about["optimized"] = {"verdict": "crashed"}
    network.write(trying)
    network.judged().write_about(trying)
    trying.rename(folder / name)


@contextlib.contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """End this process if what is inside isn't left in time: nothing else ends native code."""
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))  # 0 would be no limit
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _write(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
