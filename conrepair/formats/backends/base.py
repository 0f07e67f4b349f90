"""What a backend is."""

from __future__ import annotations

import abc
import contextlib
import importlib.util
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Array, Runnable
from conrepair.ground.runtime.errors import ConfigError, DeviceError
from conrepair.ground.runtime.processes.reach import CONFINED, GPU
from conrepair.ground.runtime.words import meant

CUDA = "cuda"
"""What option `device` calls a GPU of NVIDIA's."""

_LISTED = 80
_REASON = 200


@dataclass(frozen=True)
class Switch:
    """Something that a backend does, and can be told to leave out.

    Attributes:
        name: The library's ("DivMulFusion"), with its count where it's done several times ("FuseOps#1").
        sort: "pass", "application" (one time that a pass ran), "option" or "arithmetic" (how numbers are computed).
        line: The line by which a person switches it off without conrepair.
    """

    name: str
    sort: str
    line: str


def named_rightly(option: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise a ConfigError where an option names what there isn't, with what may be meant."""
    for name in names:
        if name not in known:
            hint = meant(name, known, f"known: {', '.join(islice(known, _LISTED))}")
            raise ConfigError(f"{option}: there is no '{name}'{hint}")


def no_device(kind: str, library: str, why: str = "") -> DeviceError:
    """What to raise where a device isn't there that something should run on.

    Args:
        kind: Of the device.
        library: That should reach it.
        why: It doesn't, in its own words.
    """
    reason = f" ({' '.join(why.split())[:_REASON]})" if why else ""
    return DeviceError(
        f"there is no {kind} device here that {library} can reach{reason}. `conrepair doctor` lists the devices."
    )


def _is_there(module: str) -> bool:
    with contextlib.suppress(ModuleNotFoundError):  # of what it's in
        return importlib.util.find_spec(module) is not None
    return False


class Backend(abc.ABC):
    """A place where models run; each module of this room has one as `BACKEND`.

    Attributes:
        packages: Of a plug-in: whose kernels run, as package indices call them, and what else its programs need, with
            the module of each. The first one's other releases can be run, where there are programs.
        runs: The only format that it's given, of files of that format alone; "" where `takes` and `refuses` say it.
        narrowed: Element types that it computes in a narrower one whatever it's told: campaigns don't judge them.
        seconds: How long a small network takes to load and run, in times of ONNX Runtime's: campaigns deal by it.
    """

    packages: Mapping[str, str] = MappingProxyType({})
    runs: str = ""
    settings: Mapping[str, Mapping[str, Any]] = MappingProxyType({"": MappingProxyType({})})
    narrowed: frozenset[str] = frozenset()
    seconds: int = 5

    def program(self, options: Mapping[str, Any]) -> str:
        """Python that does the same without conrepair, for programs that findings have; "" for none.

        Args:
            options: The backend's own.

        Returns:
            What loads a model that lies in the current folder ("model.onnx", "model.pt2"), and defines
            `compute(feeds)`: arrays by outputs' names, of arrays by inputs' names. `numpy` is imported.
        """
        return ""

    def lacks(self) -> str:
        """What of `packages` isn't installed, with the command that brings it; "" for nothing."""
        missing = [name for name, module in self.packages.items() if not _is_there(module)]
        return f"pip install {' '.join(missing)}" if missing else ""

    def refuses(self, model: Model) -> str | None:
        """Say why this backend can't run the model, or None when it can: what it doesn't take is converted."""
        other = self.runs not in {"", model.framework}
        return f"{type(self).__name__} doesn't run {model.framework} models" if other else None

    @abc.abstractmethod
    def check(self, options: Mapping[str, Any]) -> None:
        """Make sure that the options exist.

        Raises:
            ConfigError: if one doesn't; says which there are.
        """

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        """The format in which this backend wants the model: its own, or one that it must be converted to first.

        Converting is the caller's, as backends know no converters.
        """
        return self.runs or model.framework

    def environment(self, options: Mapping[str, Any]) -> Mapping[str, str]:
        """Variables that a process must be started with that runs models with these options."""
        return {}

    def switches(self, options: Mapping[str, Any], load: Callable[[Mapping[str, Any]], Runnable]) -> list[Switch]:
        """What may still be left out with these options, in the order in which it's done.

        Args:
            options: The backend's own.
            load: Compiles and loads the model in question with options, for backends that have to look at it.
        """
        return []

    def listing(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Those that `switches` loads with, whose `environment` its process needs."""
        return dict(options)

    def without(self, options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """Options that leave out some of `switches` besides."""
        return dict(options)

    def reach(self, options: Mapping[str, Any]) -> str:
        """How far workers have to reach that compile with these options, or run models: option `device` says it.

        Args:
            options: The backend's own.

        Returns:
            One of `conrepair.ground.runtime.processes.reach`.
        """
        return GPU if options.get("device") == CUDA else CONFINED

    def arithmetic(self, options: Mapping[str, Any]) -> str:
        """What models are computed in (`conrepair.verdicts.judging.arithmetic`); "" where nobody says.

        Args:
            options: The backend's own.
        """
        return "tf32" if options.get("device") == CUDA and options.get("tf32") else "float32"

    def observed(
        self, model: Model, options: Mapping[str, Any]
    ) -> Callable[[Mapping[str, Array]], Mapping[str, Array]] | None:
        """What runs a model and gives tensors on the way by the names that the model has for them, outputs too.

        None: they're marked as outputs of a copy, where it's an ONNX file.
        """
        return None

    def observes(self, model: Model, options: Mapping[str, Any]) -> bool:
        """Whether tensors on the way can be seen: by `observed`, or as outputs of an ONNX file."""
        return type(self).observed is not Backend.observed or self.takes(model, options) == "onnx"

    @abc.abstractmethod
    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Make the model ready to run.

        Args:
            model: What to run, in the format that `takes` names.
            options: The backend's own, as the configuration gives them; a compiler's with "build", whose "path" is
                the folder that `compile` wrote.

        Raises:
            ModelLoadError: if it can't be loaded.
            DeviceError: if it should run on a device that isn't there.
        """


class Compiler(Backend):
    """A backend that runs what it has compiled."""

    @abc.abstractmethod
    def compile(self, model: Model, options: Mapping[str, Any], batch_size: int, folder: Path) -> dict[str, Any]:
        """Compile a model.

        Args:
            model: In the format that `takes` names.
            options: The backend's own.
            batch_size: For models that leave it open: compiled code has definite sizes.
            folder: Receives everything that `load` needs.

        Returns:
            What was done, JSON-able.

        Raises:
            ConversionError: if the model can't be compiled; names the operator where that's the reason.
            DeviceError: if option "check_device" is set, and the device isn't there.
        """

    @abc.abstractmethod
    def progress(self, options: Mapping[str, Any], folder: Path) -> str:
        """The progress of a compilation, in words, where it takes long and leaves traces; else "".

        Args:
            options: The backend's own.
            folder: Of `compile`, which another process runs.
        """

    @abc.abstractmethod
    def capture(self, runnable: Runnable, batches: Iterable[Mapping[str, Array]], count: int, folder: Path) -> None:
        """Write what each kernel computes.

        Args:
            runnable: From `load`; not run by others meanwhile.
            batches: Feeds.
            count: How many there are.
            folder: Receives a list of the kernels, and their results.

        Raises:
            ModelLoadError: if what was built doesn't say which kernels it calls.
            InferenceError: if one fails.
        """
