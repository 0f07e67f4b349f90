"""Generated networks in other formats: converted in workers, and compared with what they compute as ONNX."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.application.engine.job_table import reach_of
from conrepair.application.engine.problems import problem_of_failure
from conrepair.application.engine.side_by_side import run_side_by_side
from conrepair.formats.converters.routes import find_route
from conrepair.formats.models.formats import framework_needs
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.files.whole import make_folder
from conrepair.ground.runtime.processes.executor import Executor
from conrepair.ground.runtime.processes.workers import Failure, Job, Outcome
from conrepair_lab.campaigns.network_folder import NetworkFolder, name_of, read_about
from conrepair_lab.generate.generated import INPUTS, MODEL, OUTPUTS
from conrepair_lab.generate.judging import difference, verdict_of
from conrepair_lab.systems.converters import SYSTEM, through

_KIND = "convert_network"
_IMPORTS = 120.0  # more seconds, as a worker imports frameworks with its first
_OURS = {"storage", "changed", "library"}  # failures that no network is to blame for
_NAMES = {"tensorflow": "savedmodel"}


def missing_conversions(folder: NetworkFolder, formats: tuple[str, ...]) -> list[tuple[int, str]]:
    """Networks, by their numbers, with a format that isn't there yet.

    Args:
        folder: Of the networks.
        formats: That are wanted.
    """
    every = itertools.product(formats, sorted(folder.made))
    return [(index, name) for name, index in every if name not in folder.conversions.get(index, {})]


def convert_networks(
    folder: NetworkFolder,
    formats: tuple[str, ...],
    workers: Executor,
    work: Path,
    timeout: float,
    meanwhile: Callable[[], None],
    advance: Callable[[], None],
) -> None:
    """Convert what isn't converted yet; a network that can't be is told so and no failure.

    Args:
        folder: Of the networks.
        formats: That are wanted.
        workers: Where.
        work: Folder that workers write in.
        timeout: Seconds for each.
        meanwhile: Called some ten times a second.
        advance: Called for each.

    Raises:
        ConrepairError: if a library isn't there, or the disk is full.
    """
    needs = {name: _needs(name) for name in formats}

    def jobs() -> Iterator[Job]:
        for index, name in missing_conversions(folder, formats):
            network, place = folder.root / name_of(index), work / f"{name}-{index}"
            make_folder(place)
            coarsest = read_about(network)["coarsest"]
            payload = {"network": network, "target": name, "coarsest": coarsest}
            yield Job(_KIND, payload, place, needs[name], timeout + _IMPORTS, reach_of(_KIND))

    def ended(job: Job, outcome: Outcome) -> None:
        index, name = int(job.payload["network"].name), job.payload["target"]
        if isinstance(outcome, Failure):
            if outcome.kind in _OURS:
                raise problem_of_failure(outcome).as_error(name)
            folder.keep_conversion(index, name, {"verdict": "failed", "reason": _reason(outcome, job)}, None)
        else:
            told: dict[str, Any] = dict(outcome.value)
            made = job.folder / told["file"]
            own = made.with_name(f"{_NAMES.get(name, 'model')}{made.suffix}")
            made.rename(own)
            folder.keep_conversion(index, name, told | {"file": own.name}, own)
        shutil.rmtree(job.folder, ignore_errors=True)
        advance()

    run_side_by_side(workers, jobs(), ended, meanwhile)


def _needs(name: str) -> frozenset[str]:
    """What is imported to make a format."""
    steps = find_route("onnx", name).steps
    return framework_needs(name).union(*(step.needs for step in steps))


def _reason(failure: Failure, job: Job) -> str:
    """Why it failed, without what differs from network to network."""
    return str(failure).replace(str(job.folder), "").replace(f"{job.payload['network']}/", "")


def convert_network(folder: Path, network: Path, target: str, coarsest: str) -> dict[str, Any]:
    """Convert a generated network, and compare what the result computes.

    Args:
        folder: Receives the model.
        network: Its folder.
        target: The format.
        coarsest: As `difference` wants it.

    Returns:
        "route"; "file" (below the folder); "verdict": "same", or "differs" with the fields of `ResultDifference`.

    Raises:
        ConrepairError: if it can't be converted, or the result can't be run.
    """
    here = Model("onnx", str(network / MODEL), model_sha256(network / MODEL))
    route = find_route("onnx", target, model=here)
    setting = through(route)
    runnable = SYSTEM.open(here, setting, folder)
    inputs = _arrays(network / INPUTS)
    found = runnable.run({spec.name: inputs[spec.name] for spec in runnable.inputs})
    made = Path(SYSTEM.converted(here, setting, folder).path)
    verdict = verdict_of(difference(_arrays(network / OUTPUTS), found, coarsest))
    return {"route": route.name, "file": made.relative_to(folder).as_posix(), **verdict}


def _arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    with np.load(path, allow_pickle=False) as read:
        return dict(read)
