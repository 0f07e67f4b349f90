"""In a worker: a network as PyTorch's exporters write it, made once and kept."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import zlib
from pathlib import Path

import numpy as np
import onnx

from benchmarks.attention.networks import build as build_attention
from benchmarks.attention.samples import samples as attention_samples
from benchmarks.attention.spec import networks as attention_networks
from benchmarks.attention.spec import writing_of
from benchmarks.common.located import SAMPLES
from benchmarks.common.making import unfolded
from benchmarks.common.plain_graph import Array
from benchmarks.common.target import UnfitError
from benchmarks.rightness.families import inputs_of
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.builders import build_from_factory, calibration_inputs
from conrepair.formats.models.model import Model
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.files.whole import sha256_of

__all__ = ["BY_HAND", "UNFOLDED", "feeds_of", "written"]

BY_HAND = "by-hand"
"""Family of networks that no exporter wrote."""

UNFOLDED = "unfolded-17"
"""The exporter's file with BatchNorm as nodes of their own."""

_EXPORTERS = {"script": "torch-onnx-script", "dynamo": "torch-onnx-dynamo"}


def written(name: str, side: str, kept: Path) -> onnx.ModelProto:
    """A network's file.

    Args:
        name: Of the network: its family and a number.
        side: Exporter and opset; for what's written by hand, the number of the writing.
        kept: Where files are kept for the cases that follow.

    Raises:
        UnfitError: if the exporter can't.
    """
    family = name.rpartition("-")[0]
    if family == BY_HAND:
        spec, writing = _spec(name), int(side.removeprefix("writing-"))
        found = writing_of(spec, writing)
        return build_attention(spec, found).model(constant_nodes=found.constant_nodes)
    path = kept / f"{name}-{side}.onnx"
    if not path.exists():
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept) as scratch:
            made = _exported(_built(name, family, Path(scratch)), side, Path(scratch) / "onnx")
            shutil.move(made.path, path)
    return onnx.load(path)


def feeds_of(name: str) -> dict[str, Array] | list[Array]:
    """Samples: by name for what's written by hand, else in the inputs' order."""
    family = name.rpartition("-")[0]
    if family == BY_HAND:
        return attention_samples(_spec(name))
    found = []
    for place, spec in enumerate(inputs_of(family, _seed(name))):
        sized = dataclasses.replace(spec, shape=(SAMPLES, *spec.shape[1:]))
        found.append(np.asarray(calibration_inputs(sized, _seed(name) + 1 + place)))
    return found


def _spec(name: str) -> object:
    seed, number = divmod(int(name.rpartition("-")[2]), 100)
    return attention_networks(seed)[number]


def _seed(name: str) -> int:
    return zlib.crc32(name.encode()) >> 1


def _built(name: str, family: str, folder: Path) -> Model:
    inputs: tuple[TensorSpec, ...] = inputs_of(family, _seed(name))
    return build_from_factory(
        target="benchmarks.rightness.families:network",
        kwargs={"family": family, "seed": _seed(name)},
        weights=None,
        inputs=inputs,
        initialize="variance-preserving",
        seed=_seed(name) % 2**31,
        folder=folder,
    )


def _exported(model: Model, side: str, folder: Path) -> Model:
    exporter, _, opset = side.partition("-")
    try:
        if side == UNFOLDED:
            return unfolded(model, folder)
        step = converter(_EXPORTERS[exporter])
        folder.mkdir()
        path = folder / step.convert(model, folder, step.complete({"opset": int(opset)}))
    # Whatever an exporter raises, it can't write this network.
    except Exception as error:
        raise UnfitError("no model", f"{side}: {type(error).__name__}: {error}"[:300]) from error
    return Model("onnx", str(path), sha256_of(path))
