"""The error that a quantized piece may have: what its bit widths explain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from conrepair.diagnosis.localization.numbers import few_bits
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.diagnosis.localization.run.measurement import Cut, CutOff
from conrepair.ground.data.tensor_spec import Quantization
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node, Parameter, Tensor
from conrepair.ground.graph.operators import QUANTIZING
from conrepair.ground.graph.slices import CUT_OFF, HALF_STEP, slices_of
from conrepair.verdicts.judging import numbers

_UNIFORM = math.sqrt(12)  # a rounding error is uniform within a step: its deviation is the step divided by this
_DYNAMIC_STEPS = 127  # of half a range that is quantized as it runs
_DYNAMIC = {"DynamicQuantizeLinear"}
_RUNNING = {"com.microsoft.DynamicQuantizeLSTM", "com.microsoft.DynamicQuantizeMatMul"}
_WHOLE, _BITS_OF_WHOLE = {"int8", "uint8"}, 8
_HALF_RANGE = 64  # integers of eight bits to each side, or from one end to the other, where a bit is left open
MOST_BITS = 16  # of a type whose steps say how fine the values are; an integer bias has the steps of a product
_OWN_RANGE = {"Softmax", "LogSoftmax", "Sigmoid", "Tanh"}  # whose results' steps kernels prescribe
_WITH_PRODUCT = {"Conv", "ConvTranspose", "MatMul"}
_WITH_WEIGHTS = _WITH_PRODUCT | {"LSTM", "GRU", "RNN"}
_OF_REALS = _WITH_WEIGHTS | {"Gemm"}  # ONNX's own, whose weights are dequantized in front of them
_CALLING = {"WHILE", "IF", "CALL", "STABLEHLO_WHILE", "Loop", "Scan", "If"}  # with the weights of what they call


class QuantizationErrors:
    """Expected relative L2 errors of a quantized target's pieces.

    Rounding errors of weights and activations are taken for independent: their squares add up. What the piece makes
    of small errors (`RoundingFloor.carried`) it makes of these too. A bit width explains steps that are as fine as it
    allows for the values: where a scale is for much larger ones, what that costs isn't explained. (For somewhat
    larger ones an activation's may be: calibration sees more than these samples; and for somewhat smaller ones, where
    it has seen less.) Nor is a single activation in few bits, where the target's layers with quantized weights read
    real numbers. Layers that share their weights are turns of a loop, each of which gives a part of the result, or
    carries it on: together they're worth as much as one.

    Source:
        Widrow and Kollar, Quantization Noise, 2008, chapter 5: the uniform model of rounding errors.
    """

    def __init__(
        self, target: LayerGraph, cuts: Sequence[Cut], given: Activations | None = None, *, drawn: bool = False
    ) -> None:
        """Note what tensors of the target are worth.

        Args:
            target: The quantized network.
            cuts: Measured, with the sizes of the source's values.
            given: What the target computes of a batch, for the values of tensors that weren't measured.
            drawn: Whether inputs are drawn at random.
        """
        self._target, self._given = target, given
        self._beyond = beyond_drawn(cuts) if drawn else few_bits.BEYOND
        self._measured: Mapping[str, Cut] = {cut.pair.target: cut for cut in cuts}
        self._parameters: dict[str, float] = {}
        self._sizes: dict[str, float] = {}
        self._finest = self._finest_steps()
        self._meant = _quantizes_activations(target)

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
        shared = self._of_parameters(cut, nodes)
        for node in nodes:
            squares += [self._of_activation(name, cut) ** 2 for name in node.outputs]
            rounded = _rounded(node)
            if node.op in _DYNAMIC or (rounded and self._rounds_what_it_reads(node)):
                turn = f"as it runs: {'/'.join(map(_key, rounded.values())) or node.name}"
                shared[turn] = max(self._as_it_runs(_data_of(node), cut) ** 2, shared.get(turn, 0.0))
        amplification = max(1.0, cut.floor.carried / numbers.DISTURBANCE)
        return amplification * math.sqrt(sum(squares) + sum(shared.values()))

    def of_weights(self, cut: Cut, nodes: Sequence[Node]) -> float:
        """What the rounding of weights alone explains: these are compared number by number, too.

        Args:
            cut: At the end.
            nodes: Of the target, between the cuts.
        """
        return math.sqrt(sum(self._of_parameters(cut, nodes).values()))

    def _of_parameters(self, cut: Cut, nodes: Sequence[Node]) -> dict[str, float]:
        """The squares of what each parameter's rounding makes, once for all that share it."""
        return {
            _key(item): self._of_parameter(item, node, role, cut) ** 2
            for node in nodes
            for role, item in _rounded(node).items()
        }

    def _rounds_what_it_reads(self, node: Node) -> bool:
        """Whether a layer with weights in few bits makes integers of real numbers itself."""
        if node.op not in _WITH_WEIGHTS | _RUNNING | _CALLING or node.native in _OF_REALS:
            return False
        data = _data_of(node)
        tensor, producer = self._target.tensors.get(data), self._target.producers.get(data)
        is_quantized = tensor is not None and tensor.quantization is not None
        return not is_quantized and (producer is None or producer.op not in _DYNAMIC)

    def _of_activation(self, name: str, end: Cut) -> float:
        tensor: Tensor | None = self._target.tensors.get(name)
        if tensor is None or tensor.quantization is None or not tensor.observable:
            return 0.0  # between the parts of a fused operator nothing is rounded
        producer = self._target.producers.get(name)
        if not self._meant and producer is not None and producer.op == "QuantizeLinear":
            return 0.0  # what's gathered from a quantized table is in few bits, too, and meant to be
        cut, size = self._cut_of(name), self._size(name, end)
        step, finest = tensor.quantization.scale, self._finest.get(tensor.quantization, math.inf)
        step = step if step <= few_bits.RARE * finest else finest
        held = self._of_input(name) if cut is None else cut.cut_off
        beyond = 0.0 if held is None or held.beyond > self._beyond else held.relative_l2
        return math.hypot(step / _UNIFORM / size, beyond) if size else 0.0

    def _of_input(self, name: str) -> CutOff | None:
        """What integers don't hold of an input that they're made of, which nothing computes; None for others."""
        reals = [same for same in same_values(self._target, name) if same in self._target.inputs and same != name]
        if not reals or self._given is None or (stored := self._target.tensors[name].stored) is None:
            return None
        found = CutOff(*stored)
        found.add(self._given.feeds[reals[0]])
        return found

    def _size(self, name: str, end: Cut) -> float:
        """Of what was measured; elsewhere of what the target computes there, else of what it's for."""
        cut = self._cut_of(name)
        if cut is not None:
            return cut.introduced.reference_rms
        if self._given is None or not self._target.tensors[name].observable:
            return end.introduced.reference_rms
        if name not in self._sizes:
            self._given.compute([name])
            self._sizes[name] = _rms(self._given[name])
        return self._sizes[name]

    def _cut_of(self, name: str) -> Cut | None:
        """The measurement of a tensor's values, or of the same ones as real numbers."""
        return next(filter(None, map(self._measured.get, same_values(self._target, name))), None)

    def _finest_steps(self) -> Mapping[Quantization, float]:
        """The finest steps that the values of quantized tensors allow, by their quantization.

        Operators that only move or join values want their operands' quantization to be the same: one is as fine as
        the largest values of all tensors with it allow. None is known where an input or a kernel prescribes it.
        """
        found: dict[Quantization, float] = {}
        peaks = self._peaks()
        for name, tensor in self._target.tensors.items():
            if tensor.quantization is not None and tensor.observable:
                step = math.inf
                if name in peaks:
                    step = tensor.quantization.scale * peaks[name] / max(map(abs, tensor.stored or (math.inf,)))
                found[tensor.quantization] = max(step, found.get(tensor.quantization, 0.0))
        return found

    def _peaks(self) -> Mapping[str, float]:
        """The largest values of tensors whose quantization is their own: the source's, or else what they hold."""
        found: dict[str, float] = {}
        others = []
        for name, tensor in self._target.tensors.items():
            producer = self._target.producers.get(name)
            if tensor.stored is None or not tensor.observable or producer is None or producer.op in _OWN_RANGE:
                continue
            cut = self._cut_of(name)
            if cut is not None:
                found[name] = cut.introduced.peak
            else:
                others.append(name)
        if self._given is not None and others:
            self._given.compute(others)
            found |= {name: float(np.abs(self._given[name]).max(initial=0.0)) for name in others}
        return found

    def _as_it_runs(self, name: str, end: Cut) -> float:
        error = self._measured.get(name, end).introduced
        return error.peak / _DYNAMIC_STEPS / _UNIFORM / error.reference_rms if error.reference_rms else 0.0

    def _of_parameter(self, parameter: Parameter, node: Node, role: str, end: Cut) -> float:
        key = _key(parameter)
        if key not in self._parameters:
            if _is_added(node, role):
                size = self._size(node.outputs[0], end)
                self._parameters[key] = _mean_step(parameter, parameter.numpy()) / _UNIFORM / size if size else 0.0
            else:
                self._parameters[key] = own_rounding(parameter)
        return self._parameters[key]


def _rounded(node: Node) -> dict[str, Parameter]:
    """A node's parameters in few bits, by their roles."""
    return {role: item for role, item in node.parameters.items() if item.bits or _is_stored_whole(item)}


def _is_added(node: Node, role: str) -> bool:
    """Whether numbers are added to a result, of which their errors are a share, however small they are themselves."""
    return node.op in {"Add", "Sub"} or (role == "bias" and node.op in _WITH_PRODUCT)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) if values.size else 0.0


def rounding_error(parameter: Parameter, values: Array) -> float:
    """The relative L2 error that a parameter's bits and scales explain, for numbers that it's to hold.

    Of each slice that has a scale, steps are as fine as its bits allow for its numbers.

    Args:
        parameter: Quantized, or in other types that are rounded by nothing.
        values: The numbers, as real ones.
    """
    size = _rms(values)
    return _mean_step(parameter, values) / _UNIFORM / size if size else 0.0


def own_rounding(parameter: Parameter) -> float:
    """The same for the numbers that it holds, which are read once."""
    if "rounding" not in parameter.known:
        parameter.known["rounding"] = rounding_error(parameter, parameter.numpy())
    return parameter.known["rounding"]


def _mean_step(parameter: Parameter, values: Array) -> float:
    """How far apart numbers are that a parameter holds, at most as far as its bits make it for some values."""
    steps = np.abs(np.asarray(parameter.scales, dtype=np.float64))
    step = _rms(steps) if steps.size else float(_is_stored_whole(parameter))
    bits = parameter.bits or (_BITS_OF_WHOLE if _is_stored_whole(parameter) else 0)
    if 0 < bits <= MOST_BITS and values.size:
        levels = 2 ** (bits - 1 - _leaves_a_bit(parameter)) - 1
        step = min(step, float(np.abs(values).max()) / levels)
        ways = slices_of(parameter, values.shape)
        fine = (np.minimum(way.steps, way.peaks(values) / levels) for way in ways)
        step = min(step, max(map(_rms, fine), default=step))
    return step


def _leaves_a_bit(parameter: Parameter) -> bool:
    """Whether integers of eight bits fill half of their range, so that no sum of products overflows."""
    if parameter.bits != _BITS_OF_WHOLE:
        return False
    values = parameter.numpy()
    for way in slices_of(parameter, values.shape):
        rows = way.rows(values) / np.where(way.steps > 0, way.steps, 1.0)[:, None]
        low, high = np.minimum(rows.min(axis=1), 0), np.maximum(rows.max(axis=1), 0)
        symmetric = np.abs(np.maximum(-low, high) - _HALF_RANGE) <= HALF_STEP
        if np.all(symmetric | (np.abs(high - low - (2 * _HALF_RANGE - 1)) <= CUT_OFF) | (high == low)):
            return True
    return False


def has_right_scales(values: Array, given: Parameter) -> bool:
    """Whether a parameter's scales are those that a quantizer gives to some numbers.

    Args:
        values: The numbers that it's to hold, in its shape.
        given: The parameter; one that isn't in steps has none that could be wrong.
    """
    if not given.bits or given.bits > MOST_BITS or not given.scales or not values.size:
        return True
    levels = 2**given.bits - 1
    for way in slices_of(given, values.shape):
        rows = way.rows(values)
        low, high = np.minimum(rows.min(axis=1), 0), np.maximum(rows.max(axis=1), 0)
        symmetric = np.maximum(-low, high)
        # Of one sign and its opposite; with the smallest integer, too, or up to it; of a range that has zero in it.
        for right in (*(2 * symmetric / (levels + more) for more in (-1, 0, 1)), (high - low) / levels):
            if np.all((np.abs(way.steps - right) <= few_bits.SAME_STEP * right) | (right == 0)):
                return True
    return False


def beyond_drawn(cuts: Sequence[Cut]) -> float:
    """How many times its range a tensor may have for its largest value, where inputs are drawn at random.

    Args:
        cuts: Measured: where most tensors are beyond their ranges, calibration has met other inputs than these.
    """
    found = [cut.cut_off.beyond for cut in cuts if cut.cut_off is not None and math.isfinite(cut.cut_off.beyond)]
    usual = float(np.median(found)) if len(found) >= few_bits.SEVERAL else 0.0
    return min(max(few_bits.BEYOND_DRAWN, 2 * usual), few_bits.MOST_DRAWN)


def _quantizes_activations(graph: LayerGraph) -> bool:
    """Whether layers with quantized weights read quantized activations, most of them; or there are no such layers."""
    reading = [node.inputs[0] for node in graph.nodes if node.inputs and _rounded(node)]
    producers = (graph.producers.get(name) for name in reading)
    dequantized = [producer is not None and producer.op == "DequantizeLinear" for producer in producers]
    quantized = [graph.tensors[name].quantization is not None for name in reading if name]
    return sum(dequantized) + sum(quantized) >= len(reading) / 2


def _data_of(node: Node) -> str:
    """What weights are multiplied with: a node's first input that is there."""
    return next(filter(None, node.inputs), "")


def _key(parameter: Parameter) -> str:
    return parameter.name or str(id(parameter))


def ranges_of(graph: LayerGraph) -> dict[str, tuple[float, float]]:
    """The values that tensors in few bits can hold, by their names and those of the same values as real numbers."""
    found = {}
    for name, tensor in graph.tensors.items():
        if tensor.stored is not None:
            reals = [same for same in same_values(graph, name) if graph.tensors[same].stored is None]
            found.update(dict.fromkeys([name, *reals], tensor.stored))
    return found


def same_values(graph: LayerGraph, name: str) -> Iterator[str]:
    """A tensor, then those that it's quantized or dequantized to, or from (which a Relu may lie behind).

    Args:
        graph: The tensor's.
        name: Of the tensor.
    """
    yield name
    for node in graph.consumers.get(name, ()):
        if node.op in QUANTIZING:
            yield from node.outputs
    producer = graph.producers.get(name)
    if producer is not None and producer.op in QUANTIZING:
        yield from producer.inputs[:1]


def _is_stored_whole(parameter: Parameter) -> bool:
    """Whether it's a matrix of whole numbers whose steps another input of its operator has: here they are one."""
    return not parameter.bits and parameter.dtype in _WHOLE and len(parameter.shape) > 1
