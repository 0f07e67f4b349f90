"""ExecuTorch as a plug-in: its programs as a format, whose tensors are seen by debug handles, and as a backend."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from conrepair.plugins import (
    Array,
    Backend,
    ConfigError,
    Description,
    Format,
    Model,
    ModelLoadError,
    Runnable,
    Switch,
)

_MAGIC = b"ET12"
_XNNPACK = {"delegate": "xnnpack"}
_PROGRAM = """\
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings import portable_lib

lowered = to_edge_transform_and_lower(torch.export.load("model.pt2"), partitioner=[{partitioner}])
buffer = lowered.to_executorch().buffer
module = portable_lib._load_for_executorch_from_buffer(buffer)


def compute(feeds):
    found = module.forward([torch.from_numpy(array) for array in feeds.values()])
    return {{f"output_{{place}}": numpy.array(item) for place, item in enumerate(found)}}
"""


def _lacks() -> str:
    return "" if importlib.util.find_spec("executorch") else "pip install executorch"


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
        return _lacks()

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


class ExecuTorchBackend(Backend):
    """Models that are lowered and run: by portable kernels, or as far as it takes them by option `delegate`."""

    packages: Mapping[str, str] = {"executorch": "executorch.exir"}
    settings: Mapping[str, Mapping[str, Any]] = {"portable": {}, "xnnpack": _XNNPACK}
    seconds = 50

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse options that there aren't."""
        if options and options != _XNNPACK:
            raise ConfigError(f"executorch has one option, delegate=xnnpack, and is given {dict(options)}")

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        """Programs of torch.export."""
        return "torch"

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Lower a program."""
        from conrepair_executorch.lowering import Lowered

        return Lowered(model, options)

    def switches(self, options: Mapping[str, Any], load: Callable[[Mapping[str, Any]], Runnable]) -> list[Switch]:
        """The delegate of the options."""
        line = "leave XnnpackPartitioner() out of those that to_edge_transform_and_lower is given"
        return [Switch("xnnpack", "option", line)] if options else []

    def without(self, options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """By portable kernels alone."""
        return {} if names else dict(options)

    def program(self, options: Mapping[str, Any]) -> str:
        """The same of a model by ExecuTorch alone."""
        return _PROGRAM.format(partitioner="XnnpackPartitioner()" if options else "")


FORMAT, BACKEND = ExecuTorch(), ExecuTorchBackend()
