"""A backend that a plug-in brings, as a system: its settings, switches and programs are the plug-in's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx

from conrepair.formats.backends.all_backends import backend
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.ground.runtime.errors import ConfigError, ConversionError, UsageError
from conrepair.verdicts.truth.widening import types_of
from conrepair_lab.systems.system import Program, Setting, System, through_conrepair

_USUAL = "usual"
_JUDGED = "float32"  # the arithmetic whose rounding error is known here
_HEAD = "import numpy\n"
_RUN = """\
with numpy.load("inputs.npz") as inputs:
    numpy.savez("outputs.npz", **compute(dict(inputs)))
"""


class Plugged(System):
    """See `System`.

    Args:
        name: Of the plug-in's backend.
        files: What programs call models, by format.

    Attributes:
        lacks: What isn't installed that it needs, with the command that brings it.

    Raises:
        UsageError: if it can't be one.
    """

    alike = True

    def __init__(self, name: str, files: Mapping[str, str]) -> None:
        self._backend, self.name, self.lacks = backend(name), name, backend(name).lacks()
        options = {key or _USUAL: each for key, each in self._backend.settings.items()}
        self.settings = {
            key: Setting(name, each) for key, each in options.items() if self._backend.arithmetic(each) == _JUDGED
        }
        if not self.settings:
            computes = {self._backend.arithmetic(each) or "no known type" for each in options.values()}
            raise UsageError(
                f"{name} computes in {', '.join(sorted(computes))}, and rounding error is judged of {_JUDGED}. Its "
                "plug-in can name a setting that does (docs/plugins.md)."
            )
        self.plain, self.usual = next(iter(self.settings)), list(self.settings)[-1]
        self.format = self._backend.takes(Model(System.format, "", ""), self.settings[self.plain].options)
        self.packages, self.seconds = tuple(self._backend.packages), self._backend.seconds
        programs = bool(self._backend.program(self.settings[self.plain].options))
        self._begins = self.format if programs else System.format
        self.file = files.get(self._begins, f"model.{self._begins}")

    def __reduce__(self) -> tuple[type[Plugged], tuple[str, Mapping[str, str]]]:
        return Plugged, (self.name, {self._begins: self.file})

    def converted(self, model: Model, setting: Setting, folder: Path) -> Model:
        """See `System`; what is computed in a narrower type than it's in isn't taken."""
        proto = read_proto(Path(model.path))
        there = {onnx.helper.tensor_dtype_to_np_dtype(kind).name for kind in types_of(proto).values() if kind}
        if narrowed := sorted(self._backend.narrowed & there):
            raise ConversionError(f"{self.name} computes {', '.join(narrowed)} in a narrower type")
        try:
            return super().converted(model, setting, folder)
        except Exception as error:  # noqa: BLE001
            # Without its cause: what a converter stumbles over is looked for by systems of converters.
            raise ConversionError(str(error)) from None

    def threads(self, setting: Setting) -> bool:
        """Whether the backend has an option of that name."""
        try:
            self._backend.check({**setting.options, "threads": 1})
        except ConfigError:
            return False
        return True

    def distribution(self, setting: Setting) -> str:
        """The first package of the plug-in's, where it has programs."""
        return next(iter(self.packages), "") if self._backend.program(setting.options) else ""

    def programmed(self, model: Model, setting: Setting, folder: Path) -> Model:
        """See `System`; conrepair's own call begins with the ONNX file."""
        return self.converted(model, setting, folder) if self._begins == self.format else model

    def program(self, setting: Setting) -> Program:
        """The model run as the plug-in says, else by conrepair's own call."""
        if own := self._backend.program(setting.options):
            return Program(_HEAD + own + "\n", _RUN)
        name = next(key for key, known in self.settings.items() if known.backend == setting.backend)
        return through_conrepair(f"{self.name}-{name}", setting)
