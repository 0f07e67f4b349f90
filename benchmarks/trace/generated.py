"""Generated networks that TVM builds, with inputs on which a plain build is right."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path
from random import Random

import onnx

from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.graph.layer_graph import Array
from conrepair_lab.generate.networks import NotMadeError, made
from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes

__all__ = ["Generated", "generated"]

_OPSET = 17
_OPERATORS = (
    *("Abs", "Add", "Asin", "Atan", "AveragePool", "BatchNormalization", "Ceil", "Concat", "Conv", "Cos", "Div"),
    *("Erf", "Exp", "Gemm", "GlobalAveragePool", "InstanceNormalization", "LeakyRelu", "Log", "LogSoftmax"),
    *("MatMul", "Max", "MaxPool", "Min", "Mul", "Neg", "Pow", "ReduceMax", "ReduceMean", "ReduceSum", "Relu"),
    *("Reshape", "Sigmoid", "Sin", "Softmax", "Sqrt", "Sub", "Sum", "Tanh", "Transpose", "Unsqueeze"),
)
_WISHES = Wishes(operators=_OPERATORS, dtypes=("float32",), opset=_OPSET, extremes=0, woven=0, most=512)


@dataclass(frozen=True)
class Generated:
    """A network.

    Attributes:
        model: Its file.
        proto: What that has.
        feeds: By input.
    """

    model: Model
    proto: onnx.ModelProto
    feeds: dict[str, Array]


def generated(name: str, folder: Path, nodes: int = 10) -> Generated | None:
    """Draw a network.

    Args:
        name: What it's drawn by.
        folder: Receives it.
        nodes: How many.

    Returns:
        None where nothing came of that draw, or nothing is given to it.
    """
    try:
        network = made(dataclasses.replace(_WISHES, nodes=nodes), Random(name), _support())
    except NotMadeError:
        return None
    path = folder / f"{name.replace('/', '-')}.onnx"
    onnx.save(network.model, path)
    found = Generated(Model("onnx", str(path), model_sha256(path)), network.model, network.inputs)
    return found if found.feeds and all(array.dtype == "float32" for array in found.feeds.values()) else None


@functools.cache
def _support() -> Support:
    return Probed(_OPSET, accepted)
