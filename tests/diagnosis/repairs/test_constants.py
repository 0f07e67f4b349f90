"""A wrong number is set to the source's: no operator goes for it, and zeros and large values are right, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.bench import EXTREMES
from conrepair.diagnosis.repairs.edits import Graft
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.diagnosis.repairs.state import VALUES
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.files.whole import sha256_of
from tests.support.small_models import model_of

_OPTIONS = RepairOptions(Options(samples=4, batch_size=2), seconds=60, unseen=4)
_SAMPLES, _WIDTH = 8, 16

Case = Callable[[Path, bool], Model]
"""Writes the source's file (True), or the target's, which has another number."""


def _onnx(body: str, size: str, right: str, wrong: str, folder: Path, source: bool, other: str = "") -> Model:
    """A graph between two layers of weights, in ONNX's text; `@` stands for the number, `other` is a target's."""
    text = (body if source or not other else other).replace("@", right if source else wrong)
    graph = f"""<ir_version: 9, opset_import: ["" : 21]>
    net (float[{size}] x) => (float[?] y) {{
        a = MatMul(x, first)
        {text}
        y = MatMul(b, last)
    }}"""
    proto = onnx.parser.parse_model(graph.replace("float[?] y", f"float[{size}] y"))
    generator = np.random.default_rng(5)
    weights = {name: generator.normal(0, 0.25, (_WIDTH, _WIDTH)) for name in ("first", "last")}
    weights |= {"scale": 1 + generator.normal(0, 0.1, _WIDTH), "bias": generator.normal(0, 0.1, _WIDTH)}
    weights |= {"mean": generator.normal(0, 0.01, _WIDTH), "var": generator.uniform(1e-4, 1e-2, _WIDTH)}
    used = {name for node in proto.graph.node for name in node.input}
    proto.graph.initializer.extend(
        onnx.numpy_helper.from_array(array.astype(np.float32), name)
        for name, array in weights.items()
        if name in used
    )
    path = folder / ("source.onnx" if source else "target.onnx")
    onnx.save(proto, path)
    return model_of("onnx", path)


_IN_PIECES = """
        two = Constant<value = float {2}>()
        eps = Constant<value = float {@}>()
        axes = Constant<value = int64[1] {-1}>()
        m = ReduceMean(a, axes)
        d = Sub(a, m)
        p = Pow(d, two)
        v = ReduceMean(p, axes)
        e = Add(v, eps)
        s = Sqrt(e)
        n = Div(d, s)
        w = Mul(n, scale)
        b = Add(w, bias)"""
_RMS = """
        two = Constant<value = float {2}>()
        eps = Constant<value = float {@}>()
        axes = Constant<value = int64[1] {-1}>()
        p = Pow(a, two)
        v = ReduceMean(p, axes)
        e = Add(v, eps)
        s = Sqrt(e)
        r = Reciprocal(s)
        n = Mul(a, r)
        b = Mul(n, scale)"""
_ATTENTION = """
        c = Constant<value = float {@}>()
        t = Transpose<perm = [0, 2, 1]>(a)
        q = MatMul(a, t)
        z = SCALE(q, c)
        s = Softmax<axis = -1>(z)
        b = MatMul(s, a)"""
_CLIP = """
        low = Constant<value = float {0}>()
        high = Constant<value = float {@}>()
        b = Clip(a, low, high)"""
_SOFTPLUS = """
        c = Constant<value = float {@}>()
        k = Constant<value = float {2}>()
        u = Mul(a, k)
        s = Softplus(u)
        b = Div(s, c)"""
_POOLED = """
        c = Constant<value = float {@}>()
        axes = Constant<value = int64[1] {1}>()
        s = ReduceSum(a, axes)
        t = Div(s, c)
        b = Add(a, t)"""
_ROWS, _PICTURE = "N,6,16", "N,4,8,16"
_FUSED = "b = LayerNormalization<axis = -1, epsilon: float = @>(a, scale, bias)"


def _torch(
    make: Callable[[float], Any], right: float, wrong: float, shape: tuple[int, ...], folder: Path, source: bool
) -> Model:
    import torch

    torch.manual_seed(0)
    network = make(right if source else wrong).eval()
    example = (torch.zeros(2, *shape),)
    if source:
        torch.export.save(torch.export.export(network, example), folder / "source.pt2")
        return model_of("torch", folder / "source.pt2")
    torch.onnx.export(network, example, folder / "target.onnx", dynamo=True, external_data=False, verbose=False)
    return model_of("onnx", folder / "target.onnx")


def _between_layers(make: Callable[[float], Any], number: float) -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(_WIDTH, _WIDTH), make(number), nn.Linear(_WIDTH, _WIDTH))


def _between_convolutions(make: Callable[[float], Any], number: float) -> Any:
    from torch import nn

    return nn.Sequential(nn.Conv2d(4, 8, 3), make(number), nn.Conv2d(8, 4, 3))


def _norm(number: float) -> Any:
    from torch import nn

    return nn.LayerNorm(_WIDTH, eps=number)


def _groups(number: float) -> Any:
    from torch import nn

    return nn.GroupNorm(2, 8, eps=number)


def _leaky(number: float) -> Any:
    from torch import nn

    return nn.LeakyReLU(number)


def _elu(number: float) -> Any:
    from torch import nn

    return nn.ELU(number)


def _hardtanh(number: float) -> Any:
    from torch import nn

    return nn.Hardtanh(0.0, number)


def _scaled_attention(number: float) -> Any:
    import torch
    from torch import nn

    class Attention(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            heads = x[:, None]
            return torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, scale=number)[:, 0]

    return Attention()


def _keras(
    make: Callable[[float], Any],
    right: float,
    wrong: float,
    shape: tuple[int, ...],
    kind: str,
    folder: Path,
    source: bool,
) -> Model:
    import keras

    keras.utils.set_random_seed(0)
    inputs = keras.Input(shape)
    hidden = make(right if source else wrong)(keras.layers.Dense(_WIDTH)(inputs))
    network = keras.Model(inputs, keras.layers.Dense(_WIDTH)(hidden))
    if source:
        network.save(folder / "source.keras")
        return model_of("keras", folder / "source.keras")
    network(np.zeros((1, *shape), np.float32))
    if kind == "onnx":
        network.export(folder / "target.onnx", format="onnx", verbose=False)
        return model_of("onnx", folder / "target.onnx")
    import tensorflow as tf

    (folder / "target.tflite").write_bytes(tf.lite.TFLiteConverter.from_keras_model(network).convert())
    return model_of("tflite", folder / "target.tflite")


def _keras_layer(name: str, argument: str, number: float, **others: Any) -> Any:
    import keras

    return getattr(keras.layers, name)(**{argument: number}, **others)


_CASES: dict[str, tuple[Case, tuple[int, ...]]] = {
    "layer-norm": (partial(_onnx, _FUSED, _ROWS, "1e-5", "1e-2"), (6, 16)),
    "layer-norm-in-pieces": (partial(_onnx, _IN_PIECES, _ROWS, "1e-5", "1e-2"), (6, 16)),
    "layer-norm-in-pieces-of-fused": (partial(_onnx, _FUSED, _ROWS, "1e-5", "1e-2", other=_IN_PIECES), (6, 16)),
    "rms-norm": (partial(_onnx, _RMS, _ROWS, "1e-6", "1e-2"), (6, 16)),
    "batch-norm": (
        partial(
            _onnx,
            "c = Transpose<perm = [0, 2, 1]>(a) "
            "d = BatchNormalization<epsilon: float = @>(c, scale, bias, mean, var) "
            "b = Transpose<perm = [0, 2, 1]>(d)",
            _ROWS,
            "1e-5",
            "1e-3",
        ),
        (6, 16),
    ),
    "instance-norm": (
        partial(
            _onnx,
            "c = Transpose<perm = [0, 2, 1]>(a) d = InstanceNormalization<epsilon: float = @>(c, scale, bias) "
            "b = Transpose<perm = [0, 2, 1]>(d)",
            _ROWS,
            "1e-5",
            "1e-2",
        ),
        (6, 16),
    ),
    "group-norm": (
        partial(
            _onnx,
            "c = Transpose<perm = [0, 2, 1]>(a) "
            "d = GroupNormalization<epsilon: float = @, num_groups = 4>(c, scale, bias) "
            "b = Transpose<perm = [0, 2, 1]>(d)",
            _ROWS,
            "1e-5",
            "1e-2",
        ),
        (6, 16),
    ),
    "attention-scale": (partial(_onnx, _ATTENTION.replace("SCALE", "Mul"), _ROWS, "0.25", "0.5"), (6, 16)),
    "attention-divisor": (partial(_onnx, _ATTENTION.replace("SCALE", "Div"), _ROWS, "4", "2"), (6, 16)),
    "clip": (partial(_onnx, _CLIP, _ROWS, "0.06", "0.04"), (6, 16)),
    "leaky": (partial(_onnx, "b = LeakyRelu<alpha: float = @>(a)", _ROWS, "0.01", "0.2"), (6, 16)),
    "elu": (partial(_onnx, "b = Elu<alpha: float = @>(a)", _ROWS, "1.0", "0.5"), (6, 16)),
    "hard-sigmoid": (
        partial(_onnx, "b = HardSigmoid<alpha: float = @, beta: float = 0.5>(a)", _ROWS, "0.1666667", "0.2"),
        (6, 16),
    ),
    "softplus": (partial(_onnx, _SOFTPLUS, _ROWS, "2", "4"), (6, 16)),
    "pooling-divisor": (partial(_onnx, _POOLED, _ROWS, "6", "5"), (6, 16)),
    "torch-layer-norm": (partial(_torch, partial(_between_layers, _norm), 1e-5, 1e-2, (6, 16)), (6, 16)),
    "torch-group-norm": (partial(_torch, partial(_between_convolutions, _groups), 1e-5, 1e-2, (4, 8, 8)), (4, 8, 8)),
    "torch-leaky": (partial(_torch, partial(_between_layers, _leaky), 0.01, 0.1, (6, 16)), (6, 16)),
    "torch-elu": (partial(_torch, partial(_between_layers, _elu), 1.0, 0.5, (6, 16)), (6, 16)),
    "torch-hardtanh": (partial(_torch, partial(_between_layers, _hardtanh), 0.3, 0.2, (6, 16)), (6, 16)),
    "torch-attention-scale": (
        partial(_torch, partial(_between_layers, _scaled_attention), 0.25, 0.5, (6, 16)),
        (6, 16),
    ),
    "torch-attention-scale-lost": (
        partial(_torch, partial(_between_layers, _scaled_attention), 0.25, 1.0, (6, 16)),
        (6, 16),
    ),
    "keras-layer-norm-tflite": (
        partial(_keras, partial(_keras_layer, "LayerNormalization", "epsilon"), 1e-3, 1e-1, (6, 16), "tflite"),
        (6, 16),
    ),
    "keras-leaky-tflite": (
        partial(_keras, partial(_keras_layer, "LeakyReLU", "negative_slope"), 0.3, 0.1, (6, 16), "tflite"),
        (6, 16),
    ),
    "keras-leaky-onnx": (
        partial(_keras, partial(_keras_layer, "LeakyReLU", "negative_slope"), 0.3, 0.1, (6, 16), "onnx"),
        (6, 16),
    ),
    "keras-layer-norm-onnx": (
        partial(_keras, partial(_keras_layer, "LayerNormalization", "epsilon"), 1e-3, 1e-1, (6, 16), "onnx"),
        (6, 16),
    ),
}
_QUICK = {"layer-norm-in-pieces-of-fused", "rms-norm", "attention-scale", "clip"}


def _subject(model: Model, shape: tuple[int, ...], folder: Path) -> FedModel:
    inputs = framework(model.framework).describe(model).inputs
    path = folder / f"{Path(model.path).stem}.npz"
    drawn = np.random.default_rng(3).normal(0, 0.1, (_SAMPLES, *shape))
    np.savez(path, **{inputs[0].name: drawn.astype(np.float32)})
    return FedModel(model, inputs, DataReference("tensors", _SAMPLES, str(path), sha256_of(path)), None)


def _given(model: Model, array: Array) -> Array:
    runnable = framework(model.framework).load(model)
    return next(iter(runnable.run({runnable.inputs[0].name: array}).values()))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in _QUICK else pytest.mark.slow, id=name) for name in _CASES]
)
def test_a_number_is_the_source_s(name: str, tmp_path: Path) -> None:
    make, shape = _CASES[name]
    source, target = make(tmp_path, True), make(tmp_path, False)
    sides = [_subject(model, shape, tmp_path) for model in (source, target)]
    result = repair_models(sides[0], sides[1], tmp_path / "out", _OPTIONS)
    assert result.before.faults
    assert result.mended, (result.edits, result.after.faults, result.refused, result.failed)
    assert result.model is not None
    patch, _ = read_patch(tmp_path / "out" / PATCH)
    assert all(isinstance(edit, Graft if name.endswith("lost") else VALUES) for edit in patch.edits), result.edits
    drawn = np.random.default_rng(7).normal(0, 0.1, (2, *shape)).astype(np.float32)
    for factor in (1.0, *EXTREMES.values()):
        right, given = (_given(model, drawn * np.float32(factor)) for model in (source, result.model))
        assert np.isfinite(given[np.isfinite(right)]).all(), factor
        np.testing.assert_allclose(given, right, rtol=1e-3, atol=1e-4 * float(np.abs(right).max()), err_msg=name)


def test_an_epsilon_that_float16_can_not_hold_is_the_least_that_it_can(tmp_path: Path) -> None:
    source = _onnx(_RMS, _ROWS, "1e-8", "1e-8", tmp_path, True)
    proto = onnx.load(source.path)
    for tensor in proto.graph.initializer:
        tensor.CopyFrom(
            onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype(np.float16), tensor.name)
        )
    for node in proto.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t") and attribute.t.data_type == onnx.TensorProto.FLOAT:
                attribute.t.CopyFrom(
                    onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(attribute.t).astype("f2"))
                )
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    onnx.save(proto, tmp_path / "target.onnx")
    sides = [_subject(model, (6, 16), tmp_path) for model in (source, model_of("onnx", tmp_path / "target.onnx"))]
    path = Path(sides[0].data.path)
    rows = np.random.default_rng(3).normal(0, 1, (_SAMPLES, 6, 16)).astype(np.float32)
    rows[:, ::2] = 0
    np.savez(path, x=rows)
    data = DataReference("tensors", _SAMPLES, str(path), sha256_of(path))
    meant = dataclasses.replace(_OPTIONS.localization, precision="float16")
    options = dataclasses.replace(_OPTIONS, localization=meant)
    result = repair_models(*(dataclasses.replace(side, data=data) for side in sides), tmp_path / "out", options)
    assert not np.isfinite(result.unseen_before.error)
    assert result.mended, (result.edits, result.after.faults)
    assert result.edits == ("the operand of `e` is 5.96e-08",)
    assert result.model is not None
    assert np.isfinite(_given(result.model, rows[:2])).all()
