"""Which compiler makes a library of what TVM generates: this machine's, a cross-compiler, or the device's own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from conrepair.backends.tvm.options import TvmOptions
from conrepair.runtime.errors import ConversionError

__all__ = ["Linking", "linking_for"]

_COMPILERS = ("g++", "clang++", "c++", "gcc", "clang")
_TRIPLE = "mtriple"


@dataclass(frozen=True)
class Linking:
    """How a library is made.

    Attributes:
        library: Name of the file. Objects in a tar file are linked where they're loaded.
        linker: The cross-compiler; None: this machine's compiler, where one is needed.
    """

    library: str = "module.so"
    linker: str | None = None

    def compile(self) -> Callable[..., Any] | None:
        """What `Executable.export_library` takes; None: its own choice for the file's name."""
        if self.linker is None:
            return None
        from tvm.support import cc

        made: Callable[..., Any] = cc.cross_compiler(self.linker)
        return made


def linking_for(options: TvmOptions) -> Linking:
    """Who links for a device.

    Raises:
        ConversionError: if there's no such compiler.
    """
    device = options.device
    if device is not None and device.linker is not None:
        if shutil.which(device.linker) is None:
            raise ConversionError(
                f"{device}: its `linker` {device.linker} isn't on the path. Install it, or leave it out: then the "
                "device links with its own compiler."
            )
        return Linking(linker=device.linker)
    other = {_TRIPLE} & {*options.parsed_target.attributes, *options.host_target.attributes}
    if device is not None and other:
        return Linking("module.tar")
    if not any(map(shutil.which, _COMPILERS)):
        raise ConversionError(
            f"TVM links its code with a C++ compiler, and none is on the path ({', '.join(_COMPILERS)}). Install g++."
        )
    return Linking()
