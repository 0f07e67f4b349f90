"""What a backend is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from conrepair.frameworks.model import Model
from conrepair.frameworks.runnable import Array, Runnable

__all__ = ["Backend", "Compiler"]


class Backend(Protocol):
    """A place where models run; each module of this room has one as `BACKEND`."""

    def refuses(self, model: Model) -> str | None:
        """Say why this backend can't run the model, or None when it can."""

    def check(self, options: Mapping[str, Any]) -> None:
        """Make sure that the options exist.

        Raises:
            ConfigError: if one doesn't; says which there are.
        """

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        """The format in which this backend wants the model: its own, or one that it must be converted to first.

        Converting is the caller's, as backends know no converters.
        """

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Make the model ready to run.

        Args:
            model: What to run, in the format that `takes` names.
            options: The backend's own, as the configuration gives them; a compiler's with "build", whose "path" is
                the folder that `compile` wrote.

        Raises:
            ModelLoadError: if it can't be loaded.
        """


class Compiler(Backend, Protocol):
    """A backend that runs what it has compiled."""

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

    def reach(self, options: Mapping[str, Any]) -> str:
        """How far workers have to reach that compile with these options, and run what was compiled.

        Args:
            options: The backend's own.

        Returns:
            One of `conrepair.runtime.reach`.
        """

    def progress(self, options: Mapping[str, Any], folder: Path) -> str:
        """How far a compilation is, for a person, where it takes long and leaves traces; else "".

        Args:
            options: The backend's own.
            folder: Of `compile`, which another process runs.
        """

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
