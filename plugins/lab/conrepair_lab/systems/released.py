"""A system in another release of its library, in an environment and a process of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.formats.backends.base import Switch
from conrepair.formats.models.identity import copy_model
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Array, Runnable
from conrepair.formats.onnx.load.file import specs_of_proto
from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.ground.data.stored_values import fileable
from conrepair.ground.data.tensor_spec import numpy_dtype
from conrepair.ground.runtime.errors import ConversionError, UsageError
from conrepair.ground.runtime.outside.environments import Environment
from conrepair.ground.runtime.outside.releases import release
from conrepair.ground.runtime.outside.scripts import Script
from conrepair_lab.systems import program_script
from conrepair_lab.systems.system import Setting, System

_PROGRAM = program_script.PROGRAM


def _as_here(name: str) -> Any:
    """A method that does what that of the release does that's installed here."""
    return lambda self, *given: getattr(self._system, name)(*given)


class Released(System):
    """See `System`; what's run is the program of another system's setting.

    Args:
        system: Which.
        version: Of the library that a setting is of (`System.distribution`).
    """

    cost, program, sized, symbolic = map(_as_here, ("cost", "program", "sized", "symbolic"))
    drawn, with_drawn, without = map(_as_here, ("drawn", "with_drawn", "without"))

    def __init__(self, system: System, version: str) -> None:
        self._system, self._version = system, version
        self.name, self.format, self.file = system.name, system.format, system.file
        self.settings, self.plain, self.usual = system.settings, system.plain, system.usual
        self.seconds, self.kernels, self.alike = system.seconds, system.kernels, system.alike

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._system, self._version)

    def within(self, setting: Setting) -> Environment:
        """The environment that a setting runs in.

        Raises:
            UsageError: if it can't be run in another release.
        """
        distribution = self._system.distribution(setting)
        if not distribution:
            raise UsageError(
                f"this setting of {self.name} can't be run in other releases: programs of it need what's installed "
                f"here. Take another setting, or leave out @{self._version}."
            )
        return release(distribution, self._version)

    def plain_beside(self, setting: Setting) -> Setting | None:
        """As in the release that's installed here, where programs say it: to convert nothing has no releases."""
        plain = super().plain_beside(setting)
        return plain if plain is not None and self._system.distribution(plain) else None

    def needs(self, setting: Setting) -> frozenset[str]:
        """Of this process, nothing but what cases need; and the release's own."""
        return frozenset({self.format, self.within(setting).name})

    def blamed(self, setting: Setting, versions: Mapping[str, str]) -> dict[str, str]:
        """The release."""
        return {self._system.distribution(setting): self._version}

    def switches(self, model: Model, setting: Setting, folder: Path, *, gradients: bool = False) -> Sequence[Switch]:
        """Those of this release by name; where the backend has to see the model, what ran in the other one."""
        return type(self._system).switches(self, model, setting, folder, gradients=gradients)

    def converted(self, model: Model, setting: Setting, folder: Path) -> Model:
        """The model as it is: programs convert it."""
        return model

    def loaded(self, there: Model, setting: Setting, folder: Path) -> Runnable:
        """Load it in the environment's process, which is this one's own and stays.

        Raises:
            ConversionError: if inputs are texts, which programs can't be fed.
            ToolError: if the library raises.
        """
        room = Path(tempfile.mkdtemp(dir=folder))
        copy_model(Path(self._system.programmed(there, setting, folder).path), room / self.file)
        (room / _PROGRAM).write_text(self.program(setting).module, encoding="utf-8")
        return _Elsewhere(_process(self.within(setting)), there, room)


class _Elsewhere(Runnable):
    """A model that another process runs.

    Attributes:
        record: What the program tells of it.
    """

    def __init__(self, process: Script, model: Model, room: Path) -> None:
        self.inputs, self.outputs = specs_of_proto(read_proto(Path(model.path)))
        for spec in self.inputs:
            if numpy_dtype(spec.dtype).hasobject:
                raise ConversionError(f"input {spec.name}: programs aren't fed {spec.dtype}")
        self._process, self._room = process, room
        self.record = process.call("load", {"folder": str(room)})

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        plain = {name: fileable(array) for name, array in feeds.items()}
        np.savez(self._room / "inputs.npz", allow_pickle=False, **plain)
        self._process.call("run", {"folder": str(self._room)})
        types = {spec.name: numpy_dtype(spec.dtype) for spec in self.outputs}
        with np.load(self._room / "outputs.npz") as outputs:
            return {
                name: array.view(types[name]) if array.dtype.kind == "V" else array for name, array in outputs.items()
            }


_processes: dict[tuple[str, int], Script] = {}


def _process(within: Environment) -> Script:
    """Of this process: one that is a copy of another has none yet."""
    key = within.key, os.getpid()
    if key not in _processes or not _processes[key].alive:
        room = Path(tempfile.mkdtemp())
        _processes[key] = Script(Path(program_script.__file__), room, what=within.name, within=within)
    return _processes[key]
