"""Who is asked what it takes: ONNX Runtime, TVM, converters, and routes of them to a format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.backends.all_backends import COMPILERS
from conrepair.converters.all_converters import CONVERTERS
from conrepair.converters.base import Converter
from conrepair.converters.routes import Route, find_route
from conrepair.engine.fingerprint import code_fingerprint, library_versions
from conrepair.frameworks.model import Model
from conrepair.runtime.errors import UsageError

_RUNTIME = "onnxruntime"
_FORMATS = ("keras", "torch", "tflite")
_FILE = "model.onnx"


@dataclass(frozen=True)
class NarrowingTarget:
    """One that takes ONNX models.

    Attributes:
        name: As it's asked for.
        steps: Converters, one behind the other; none for what runs or compiles the model itself.
    """

    name: str
    steps: tuple[Converter, ...] = ()

    @property
    def needs(self) -> frozenset[str]:
        """Frameworks that it imports."""
        return frozenset({"onnx"}).union(*(step.needs for step in self.steps))

    @property
    def runs(self) -> bool:
        """Whether it's the runtime that computes networks: it's asked what it takes of the whole standard."""
        return self.name == _RUNTIME

    def versions(self) -> dict[str, str]:
        """What its answers depend on."""
        if self.steps:
            return {
                "code": code_fingerprint("convert"),
                **{k: v for step in self.steps for k, v in step.versions().items()},
            }
        names = ("onnxruntime", "onnx") if self.runs else ("apache-tvm", "onnx")
        found = {name: library_versions().get(name, "missing") for name in names}
        return found if self.runs else {"code": code_fingerprint("compile"), **found}

    def take(self, model: Any, feeds: Mapping[str, Any], folder: Path) -> None:
        """Have it take a model.

        Args:
            model: The `onnx.ModelProto`.
            feeds: By input.
            folder: For its files.

        Raises:
            Exception: of whatever class, if it doesn't take it.
        """
        from conrepair.generate.running import run

        if self.runs:
            run(model, feeds, [value.name for value in model.graph.output])
            return
        path = folder / _FILE
        path.write_bytes(model.SerializeToString())
        there = Model("onnx", str(path), sha256="")
        if self.steps:
            Route(self.steps).convert(there, folder)
        else:
            COMPILERS[self.name].compile(there, {}, 1, folder)


def target(name: str) -> NarrowingTarget:
    """The one of that name.

    Raises:
        UsageError: if there's none.
    """
    if name == _RUNTIME or name in COMPILERS:
        return NarrowingTarget(name)
    if name in _FORMATS:
        return NarrowingTarget(name, find_route("onnx", name).steps)
    found = CONVERTERS.get(name)
    if found is not None and found.source == "onnx":
        return NarrowingTarget(name, (found,))
    raise UsageError(f"nobody called {name!r} can be asked what it takes; known: {', '.join(TARGETS)}")


TARGETS = (
    _RUNTIME,
    *COMPILERS,
    *_FORMATS,
    *(item.name for item in CONVERTERS.values() if item.source == "onnx"),
)
"""Names of those that can be asked."""
