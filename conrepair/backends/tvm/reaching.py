"""How far a build reaches: a processor, a GPU of this machine, or a device elsewhere."""

from __future__ import annotations

from pathlib import Path

from conrepair.backends.tvm.options import TvmOptions
from conrepair.backends.tvm.target import parse_target
from conrepair.runtime.errors import ConfigError
from conrepair.runtime.json_file import read_json_text, value_of
from conrepair.runtime.reach import CONFINED, GPU, NETWORK

__all__ = ["reach_of_build"]

_RECORD = "build.json"


def reach_of_build(options: TvmOptions) -> str:
    """What it takes to compile for a target, and to run what was compiled.

    Args:
        options: Of the build. Where it was made before, its own record says the target: it's a program anyway, and
            all that a file can ask for by this is the GPU.

    Returns:
        One of `conrepair.runtime.reach`.
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
