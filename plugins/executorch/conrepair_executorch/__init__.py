"""ExecuTorch as a plug-in: its programs as a format, whose tensors are seen by debug handles."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from conrepair.plugins import Array, Description, Format, Model, ModelLoadError, Runnable

_MAGIC = b"ET12"


def record_of(path: Path) -> Path:
    """Where a program's ETRecord is, which the exporter writes (`generate_etrecord`)."""
    return path.with_suffix(".etrecord")


class ExecuTorch(Format):
    """A program for phones and boards, made of a program of torch.export."""

    words = "ExecuTorch program (.pte)"
    suffixes = (".pte",)

    def recognizes(self, path: Path) -> bool:
        """By the identifier of its flatbuffer."""
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            return stream.read(8)[4:] == _MAGIC

    def files(self, path: Path) -> Sequence[Path]:
        """Its ETRecord."""
        return [record_of(path)] if record_of(path).is_file() else []

    def lacks(self) -> str:
        """See the base class."""
        return "" if importlib.util.find_spec("executorch") else "pip install executorch"

    def describe(self, model: Model) -> Description:
        """From what the program says of its method `forward`."""
        runnable = self.load(model)
        return Description.counted(
            [], {}, format="ExecuTorch", inputs=runnable.inputs, outputs=runnable.outputs, producer="ExecuTorch"
        )

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """With the kernels and delegates of the installed runtime."""
        from conrepair_executorch.runtime import Program

        if second_opinion:
            raise ModelLoadError("ExecuTorch has one set of kernels.")
        return Program(model)

    def observed(self, model: Model, beside: Model) -> Callable[[Mapping[str, Array]], Mapping[str, Array]]:
        """By the event tracer, which tells operators of the exported program by debug handles."""
        from conrepair_executorch.observing import observed

        return observed(model, beside)


FORMAT = ExecuTorch()
