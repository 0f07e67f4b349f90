"""The jobs, with converters that crash their process or hang at one operator; imported by workers too."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from conrepair.application.jobs.conversion import attempt, convert, outline
from conrepair.application.jobs.description import build, describe
from conrepair.application.jobs.execution import execute
from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.converters.base import Converter
from conrepair.formats.models.model import Model

__all__ = ["FAILING", "attempt", "build", "convert", "describe", "execute", "outline"]

_GUILTY = "Hardmax"


def _has_it(model: Model) -> bool:
    return any(node.op_type == _GUILTY for node in onnx.load(model.path).graph.node)


def _crash(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    if _has_it(model):
        os.kill(os.getpid(), signal.SIGSEGV)
    return Path(shutil.copy(model.path, folder / "copy.onnx")).name


def _hang(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    if _has_it(model):
        time.sleep(3600)
    return Path(shutil.copy(model.path, folder / "copy.onnx")).name


FAILING = {
    name: Converter(name, "onnx", "onnx", ("onnx",), function, automatic=False)
    for name, function in (("crashing", _crash), ("hanging", _hang))
}
if "pytest" not in sys.modules:  # in a worker; where tests run, each takes them out again
    CONVERTERS.own = {**CONVERTERS.own, **FAILING}
