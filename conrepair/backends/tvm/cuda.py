"""CUDA code without a GPU: compiled by nvcc for a named architecture, and not run."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
from pathlib import Path
from typing import Any

from conrepair.backends.tvm.target import TargetText
from conrepair.runtime.errors import ConfigError, ConversionError

__all__ = ["CUBIN", "check_architecture", "compile_source", "find_compiler"]

CUBIN = "device.cubin"
_SOURCE = "device.cu"
_COMPILER, _DISTRIBUTION = "nvcc", "nvidia-cuda-nvcc"
_WORDS = 400


def check_architecture(target: TargetText) -> None:
    """Make sure that an architecture is named where no GPU says it: TVM would take one that nvcc no longer knows.

    Raises:
        ConfigError: if not.
    """
    import tvm

    if target.kind == "cuda" and "arch" not in target.attributes and not tvm.cuda(0).exist:
        raise ConfigError("target cuda: there's no GPU here to ask for its architecture; name it: cuda -arch=sm_90")


def find_compiler() -> str | None:
    """Where nvcc is: on the PATH, or in the package that brings it to an environment of Python; None if nowhere."""
    if found := shutil.which(_COMPILER):
        return found
    try:
        files = importlib.metadata.files(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((shutil.which(str(file.locate())) for file in files if file.name == _COMPILER), None)


def compile_source(folder: Path, target: TargetText) -> dict[str, Any] | None:
    """Compile the generated CUDA code with nvcc, without fast math.

    Args:
        folder: Of a build, with its `device.cu`; receives `CUBIN`.
        target: Whose architecture it's compiled for.

    Returns:
        Version of nvcc and what it was told; None where there is no nvcc.

    Raises:
        ConversionError: if nvcc refuses the code; with its words.
    """
    compiler, source = find_compiler(), folder / _SOURCE
    if target.kind != "cuda" or compiler is None or "arch" not in target.attributes or not source.exists():
        return None
    arguments = ["-cubin", f"-arch={target.attributes['arch']}", "-o", CUBIN, _SOURCE]
    done = subprocess.run([compiler, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConversionError(f"nvcc refuses the generated CUDA code: {done.stderr.strip()[:_WORDS]}")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    return {"version": version.strip().splitlines()[-1], "arguments": arguments}
