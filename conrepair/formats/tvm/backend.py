"""Models compiled by Apache TVM."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from conrepair.formats.backends.base import Compiler, Switch
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Array, Runnable
from conrepair.formats.tvm.options import IMPORTER_FORMATS, TvmOptions, read_options
from conrepair.formats.tvm.target import parse_target
from conrepair.ground.runtime.errors import ConfigError, ConversionError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.runtime.processes.reach import CONFINED, GPU, NETWORK


class TvmBackend(Compiler):
    """See `conrepair.formats.backends.base.Compiler`."""

    settings = MappingProxyType({"O0": {"setting": "O0"}, "O3": {"setting": "O3"}})

    def check(self, options: Mapping[str, Any]) -> None:
        """Targets, settings, passes and importers must exist."""
        read_options(options)

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        """The pinned importer's format; else the model's own where TVM reads it or nothing is compiled; else ONNX."""
        known = read_options(options)
        pinned = known.importer
        if known.built is not None:
            return model.framework
        if pinned is not None:
            return pinned
        return model.framework if model.framework in IMPORTER_FORMATS and not _is_script(model) else "onnx"

    def compile(self, model: Model, options: Mapping[str, Any], batch_size: int, folder: Path) -> dict[str, Any]:
        """Build into a folder; with option `check_device`, only if the device is there, which is named then."""
        from conrepair.formats.tvm.build import build, taken
        from conrepair.formats.tvm.target import check_device

        known = read_options(options)
        there = check_device(known.parsed_target.kind, known.device) if options.get("check_device") else None
        made = taken(Path(known.built), folder) if known.built else build(model, known, batch_size, folder)
        return made if there is None else made | {"device": there}

    def reach(self, options: Mapping[str, Any]) -> str:
        """A GPU's target reaches that, a device elsewhere the network."""
        return _reach_of(read_options(options))

    def arithmetic(self, options: Mapping[str, Any]) -> str:
        """A processor computes as its types say; what a GPU or a device elsewhere does, nobody says."""
        return "float32" if self.reach(options) == CONFINED else ""

    def progress(self, options: Mapping[str, Any], folder: Path) -> str:
        """How many candidates of `tuned` were measured."""
        from conrepair.formats.tvm.tuning import trials_done

        done = trials_done(folder)
        return "" if done is None else f"{done} of {read_options(options).trials} trials"

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Load what was built into the folder that option `build` names."""
        from conrepair.formats.tvm.rpc.runnable import RemoteRunnable
        from conrepair.formats.tvm.runnable import TvmRunnable

        if "build" not in options:
            raise ConfigError("TVM runs what it has compiled; compile the model first")
        known, folder = read_options(options), Path(options["build"]["path"])
        if known.device is not None:
            return RemoteRunnable(folder, known.device, known.threads)
        return TvmRunnable(folder, known.threads)

    def switches(self, options: Mapping[str, Any], load: Callable[[Mapping[str, Any]], Runnable]) -> list[Switch]:
        """Applications of passes as they ran, then vectors, then parts of the target."""
        from conrepair.formats.tvm.switches import switches

        record = getattr(load(options), "record", None)
        if record is None:
            raise ConversionError("a build on another machine can't be looked into; build for this one")
        return switches(record, options)

    def without(self, options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """By `left_out`, `vectorize` and `target`."""
        from conrepair.formats.tvm.switches import without

        return without(options, names)

    def capture(self, runnable: Runnable, batches: Iterable[Mapping[str, Array]], count: int, folder: Path) -> None:
        """Each kernel's results, and the operators that it stands for."""
        from conrepair.formats.tvm.capture import capture
        from conrepair.formats.tvm.runnable import TvmRunnable

        if not isinstance(runnable, TvmRunnable):
            raise TypeError("TVM captures what TVM runs")
        capture(runnable, batches, count, folder)


def _is_script(model: Model) -> bool:
    """Whether a model is TorchScript, which torch.export doesn't take."""
    from conrepair.formats.models.detect import is_torchscript

    return model.framework == "torch" and model.factory is None and is_torchscript(Path(model.path))


_RECORD = "build.json"


def _reach_of(options: TvmOptions) -> str:
    """What it takes to compile for a target, and to run what was compiled.

    Args:
        options: Of the build. Where it was made before, its own record says the target: it's a program anyway, and
            all that a file can ask for by this is the GPU.

    Returns:
        One of `conrepair.ground.runtime.processes.reach`.
    """
    if options.device is not None:
        return NETWORK
    try:
        target = options.parsed_target if options.built is None else parse_target(_target_of(Path(options.built)))
    except (OSError, ValueError, KeyError, TypeError, ConfigError):
        return CONFINED  # it's no build, and whoever loads it says so
    return GPU if target.on_gpu else CONFINED


def _target_of(folder: Path) -> str:
    return str(value_of(read_json_text(folder / _RECORD))["options"]["target"])


BACKEND = TvmBackend()
