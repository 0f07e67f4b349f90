"""Tell onnx2torch about our operators."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np
import torch

from conrepair.formats.converters.torch_domain import integer_operators, tensor_operators
from conrepair.formats.converters.torch_domain.marking import DOMAIN
from conrepair.formats.converters.torch_domain.recurrent import RECURRENT

__all__ = ["register"]


@functools.cache
def register() -> None:
    """Tell onnx2torch about our operators, once a process."""
    from onnx2torch.node_converters.registry import add_converter

    for name, (function, places) in _OPERATORS.items():
        add_converter(operation_type=name, version=1, domain=DOMAIN)(_converter(function, places))


class Operator(torch.nn.Module):
    """A function with its attributes and those of its operands that are constant numbers."""

    def __init__(self, function: Callable[..., Any], operands: list[Any], attributes: Mapping[str, Any]) -> None:
        super().__init__()
        self._function = function
        self._operands = operands
        self._attributes = dict(attributes)
        self._open = [index for index, value in enumerate(operands) if value is _GIVEN]

    def forward(self, *given: Any) -> Any:
        operands = list(self._operands)
        for index, value in zip(self._open, given, strict=True):
            operands[index] = value
        return self._function(*operands, **self._attributes)


_GIVEN = object()


def _converter(function: Callable[..., Any], places: Set[int] | None) -> Callable[..., Any]:
    """What onnx2torch calls for a node.

    Args:
        function: Computes the operator.
        places: Positions of its operands that are numbers, not tensors; None: all.
    """

    def convert(node: Any, graph: Any) -> Any:
        from onnx2torch.utils.common import OnnxMapping, OperationConverterResult

        operands: list[Any] = []
        names = []
        for index, name in enumerate(node.input_values):
            if not name:
                operands.append(None)
            elif name in graph.initializers and (places is None or index in places):
                operands.append(np.array(graph.initializers[name].to_torch().tolist(), dtype=object))
            else:
                operands.append(_GIVEN)
                names.append(name)
        attributes = {
            name: value.to_torch() if hasattr(value, "to_torch") else value for name, value in node.attributes.items()
        }
        if function in _SEVERAL:
            attributes["outputs"] = len(node.output_values)
        return OperationConverterResult(
            Operator(function, operands, attributes), OnnxMapping(tuple(names), node.output_values)
        )

    return convert


_SEVERAL = tensor_operators.SEVERAL | {function for function, _ in RECURRENT.values()}

_OPERATORS: dict[str, tuple[Callable[..., Any], Set[int] | None]] = {
    **tensor_operators.OPERATORS,
    **RECURRENT,
    **{f"Integer{name}": (function, None) for name, function in integer_operators.OPERATORS.items()},
    **{name: (function, set()) for name, function in tensor_operators.OTHERS.items()},
    "Tensor": (integer_operators.tensor_of, None),
}
