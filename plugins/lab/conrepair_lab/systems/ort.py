"""ONNX Runtime: its graph optimizations are switches, by their names."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from conrepair.formats.backends.base import CUDA
from conrepair.formats.backends.onnxruntime import cuda_providers
from conrepair.formats.models.identity import model_files, model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.networks.network import Network, open_network
from conrepair.formats.onnx.load.border import is_plain_border, plain_border
from conrepair.formats.onnx.load.optimizers import OPTIMIZERS
from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.ground.runtime.files.whole import copy_whole
from conrepair.ground.runtime.onnx_session import open_session
from conrepair.ground.runtime.processes.reach import GPU
from conrepair_lab.systems.system import Arrays, Program, Setting, System

_LEVELS = {"none": "disabled", "basic": "basic", "extended": "extended", "all": "all"}
_ON_CUDA = {"optimization": "all", "device": CUDA}
_LOAD = """\
import numpy
import onnxruntime

{preload}options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.{level}
{threads}session = onnxruntime.InferenceSession(
    "{file}", options, providers={providers}, disabled_optimizers={off}
)
"""
_RUN = """\
with numpy.load("inputs.npz") as inputs:
    found = session.run(None, dict(inputs))
numpy.savez("outputs.npz", **{item.name: array for item, array in zip(session.get_outputs(), found)})
"""


def plainly_fed(model: Model, folder: Path) -> Model:
    """A file that casts inputs and outputs of types that NumPy has none of, as ONNX Runtime is fed them here, too.

    Args:
        model: An ONNX file, with its weights inside where it isn't taken as it is.
        folder: For another file.

    Returns:
        The model itself, where NumPy has all its types.
    """
    proto = read_proto(Path(model.path))
    if is_plain_border(proto):
        return model
    plain_border(proto)
    path = folder / f"{model.sha256[:12]}.plain.onnx"
    path.write_bytes(proto.SerializeToString())
    return Model(model.framework, str(path), model_sha256(path))


class OnnxRuntime(System):
    """See `System`; all names are switches, as sessions of a millisecond tell which of them matter."""

    name = "ort"
    settings = MappingProxyType(
        {name: Setting("onnxruntime", {"optimization": level}) for name, level in _LEVELS.items()}
        | {"cuda": Setting("onnxruntime", _ON_CUDA), "cuda-ieee": Setting("onnxruntime", {**_ON_CUDA, "tf32": False})}
    )
    plain, usual = "none", "all"
    alike = True

    def observed(self, model: Model, setting: Setting, folder: Path) -> Network | None:
        """The optimized graph, whose nodes then run as they are: more outputs would change what is fused.

        They run on the processor, so a GPU's aren't seen.
        """
        from conrepair.formats.onnx.load.framework import FRAMEWORK, write_optimized

        if setting.reach == GPU:
            return None
        level, there = str(setting.options.get("optimization", "all")), model
        if level != _LEVELS["none"]:
            path = Path(tempfile.mkdtemp(dir=folder)) / "optimized.onnx"
            for file in model_files(Path(model.path))[1:]:  # weights that the optimized graph still has there
                copy_whole(file, path.parent / file.relative_to(Path(model.path).parent))
            write_optimized(model, path, level, setting.options.get("disabled_optimizers", ()))
            there = Model("onnx", str(path), model_sha256(path))
        return open_network(there, FRAMEWORK.load(there).inputs)

    def quick(self, network: bytes, setting: Setting, folder: Path) -> Callable[[Arrays], Arrays]:
        """A session of the file in memory."""
        level, off = setting.options.get("optimization"), setting.options.get("disabled_optimizers", ())
        if setting.reach == GPU or level not in (_LEVELS["none"], _LEVELS["all"]):
            return super().quick(network, setting, folder)
        session = open_session(network, threads=1, quiet=True, optimized=level == _LEVELS["all"], off=off)
        names = [item.name for item in session.get_outputs()]
        return lambda inputs: dict(zip(names, session.run(None, dict(inputs)), strict=True))

    def symbolic(self, setting: Setting) -> Setting:
        """As it is: sessions take all sizes."""
        return setting

    def distribution(self, setting: Setting) -> str:
        """ONNX Runtime's, as package indices have it: for the processor."""
        return "" if setting.reach == GPU else "onnxruntime"

    def drawn(self, setting: Setting, generator: np.random.Generator) -> dict[str, Any]:
        """Some optimizers are left out."""
        if setting.options.get("optimization") == _LEVELS["none"]:
            return {}
        off = generator.choice(OPTIMIZERS, generator.integers(1, 6), replace=False)
        return {"disabled_optimizers": sorted(map(str, off))}

    def programmed(self, model: Model, setting: Setting, folder: Path) -> Model:
        """The file, with casts where sessions take and give no arrays of NumPy."""
        return plainly_fed(model, folder)

    def program(self, setting: Setting) -> Program:
        """A session."""
        level = str(setting.options.get("optimization", "all"))
        words = "ORT_DISABLE_ALL" if level == "disabled" else f"ORT_ENABLE_{level.upper()}"
        off = list(setting.options.get("disabled_optimizers", ())) or None
        on_cuda = setting.reach == GPU
        providers = cuda_providers(tf32=setting.options.get("tf32", True)) if on_cuda else ["CPUExecutionProvider"]
        preload = "onnxruntime.preload_dlls()\n" if on_cuda else ""
        count = setting.options.get("threads")
        load = _LOAD.format(
            level=words,
            file=self.file,
            off=off,
            providers=providers,
            preload=preload,
            threads=f"options.intra_op_num_threads = {count}\n" if count else "",
        )
        return Program(load, _RUN)


SYSTEM = OnnxRuntime()
