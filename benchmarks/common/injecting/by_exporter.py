"""PyTorch's older exporter made wrong on purpose: what it writes for one operator is another's, everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.injecting.fault import Means, OwnFault
from benchmarks.faults.hyperparameters.epsilon_of_another_library import other_epsilon
from conrepair.formats.models.model import Model
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.files.whole import sha256_of

__all__ = ["BY_EXPORTER", "EVERYWHERE"]

_OPSET = 17
EVERYWHERE = "everywhere"
"""The place of a fault that the exporter makes wherever it meets an operator."""

Symbolic = Callable[[Callable[..., Any], np.random.Generator], Callable[..., Any]]


class _Opened:
    """A network that will be exported.

    Attributes:
        model: The network.
        patches: What is written for an operator, by its name in PyTorch.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.patches: dict[str, Callable[..., Any]] = {}


def _write(opened: _Opened, folder: Path) -> Model:
    import torch
    from torch.onnx import register_custom_op_symbolic, unregister_custom_op_symbolic

    from conrepair.formats.converters.torch_onnx import export_names, symbolic_axes
    from conrepair.formats.torch.load.framework import TorchRunnable

    runnable = TorchRunnable(opened.model)
    named = export_names(runnable)
    names = [*named["input_names"], *named["output_names"]]
    specs = [*runnable.inputs, *runnable.outputs]
    path = folder / "model.onnx"
    try:
        for operator, symbolic in opened.patches.items():
            register_custom_op_symbolic(f"aten::{operator}", symbolic, _OPSET)
        torch.onnx.export(
            runnable.module,
            runnable.examples,
            str(path),
            dynamo=False,
            opset_version=_OPSET,
            dynamic_axes={
                name: axes for name, spec in zip(names, specs, strict=True) if (axes := symbolic_axes(spec))
            },
            **named,
        )
    finally:
        for operator in opened.patches:
            unregister_custom_op_symbolic(f"aten::{operator}", _OPSET)
    return Model("onnx", str(path), sha256_of(path))


def _wrong(kind: Kind, operator: str, symbolic: Symbolic, words: str) -> OwnFault:
    def change(opened: _Opened, _: str, generator: np.random.Generator) -> str:
        opened.patches[operator] = symbolic(_right(operator), generator)
        return words

    return OwnFault(kind, lambda _: [EVERYWHERE], change)


def _right(operator: str) -> Callable[..., Any]:
    """What the exporter writes by itself."""
    from torch.onnx._internal.torchscript_exporter import registration

    found: Callable[..., Any] = registration.registry.get_function_group(f"aten::{operator}").get(_OPSET)
    return found


def _argument(place: int, compute: Callable[[Any, np.random.Generator], Any]) -> Symbolic:
    """Another value of one argument, which is constant: `place` counts from 0 behind the graph."""

    def made(right: Callable[..., Any], generator: np.random.Generator) -> Callable[..., Any]:
        def symbolic(g: Any, *arguments: Any) -> Any:
            changed = list(arguments)
            changed[place] = g.op("Constant", value_t=_tensor(compute(_value(changed[place]), generator)))
            return right(g, *changed)

        return symbolic

    return made


def _value(value: Any) -> Any:
    from torch.onnx import symbolic_helper

    for sort in ("f", "i", "is", "b"):
        try:
            return symbolic_helper._get_const(value, sort, "argument")
        # Of another sort.
        except (RuntimeError, TypeError):
            continue
    raise ValueError(f"{value} isn't constant")


def _tensor(value: Any) -> Any:
    import torch

    return torch.tensor(value)


def _operator(name: str, **attributes: Any) -> Symbolic:
    """Another operator of the first operand."""
    return lambda *_: lambda g, given, *__: g.op(name, given, **attributes)


def _without(place: int) -> Symbolic:
    """An operand that is left out."""

    def made(right: Callable[..., Any], _: np.random.Generator) -> Callable[..., Any]:
        def symbolic(g: Any, *arguments: Any) -> Any:
            changed = list(arguments)
            changed[place] = g.op("Constant", value_t=_tensor(0.0)) if changed[place] else None
            return right(g, *changed)

        return symbolic

    return made


def _backwards(right: Callable[..., Any], _: np.random.Generator) -> Callable[..., Any]:
    def symbolic(g: Any, tensors: Any, axis: Any) -> Any:
        from torch.onnx import symbolic_helper

        parts = symbolic_helper._unpack_list(tensors)
        return g.op("Concat", *reversed(parts), axis_i=symbolic_helper._get_const(axis, "i", "dim"))

    return symbolic


BY_EXPORTER = Means(
    "by-exporter",
    _Opened,
    _write,
    {
        "leaky-relu-slope": _wrong(
            Kind.HYPERPARAMETERS, "leaky_relu", _operator("LeakyRelu", alpha_f=0.01), "every LeakyRelu has slope 0.01"
        ),
        "elu-for-selu": _wrong(Kind.GRAPH, "elu", _operator("Selu"), "every Elu is a Selu"),
        "hard-swish-as-relu": _wrong(Kind.GRAPH, "hardswish", _operator("Relu"), "every HardSwish is a Relu"),
        "relu6-as-relu": _wrong(Kind.GRAPH, "hardtanh", _operator("Relu"), "every ReLU6 is a Relu"),
        "relu6-as-relu-too": _wrong(Kind.GRAPH, "relu6", _operator("Relu"), "every ReLU6 is a Relu"),
        "sigmoid-as-hard-sigmoid": _wrong(
            Kind.GRAPH, "sigmoid", _operator("HardSigmoid"), "every Sigmoid is a HardSigmoid"
        ),
        "tanh-as-softsign": _wrong(Kind.GRAPH, "tanh", _operator("Softsign"), "every Tanh is a Softsign"),
        "softmax-of-another-axis": _wrong(
            Kind.HYPERPARAMETERS, "softmax", _operator("Softmax", axis_i=0), "every Softmax is of the first axis"
        ),
        "layer-norm-epsilon": _wrong(
            Kind.HYPERPARAMETERS, "layer_norm", _argument(4, other_epsilon), "every LayerNorm has another epsilon"
        ),
        "batch-norm-epsilon": _wrong(
            Kind.HYPERPARAMETERS, "batch_norm", _argument(7, other_epsilon), "every BatchNorm has another epsilon"
        ),
        "concatenation-backwards": _wrong(Kind.STRUCTURE, "cat", _backwards, "every Concat is in reversed order"),
        "average-counts-padding": _wrong(
            Kind.HYPERPARAMETERS, "avg_pool2d", _argument(5, lambda now, _: not now), "every average counts otherwise"
        ),
        "mean-as-maximum": _wrong(
            Kind.GRAPH, "adaptive_avg_pool2d", _operator("GlobalMaxPool"), "every global mean is a maximum"
        ),
    },
)
