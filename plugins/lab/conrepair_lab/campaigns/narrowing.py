"""What a target takes, operator by operator: asked in workers, and kept in the user's cache by its version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from conrepair.application.engine.problems import problem_of_failure
from conrepair.application.engine.session import Session
from conrepair.application.engine.task import Result, Task
from conrepair.formats.backends.all_backends import BACKENDS, compiles
from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.converters.routes import Route, find_route
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.processes.workers import ENDED
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.generate.checks import check_wishes
from conrepair_lab.generate.generated import versions
from conrepair_lab.generate.narrowing.table import Acceptance, NarrowingRow, taken_of
from conrepair_lab.generate.wishes import Wishes
from conrepair_lab.systems.converters import SYSTEM, through
from conrepair_lab.systems.system import Setting

_RUNTIME = "onnxruntime"
_COMPILERS = tuple(name for name in BACKENDS.own if compiles(name))
_FORMATS = ("keras", "torch", "tflite")


@dataclass(frozen=True)
class NarrowingTarget:
    """One that takes ONNX models.

    Attributes:
        name: As it's asked for.
        setting: By which it's given a model.
    """

    name: str
    setting: Setting

    @property
    def needs(self) -> frozenset[str]:
        """Frameworks that it imports."""
        return SYSTEM.needs(self.setting)

    @property
    def runs(self) -> bool:
        """Whether it's the runtime that computes networks: it's asked what it takes of the whole standard."""
        return self.name == _RUNTIME

    def versions(self) -> dict[str, str]:
        """What its answers depend on besides code and libraries that are installed here."""
        return {
            name: version for step in SYSTEM.route(self.setting).steps for name, version in step.versions().items()
        }

    def take(self, model: onnx.ModelProto, feeds: Mapping[str, Array], folder: Path) -> None:
        """Have it take a model: convert it, compile it, or run it.

        Args:
            model: Of one operator.
            feeds: By input.
            folder: For its files.

        Raises:
            Exception: of whatever class, if it doesn't take it.
        """
        there = Case.of(model, feeds).file(folder)
        if self.setting.route:
            SYSTEM.converted(there, self.setting, folder)
            return
        runnable = SYSTEM.open(there, self.setting, folder)
        if self.runs:
            runnable.run(feeds)


def target(name: str) -> NarrowingTarget:
    """The one of that name.

    Raises:
        UsageError: if there's none.
    """
    if name not in TARGETS:
        raise UsageError(f"there is no target {name!r} for support; known: {', '.join(TARGETS)}")
    if name == _RUNTIME:
        return NarrowingTarget(name, SYSTEM.settings[SYSTEM.plain])
    if name in _COMPILERS:
        return NarrowingTarget(name, Setting(name))
    return NarrowingTarget(
        name, through(find_route("onnx", name) if name in _FORMATS else Route((CONVERTERS[name],)))
    )


TARGETS = (_RUNTIME, *_COMPILERS, *_FORMATS, *(item.name for item in CONVERTERS.values() if item.source == "onnx"))
"""Names of those that can be asked."""


_ASKING = "element_types"
"""Kind of the job that asks ONNX Runtime which element types it takes."""

_KIND = "narrow"
_Types = dict[str, list[dict[str, str]]]
_SETTINGS = 100
_START = 300.0  # more seconds for a job than for its settings, each of which has a limit of its own


def element_types(wishes: Wishes) -> dict[str, list[dict[str, str]]]:
    """The element types with which ONNX Runtime takes operators; what it said before is in the user's cache.

    Raises:
        ConrepairError: if it can't be asked.
    """
    with Session(keeps=True) as session:
        return session.made(_asking(wishes)).read(_Types)


def _asking(wishes: Wishes) -> Task:
    """Ask ONNX Runtime which element types it takes."""
    payload = {"opset": wishes.opset, "operators": wishes.names, "versions": versions()}
    return Task(_ASKING, _ASKING, lambda _: payload, needs=frozenset({"onnx"}), continues=True)


def support_of(
    name: str,
    operators: Collection[str] = (),
    opset: int = 20,
    *,
    seconds: float = 20.0,
    display: ProgressDisplay | None = None,
) -> dict[str, Acceptance]:
    """What a target takes of some operators.

    Args:
        name: Of the target, one of `TARGETS`.
        operators: All that there are specifications of for none.
        opset: Of the standard's operators.
        seconds: That one model may take.
        display: Shows progress.

    Returns:
        By operator.

    Raises:
        UsageError: if there's no such target, operator or opset.
        ConrepairError: if it can't be asked, as a library isn't there.
    """
    asked = target(name)
    wishes = Wishes(operators=tuple(operators), opset=opset)
    check_wishes(wishes)
    before = [] if asked.runs else [_asking(wishes)]
    tasks = [*before, *(_task(asked, op, opset, seconds, before) for op in wishes.names)]
    with Session(keeps=True) as session:
        results = session.results(tasks, f"ask {name}", display or ProgressDisplay(quiet=True))
    for item in tasks:
        failure = results[item.name].failure
        if failure is not None and (item.kind == _ASKING or failure.kind not in ENDED):
            raise problem_of_failure(failure).as_error(f"ask {name}")
    return {op: _found(results[op]) for op in wishes.names}


def _task(asked: NarrowingTarget, op: str, opset: int, seconds: float, before: Collection[Task]) -> Task:
    payload = {"target": asked.name, "op": op, "opset": opset, "seconds": seconds}
    payload["versions"] = {**versions(), **asked.versions()}

    def whole(entries: Mapping[str, Any]) -> dict[str, Any]:
        known = {op: entries[_ASKING].read(_Types)[op]} if before else None
        return payload | {"types": known}

    return Task(
        op,
        _KIND,
        whole,
        depends=(_ASKING,) if before else (),
        needs=asked.needs,
        timeout=_SETTINGS * seconds + _START,
        keep_stopped=True,
        continues=True,
    )


def _found(result: Result) -> Acceptance:
    if result.entry is None:  # it ends one worker after the other
        return Acceptance(0, 0, refusals={str(result.failure): 1})
    return taken_of(result.entry.read(tuple[NarrowingRow, ...]))
