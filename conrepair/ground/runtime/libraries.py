"""The libraries that an installation may lack: which extra brings each, and what is said where one is missing.

pyproject.toml has the same extras with their ranges of versions (tests/test_requirements.py compares the two). What
every installation has isn't listed here.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from conrepair.ground.runtime.errors import MissingLibraryError


@dataclass(frozen=True)
class Extra:
    """What `pip install 'conrepair[NAME]'` adds.

    Attributes:
        name: As pip takes it.
        purpose: What needs it, in words.
        libraries: The package of each library, by the name that it's imported by.
        verbs: Those of the command line that it brings.
    """

    name: str
    purpose: str
    libraries: Mapping[str, str]
    verbs: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that installs it."""
        return f"pip install 'conrepair[{self.name}]'"

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages of it that aren't installed; nothing is imported to find out."""
        return tuple(
            package for module, package in self.libraries.items() if importlib.util.find_spec(module) is None
        )


EXTRAS = (
    Extra(
        "torch",
        "PyTorch's files (.pt2, TorchScript) and conversions from and to them",
        {"torch": "torch", "torchvision": "torchvision", "onnxscript": "onnxscript", "onnx2torch": "onnx2torch"},
    ),
    Extra(
        "tensorflow",
        "SavedModels, frozen graphs, and conversions of TensorFlow's and TFLite's files",
        {"tensorflow": "tensorflow", "tf2onnx": "tf2onnx"},
    ),
    Extra(
        "keras",
        "Keras's files (.keras, .h5) and conversions from and to them",
        {"keras": "keras", "h5py": "h5py", "sympy": "sympy"} | {"conrepair_onnx_keras": "conrepair-onnx-keras"},
    ),
    Extra(
        "tflite",
        "TFLite's files",
        {"ai_edge_litert": "ai-edge-litert", "tflite": "tflite", "flatbuffers": "flatbuffers"},
    ),
    Extra("tvm", "compiling with TVM, and what it built", {"tvm": "apache-tvm", "tvm_ffi": "apache-tvm-ffi"}),
    Extra("opencl", "running TVM's OpenCL kernels", {"pyopencl": "pyopencl"}),
    Extra(
        "simplify",
        "the converters onnx-onnxoptimizer, onnx-onnxsim and onnx-onnxslim",
        {"onnxoptimizer": "onnxoptimizer", "onnxsim": "onnxsim", "onnxslim": "onnxslim"},
    ),
    Extra(
        "lab",
        "random networks, campaigns, traces and the accuracy of operators",
        {"conrepair_lab": "conrepair-lab", "z3": "z3-solver", "cma": "cma"},
        ("accuracy", "fuzz", "generate", "trace"),
    ),
    Extra("legacy", "configurations of ConRepAIr and FetaFix", {"conrepair_legacy": "conrepair-legacy"}),
    Extra(
        "crowd",
        "jobs on a Dask cluster",
        {
            "conrepair_crowd": "conrepair-crowd",
            "distributed": "distributed",
            "fsspec": "fsspec",
            "cryptography": "cryptography",
        },
    ),
    Extra(
        "zoo",
        "packaged models, photos, and other releases",
        {"packaging": "packaging", "pypi_simple": "pypi-simple", "requests": "requests"},
    ),
)

_BY_MODULE = {module: extra for extra in EXTRAS for module in extra.libraries}
_BY_DISTRIBUTION = {package: extra for extra in EXTRAS for package in extra.libraries.values()}


def brings(verb: str) -> str:
    """What installs a verb that isn't there; "" where no extra has one of that name."""
    return next((f"; install it: {extra.command}" for extra in EXTRAS if verb in extra.verbs), "")


def extra_of_distribution(name: str) -> Extra | None:
    """The extra that brings a package; None for one that every installation has."""
    return _BY_DISTRIBUTION.get(name)


def missing_text(module: str) -> str:
    """What is said of a library of an extra that isn't installed.

    Args:
        module: The name that it's imported by.
    """
    extra = _BY_MODULE[module]
    return (
        f"the library {extra.libraries[module]} isn't installed for {sys.executable}; it's needed for "
        f"{extra.purpose}. Install it: {extra.command}"
    )


def absent(module: str) -> str:
    """What is said of a library of an extra if it isn't installed, which is found out without importing it; else "".

    Args:
        module: The name that it's imported by.
    """
    return missing_text(module) if module in _BY_MODULE and importlib.util.find_spec(module) is None else ""


def missing_library(error: BaseException) -> MissingLibraryError | None:
    """An import that failed, as what a person is told: which library is missing, and the command that brings it.

    Args:
        error: Whatever was raised, or raised from that; where third-party code is called, what it raised.

    Returns:
        None if it's no failed import of a library of an extra.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ModuleNotFoundError) and cause.name in _BY_MODULE:
            return MissingLibraryError(missing_text(cause.name))
        cause = cause.__cause__
    return None
