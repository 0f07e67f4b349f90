"""Who is asked what it takes: ONNX Runtime, TVM, converters, and routes of them to a format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from conrepair.formats.backends.all_backends import BACKENDS, compiles
from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.converters.routes import Route, find_route
from conrepair.ground.runtime.errors import UsageError
from conrepair_lab.cases.case import Array, Case
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
