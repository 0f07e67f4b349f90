"""Accuracy tables: one job for each system and element type."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from conrepair.application.engine.session import Session
from conrepair.application.engine.task import Task
from conrepair.formats.backends.base import named_rightly
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.gpu_devices import gpu_devices
from conrepair.ground.runtime.processes.reach import GPU
from conrepair_lab.accuracy.measured import Measured
from conrepair_lab.accuracy.operators.all_operators import FAMILIES
from conrepair_lab.options.trace import Accuracy
from conrepair_lab.systems.registry import SYSTEMS, Entry, installed

_TYPES = ("float32",)


@dataclass(frozen=True)
class Tables:
    """What was measured.

    Attributes:
        measured: Of each system, element type and operator.
        seconds: That each took, by system and element type.
        missing: Systems that couldn't be measured, and why.
    """

    measured: tuple[Measured, ...]
    seconds: dict[str, float]
    missing: dict[str, str]


def measure_systems(asked: Accuracy, session: Session) -> Tables:
    """Measure systems.

    Args:
        asked: Which, and what of them.
        session: Where jobs run.

    Raises:
        UsageError: for a system that doesn't exist.
        ConfigError: for an operator that isn't measured.
    """
    known = {case.operator.split()[0] for cases in FAMILIES.values() for case in cases}
    named_rightly("operator", asked.operators, known)
    names = asked.systems or tuple(
        system for name, item in SYSTEMS.items() if item.kernels and not item.lacks for system in _usual(name)
    )
    measured: list[Measured] = []
    seconds, missing = {}, {}
    for name, dtype in itertools.product(names, asked.dtypes or _TYPES):
        found = installed(name)
        payload = {"name": found.name, "dtype": dtype, "operators": asked.operators}
        task = Task(
            f"accuracy of {found.name} {dtype}",
            "accuracy",
            lambda _, payload=payload: payload,  # type: ignore[misc]
            needs=found.runs.needs(found.chosen),
            timeout=asked.timeout,
            device=found.chosen.reach,
            environment=found.runs.environment(found.chosen),
        )
        label = found.name if dtype == "float32" else f"{found.name} {dtype}"
        try:
            rows, took = session.made(task).read(tuple[tuple[Measured, ...], float])
        except ConrepairError as error:
            missing[label] = str(error)
        else:
            measured += rows
            seconds[label] = took
    return Tables(tuple(measured), seconds, missing)


def _usual(system: str) -> tuple[str, ...]:
    """A system with most left out, as usual, and as it runs on this machine's GPU."""
    found = installed(system)
    on_gpu = (Entry(system, name) for name, setting in found.runs.settings.items() if setting.reach == GPU)
    return tuple(dict.fromkeys(item.name for item in (found.plain, found, *(on_gpu if gpu_devices() else ()))))
