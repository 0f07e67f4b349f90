"""The error that a quantized piece may have: what its bit widths explain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from conrepair.graph.layer_graph import LayerGraph, Node, Parameter, Tensor
from conrepair.localize.measurement import Cut

__all__ = ["QuantizationErrors"]

_UNIFORM = math.sqrt(12)  # a rounding error is uniform within a step: its deviation is the step divided by this
_DYNAMIC_STEPS = 127  # of half a range that is quantized as it runs
_DYNAMIC = {"DynamicQuantizeLinear"}
_RUNNING = {"com.microsoft.DynamicQuantizeLSTM", "com.microsoft.DynamicQuantizeMatMul"}
_WHOLE = {"int8", "uint8"}
_WITH_WEIGHTS = {"Conv", "ConvTranspose", "MatMul", "LSTM", "GRU", "RNN"}


class QuantizationErrors:
    """Expected relative L2 errors of a quantized target's pieces.

    Rounding errors of weights and activations are taken for independent: their squares add up. What the piece makes
    of small errors (`Cut.disturbed`) it makes of these too.

    Source:
        Widrow and Kollar, Quantization Noise, 2008, chapter 5: the uniform model of rounding errors.
    """

    def __init__(self, target: LayerGraph, cuts: Sequence[Cut], disturbance: float) -> None:
        """Note what tensors of the target are worth.

        Args:
            target: The quantized network.
            cuts: Measured, with the sizes of the source's values.
            disturbance: The relative change that `Cut.disturbed` answers.
        """
        self._target = target
        self._disturbance = disturbance
        self._measured: Mapping[str, Cut] = {cut.pair.target: cut for cut in cuts}
        self._parameters: dict[str, float] = {}

    def expected(self, cut: Cut, nodes: Sequence[Node], begins: Sequence[str]) -> float:
        """What the bit widths between two cuts explain.

        Args:
            cut: At the end.
            nodes: Of the target, between the cuts.
            begins: The target's tensors that they read.

        Returns:
            0 where nothing is quantized.
        """
        squares = [self._of_activation(name, cut) ** 2 for name in begins]
        for node in nodes:
            squares += [self._of_activation(name, cut) ** 2 for name in node.outputs]
            rounded = [item for item in node.parameters.values() if item.bits or _is_stored_whole(item)]
            squares += [self._of_parameter(parameter) ** 2 for parameter in rounded]
            if node.op in _DYNAMIC or (
                rounded and node.op in _WITH_WEIGHTS | _RUNNING and not self._is_quantized(node.inputs[0])
            ):
                squares.append(self._as_it_runs(node.inputs[0], cut) ** 2)
        amplification = max(1.0, cut.disturbed / self._disturbance)
        return amplification * math.sqrt(sum(squares))

    def _is_quantized(self, name: str) -> bool:
        tensor = self._target.tensors.get(name)
        return tensor is not None and tensor.quantization is not None

    def _of_activation(self, name: str, end: Cut) -> float:
        tensor: Tensor | None = self._target.tensors.get(name)
        if tensor is None or tensor.quantization is None:
            return 0.0
        size = self._measured.get(name, end).introduced.reference_rms
        return tensor.quantization.scale / _UNIFORM / size if size else 0.0

    def _as_it_runs(self, name: str, end: Cut) -> float:
        error = self._measured.get(name, end).introduced
        return error.peak / _DYNAMIC_STEPS / _UNIFORM / error.reference_rms if error.reference_rms else 0.0

    def _of_parameter(self, parameter: Parameter) -> float:
        key = parameter.name or str(id(parameter))
        if key not in self._parameters:
            values, steps = parameter.numpy().astype(np.float64), np.asarray(parameter.scales, dtype=np.float64)
            size = float(np.sqrt(np.mean(values**2))) if values.size else 0.0
            step = float(np.sqrt(np.mean(steps**2))) if steps.size else float(_is_stored_whole(parameter))
            self._parameters[key] = step / _UNIFORM / size if size else 0.0
        return self._parameters[key]


def _is_stored_whole(parameter: Parameter) -> bool:
    """Whether it's a matrix of whole numbers whose steps another input of its operator has: here they are one."""
    return not parameter.bits and parameter.dtype in _WHOLE and len(parameter.shape) > 1
