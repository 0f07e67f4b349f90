"""Networks of one unstable form each, where it loses digits, and what's right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import small_models as small
from scipy import special

from conrepair.formats.tvm.backend import BACKEND
from conrepair.ground.operators import functions

Array = np.ndarray[Any, Any]
_RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Case:
    """`y` of `x`; each node's result is also its name."""

    form: str
    body: str
    x: Array
    truth: Callable[[Array], Any]
    rows: bool = False  # errors are relative to the largest value of a row

    @property
    def right(self) -> Array:
        return np.asarray(self.truth(self.x.astype(np.float64)))

    def ulps(self, given: Array) -> Array:
        """Errors in units in the last place of float32."""
        right = self.right
        size = np.abs(right)
        if self.rows:
            size = np.broadcast_to(size.reshape(32, -1).max(1, keepdims=True), (32, 64)).reshape(size.shape)
        unit = np.spacing(np.maximum(size, 2.0**-126).astype(np.float32)).astype(np.float64)
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(np.abs(given.astype(np.float64) - right) / unit, nan=np.inf, posinf=np.inf)


def both_signs(low: float, high: float) -> Array:
    sizes = np.geomspace(low, high, 500)
    return np.concatenate([-sizes[::-1], sizes]).astype(np.float32)


def normalized(x: Array) -> Array:
    rows = x.reshape(32, 64)
    return ((rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5)).reshape(x.shape)


_AROUND_0 = both_signs(1e-30, 20)
_BELOW_0 = np.linspace(-80, 20, 1000, dtype=np.float32)
_FAR_FROM_0 = (_RNG.normal(size=(32, 64)) / 2 + np.geomspace(1, 3000, 32)[:, None]).astype(np.float32)
_LARGE = (_RNG.normal(size=(32, 64)) + np.linspace(-120, 120, 32)[:, None]).astype(np.float32)
_CONSTANTS = {
    "one": 1.0,
    "two": 2.0,
    "half": 0.5,
    "root": 2**0.5,
    "ones": np.ones(64),
    "channels": np.ones(32),
    "shifts": np.zeros(32),
}
_UNSHIFTED = "e^x without the largest taken out"

CASES: Mapping[str, Case] = {
    "tanh": Case("tanh by e^x", "y = Tanh(x)", _AROUND_0, np.tanh),
    "tanh_by_exp": Case(
        "tanh by e^x",
        "m = Neg(x) a = Exp(x) b = Exp(m) n = Sub(a, b) d = Add(b, a) y = Div(n, d)",
        both_signs(1e-30, 95),
        np.tanh,
    ),
    "tanh_by_square": Case(
        "tanh by e^x", "t = Mul(two, x) a = Exp(t) n = Sub(a, one) d = Add(one, a) y = Div(n, d)", _AROUND_0, np.tanh
    ),
    "atanh": Case("log of a ratio near 1", "y = Atanh(x)", both_signs(1e-30, 0.999), np.arctanh),
    "softplus": Case("log(1 + e^x)", "y = Softplus(x)", _BELOW_0, functions.softplus),
    "log_exp": Case("log(1 + e^x)", "a = Exp(x) b = Add(one, a) y = Log(b)", _BELOW_0, functions.softplus),
    "log_sigmoid": Case(
        "log(1 + e^x)", "a = Sigmoid(x) y = Log(a)", -5 * _BELOW_0, lambda x: -functions.softplus(-x)
    ),
    "mish": Case("log(1 + e^x)", "y = Mish(x)", _BELOW_0, functions.mish),
    "elu": Case("e^x - 1", "y = Elu<alpha = 1.5>(x)", _AROUND_0, lambda x: functions.elu(x, alpha=1.5)),
    "selu": Case("e^x - 1", "y = Selu(x)", _AROUND_0, functions.selu),
    "celu": Case("e^x - 1", "y = Celu<alpha = 1.5>(x)", _AROUND_0, lambda x: functions.celu(x, alpha=1.5)),
    "expm1": Case("e^x - 1", "a = Exp(x) y = Sub(a, one)", _AROUND_0, np.expm1),
    "sinh": Case("e^x - 1", "m = Neg(x) a = Exp(x) b = Exp(m) n = Sub(a, b) y = Div(n, two)", _AROUND_0, np.sinh),
    "sigmoid": Case("bounded argument", "y = Sigmoid(x)", _BELOW_0, special.expit),
    "erfc": Case(
        "1 + erf(x)",
        "e = Erf(x) y = Add(one, e)",
        np.linspace(-9, 5, 1000, dtype=np.float32),
        lambda x: special.erfc(-x),
    ),
    "gelu": Case(
        "1 + erf(x)",
        "d = Div(x, root) e = Erf(d) n = Add(e, one) m = Mul(x, n) y = Mul(m, half)",
        np.linspace(-12, 12, 1001, dtype=np.float32),
        functions.gelu,
    ),
    "variance": Case(
        "E[x^2] - E[x]^2",
        "q = Mul(x, x) a = ReduceMean(q, last) m = ReduceMean(x, last) s = Mul(m, m) y = Sub(a, s)",
        _FAR_FROM_0,
        lambda x: x.var(1, keepdims=True),
    ),
    "layer_norm": Case("x - E[x]", "y = LayerNormalization(x, ones)", _FAR_FROM_0, normalized, rows=True),
    "instance_norm": Case(
        "x - E[x]",
        "y = InstanceNormalization(x, channels, shifts)",
        _FAR_FROM_0.reshape(1, 32, 8, 8),
        normalized,
        rows=True,
    ),
    "softmax": Case(
        _UNSHIFTED,
        "a = Exp(x) s = ReduceSum(a, last) y = Div(a, s)",
        _LARGE,
        lambda x: special.softmax(x, 1),
    ),
    "log_sum_exp": Case(
        _UNSHIFTED,
        "a = Exp(x) s = ReduceSum<keepdims = 0>(a, last) y = Log(s)",
        _LARGE,
        lambda x: special.logsumexp(x, 1),
    ),
    "log_softmax": Case(
        _UNSHIFTED, "a = Softmax<axis = -1>(x) y = Log(a)", 6 * _LARGE, lambda x: special.log_softmax(x, 1)
    ),
}


def network(body: str, shape: tuple[int, ...], *, opset: int = 18, dtype: str = "float") -> onnx.ModelProto:
    """`y` of `x`, with the constants that it reads."""
    sizes = ", ".join(map(str, shape))
    text = f'<ir_version: 9, opset_import: ["" : {opset}]> net ({dtype}[{sizes}] x) => ({dtype} y) {{ {body} }}'
    model = onnx.parser.parse_model(text)
    kind = onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    constants = {name: np.asarray(value, kind) for name, value in _CONSTANTS.items()} | {"last": np.array([-1])}
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(constants[name], name) for name in constants if name in read
    )
    return model


def in_onnxruntime(model: onnx.ModelProto, x: Array, level: str = "ORT_DISABLE_ALL") -> Array:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    result: Array = session.run(None, {"x": x})[0]
    return result


def in_tvm(model: onnx.ModelProto, x: Array, folder: Path) -> Array:
    folder.mkdir()
    onnx.save(model, folder / "net.onnx")
    described, options = small.model_of("onnx", folder / "net.onnx"), {"setting": "O0"}
    BACKEND.compile(described, options, 1, folder)
    return BACKEND.load(described, {**options, "build": {"path": str(folder)}}).run({"x": x})["y"]
