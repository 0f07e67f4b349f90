"""Networks that searches are compared on: generated ones of numeric operators, and known architectures."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common.benchmark_model import BenchmarkModel
from benchmarks.common.making import FOLDED, made
from benchmarks.common.models import MODELS
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.zoo.architectures import select

__all__ = ["OPERATORS", "REAL", "generated", "model_of", "real"]

_NAMES = (
    "Acos Acosh Add Asin Asinh Atan Atanh AveragePool Conv Cos Cosh Div Elu Erf Exp Gemm GlobalAveragePool "
    "InstanceNormalization LRN LayerNormalization Log LogSoftmax MatMul Mul Pow Reciprocal ReduceL2 "
    "ReduceLogSumExp ReduceMean ReduceProd ReduceSum ReduceSumSquare Selu Sigmoid Sin Sinh Softmax Softplus "
    "Sqrt Sub Tan Tanh"
)
OPERATORS = tuple(_NAMES.split())
"""That networks are made of: those whose results are rounded."""

REAL = ("digits-cnn", "mobilenet_v3_small", "mnasnet0_5", "shufflenet_v2_x0_5")
"""Architectures: one trained on digits, the others of torchvision with drawn weights, for pictures of 32 x 32."""

_NODES, _OPSET, _BLOCK, _BLOCKS, _SIZE = 10, 17, 10, 1000, 32


def model_of(path: Path) -> Model:
    """An ONNX file as systems take it."""
    return Model("onnx", str(path), model_sha256(path))


def generated(seed: int, folder: Path, without: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Networks without end, made as they're asked for.

    Args:
        seed: Of all of them.
        folder: In which they are kept.
        without: Operators that none has.
    """
    names = ",".join(name for name in OPERATORS if name not in without)
    for block in itertools.count(_BLOCKS * seed):
        there = folder / f"generated-{len(names.split(','))}-{block}"
        wished = {"seed": block, "count": _BLOCK, "nodes": _NODES, "opset": _OPSET, "workers": 1, "extremes": 0}
        words = [word for name, value in wished.items() for word in (f"--{name}", str(value))]
        command = [sys.executable, "-m", "conrepair", "generate", *words, "--dtypes", "float32", "--operators", names]
        subprocess.run([*command, "-q", "-o", str(there)], check=True, stdout=subprocess.DEVNULL)
        yield from sorted(there.glob("*/model.onnx"))


def real(name: str, folder: Path) -> Path:
    """One of `REAL`, written as ONNX.

    Args:
        name: Of it.
        folder: In which it is kept.
    """
    own = folder / name
    if not own.is_dir():
        own.mkdir(parents=True)
        made(MODELS[name] if name in MODELS else _drawn(name), own)
    return own / FOLDED / "model.onnx"


def _drawn(name: str) -> BenchmarkModel:
    (item,) = select("torchvision", [name])
    picture = TensorSpec("", ("batch", 3, _SIZE, _SIZE), "float32")
    return BenchmarkModel(name, item.factory, (picture,), kwargs=item.arguments(_SIZE), samples=1, unseen=0)
