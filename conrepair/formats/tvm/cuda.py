"""CUDA code without a GPU: compiled by nvcc for a named architecture, and not run."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conrepair.formats.tvm.target import TargetText
from conrepair.ground.runtime.errors import ConfigError, ConversionError

CUBIN = "device.cubin"
_SOURCE = "device.cu"
_COMPILER, _DISTRIBUTION = "nvcc", "nvidia-cuda-nvcc"
_WORDS = 400
_VERSION = re.compile(r"\bV(\d[\d.]*)")
_FAST_MATH, _NO_FAST_MATH = "--use_fast_math", "TVM_CUDA_NVCC_NO_FAST_MATH"
EXACT = {"TVM_CUDA_COMPILE_MODE": "nvcc", _NO_FAST_MATH: "1"}
"""Variables by which TVM has CUDA code compiled without fast math: NVRTC, which it takes else, always has it on."""


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


@contextlib.contextmanager
def arithmetic(*, fast_math: bool) -> Iterator[None]:
    """Have TVM compile CUDA code with fast math, as it does by itself, or without it.

    Args:
        fast_math: Which. Without it there must be an nvcc.
    """
    path = os.pathsep.join([str(Path(find_compiler() or "").parent), os.environ.get("PATH", "")])
    before = dict(os.environ)
    os.environ.update({} if fast_math else {**EXACT, "PATH": path})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def compile_source(folder: Path, target: TargetText) -> dict[str, Any] | None:
    """Compile the generated CUDA code with nvcc, with the arithmetic that TVM has its code compiled with.

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
    fast_math = [] if os.environ.get(_NO_FAST_MATH) else [_FAST_MATH]
    arguments = ["-cubin", f"-arch={target.attributes['arch']}", *fast_math, "-o", CUBIN, _SOURCE]
    done = subprocess.run([compiler, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConversionError(f"nvcc refuses the generated CUDA code: {done.stderr.strip()[:_WORDS]}")
    words = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    found = _VERSION.search(words)
    return {"version": found[1] if found else words.splitlines()[-1], "arguments": arguments}


def what_was_compiled(target: TargetText, nvcc: Mapping[str, Any] | None) -> str:
    """What a build did with the generated code, in words.

    Args:
        target: That it was generated for.
        nvcc: From `compile_source`.
    """
    import tvm

    if nvcc is not None:
        return f"compiled by nvcc {nvcc['version']} for {target.attributes['arch']}, not run"
    own = target.kind == "cuda" and tvm.get_global_func("device_api.cuda", allow_missing=True) is not None
    if own or target.kind == "llvm":
        return "compiled, not run"
    why = "no nvcc: " if target.kind == "cuda" and find_compiler() is None else ""
    return f"{why}generated, neither compiled nor run"
