"""What workers do for `generate`: ask ONNX Runtime what it takes, make the networks of a block, a folder each."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.files.journal import Journal
from conrepair_lab.campaigns.generate_functions import FunctionFile, functions_at
from conrepair_lab.campaigns.generate_material import material_at
from conrepair_lab.campaigns.network_folder import REASON, name_of
from conrepair_lab.generate.generated import BLOCK, generated
from conrepair_lab.generate.generated import block as networks_of
from conrepair_lab.generate.narrowing.table import Acceptance, Narrowed
from conrepair_lab.generate.networks import NotMadeError
from conrepair_lab.generate.onnx_form import RefusedError, accepted
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes

AT, TRYING = "at.json", "trying"
"""In a job's folder: which network is being made, and its files so far."""


def generate(
    folder: Path,
    *,
    wishes: Wishes,
    seed: int,
    block: int,
    wanted: frozenset[int],
    without: frozenset[int] = frozenset(),
    seconds: float,
    known: str,
    models: tuple[str, ...] = (),
    instances: str,
    functions: tuple[FunctionFile, ...] = (),
) -> None:
    """Make the networks of a block.

    Args:
        folder: Receives a folder, `name_of` its number, for each network, whole from when it's there; or a file with
            `REASON` as suffix that says why there is none.
        wishes: What they should be like.
        seed: Of all that's drawn.
        block: Its number.
        wanted: Numbers of networks.
        without: Of those that ended a worker, which aren't tried again.
        seconds: For each.
        known: File of "types", what `element_types` found, and "taken", what a target takes, by operator.
        models: To grow from.
        instances: File of what was learned.
        functions: The user's own.
    """
    own = functions_at(functions)
    support = own.narrowed(_support(wishes.opset, known))
    material = material_at(models, instances, wishes.opset)
    last = max(wanted)
    first = block * BLOCK
    places = {index - first for index in without}
    networks = networks_of(wishes, seed, block, support, last + 1 - first, places, material)
    for index in range(first, last + 1):
        _write(folder / AT, json.dumps(index))
        with bounded(seconds):
            network = next(networks)
            if index not in wanted:
                continue
            if isinstance(network, NotMadeError):
                _write(folder / f"{name_of(index)}{REASON}", str(network))
                continue
            try:
                found = generated(network, seed, index)
                own.keep(found)
                _deliver(folder, name_of(index), found.refereed())
            except RefusedError as error:
                _write(folder / f"{name_of(index)}{REASON}", str(error))


def element_types(
    folder: Path, opset: int, operators: tuple[str, ...], journal: Path, whose: str, versions: Mapping[str, str]
) -> dict[str, list[dict[str, str]]]:
    """Ask ONNX Runtime which element types it takes for operators; none of one that ends its process.

    Args:
        folder: Not used.
        opset: Of the operators.
        operators: Which.
        journal: Folder of what was done.
        whose: It is.
        versions: That the answers depend on.

    Returns:
        As of `Probed`.
    """
    support, done = Probed(opset, accepted), Journal(journal, whose)
    for op in operators:
        if op in done:
            support.found[op] = []
            continue
        with done.trying(op):
            support.ask(op)
    return support.found


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
