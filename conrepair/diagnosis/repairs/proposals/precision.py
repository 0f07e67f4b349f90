"""Give quantized tensors the scales that the source's values take; compute a layer with real numbers at last."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from conrepair.diagnosis.localization.align.layout import Layout
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.diagnosis.localization.judge.quantized_rules import OVERFLOWS
from conrepair.diagnosis.localization.judge.saturation import begins_at_zero
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.diagnosis.repairs.edits import ComputeInFloat, Remove, Requantize, SetRange
from conrepair.diagnosis.repairs.proposals.folded import folded_parameters
from conrepair.diagnosis.repairs.proposals.parameters import wanted_parameter
from conrepair.diagnosis.repairs.proposals.partners import is_quantized
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, ProposalSetting, RangeOf, set_to
from conrepair.diagnosis.repairs.proposals.rewritten import piece_anew, steps_anew
from conrepair.diagnosis.repairs.transplant import KnownTensor, transplant
from conrepair.formats.editing.operation import NotEditableError, Operation
from conrepair.ground.data.tensor_spec import Quantization
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Parameter, Tensor
from conrepair.ground.graph.operators import QUANTIZING

_MORE = 1.1  # times the largest values of the samples: others may have larger ones
_WIDE = {"to": "float32"}
_COARSE = 2.0  # times the steps that values take, at most
_GAIN = 2.0  # times by which errors must become smaller
_UNIFORM = np.sqrt(12)
_MOST_BITS = 16  # of a type with steps for values; an integer bias has the steps of a product


def range_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Another scale and zero point for one activation, whose own are too coarse or too small: the end's first.

    What's read as the same tensor of the source comes before others that it may stand for.
    """
    graph = setting.region.target.graph
    for sources in _activations(setting):
        for target, names in sources.items():
            stored = _stored(target, setting)
            if stored is None or setting.in_editor.tensor(target) is None:
                continue
            # Of several that it may stand for, the largest first: it cuts nothing off.
            ranges = sorted({setting.range_of(name) for name in names}, key=np.ptp, reverse=True)
            for low, high in ((min(low, 0.0), max(high, 0.0)) for low, high in ranges):
                if np.isfinite((low, high)).all() and low < high and not _suits(stored, graph, low, high):
                    if low < 0 < high and stored.stored is not None and begins_at_zero(stored.stored):
                        yield (SetRange(target, 0.0, high * _MORE),)
                    yield (SetRange(target, low * _MORE, high * _MORE),)


def rescaled_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The source's numbers for one quantized parameter whose scales are too coarse for them, or too small."""
    yield from (proposal for proposal, values, given in _requantized(setting) if not _fits(values, given))


def requantized_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The source's numbers for one quantized parameter, with scales of their own, where that brings them nearer."""
    yield from (proposal for proposal, values, given in _requantized(setting) if _gains(values, given))


def stored_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """No detour through few bits for a tensor that's quantized only to be dequantized, where the source's isn't."""
    region = setting.region
    if any(node.op in QUANTIZING for node in region.source.nodes):
        return
    for node in region.target.nodes:
        back = region.target.graph.consumers.get(node.outputs[0], ()) if node.op == "QuantizeLinear" else ()
        places = [setting.in_editor.of(item) for item in (node, *back)]
        names = [place.name for place in places if place is not None]
        if back and all(item.op == "DequantizeLinear" for item in back) and len(names) == len(places):
            yield tuple(Remove(name) for name in names)


def float_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """One quantized layer computed with real numbers, as the source does; then the whole piece, where it's small.

    What's read from integers is dequantized in front of it, and what integers are made of is quantized behind it.
    """
    graph = setting.region.target.graph

    def is_of_integers(_: Step, theirs: Step) -> bool:
        return is_quantized(theirs, graph)

    for tensor, operations in [*steps_anew(setting, is_of_integers), *piece_anew(setting, of_integers=True)]:
        whole = _among_others(operations, tensor, graph, of_integers=True)
        if whole is not None:
            yield (ComputeInFloat(tensor, whole),)


def float32_proposals(
    faults: Sequence[LocatedFault], pairs: Sequence[Pair], graph: LayerGraph, source: LayerGraph, range_of: RangeOf
) -> Iterator[Proposal]:
    """All layers of a target whose results are beyond float16, and those that read these, in float32, between Casts.

    Args:
        faults: Of the target.
        pairs: Its tensors that stand for some of the source.
        graph: The target's.
        source: The source's.
        range_of: Gives the smallest and the largest value of a tensor of the source.
    """
    beyond = {fault.target_tensor for fault in faults if any(words == OVERFLOWS for words, _ in fault.differences)}
    if not beyond:
        return
    # Infinite numbers tell no partner from another: only what is computed alike stands for one.
    op_of = [{name: node.op for name, node in one.producers.items()} for one in (source, graph)]
    alike = [pair for pair in pairs if op_of[0].get(pair.source) == op_of[1].get(pair.target)]
    held = {pair.target for pair in alike if np.abs(range_of(pair.source)).max() <= np.finfo(np.float16).max} - beyond
    kept = []
    for node in graph.nodes:
        if not beyond.isdisjoint((*node.inputs, *node.outputs)):
            kept.append(node)
            beyond.update(name for name in node.outputs if name not in held)
    inside = {name for node in kept for name in node.outputs}
    outside = [*graph.outputs, *(name for node in graph.nodes if node not in kept for name in node.inputs)]
    shapes = {name: tensor.shape for name, tensor in graph.tensors.items() if tensor.shape is not None}
    plain = {name: Layout(shape, shape, tuple(range(len(shape))), shape) for name, shape in shapes.items()}
    known = {name: KnownTensor(name, layout) for name, layout in plain.items() if name not in inside}
    edits = []
    for tensor in dict.fromkeys(name for name in outside if name in inside & plain.keys()):
        nodes = graph.between(graph.tensors.keys() - inside, [tensor])
        with contextlib.suppress(NotEditableError):
            made = transplant(nodes, graph, known, plain[tensor], wanted=tensor)
            wide = [replace(one, attributes=_WIDE) if one.attributes.get("to") == "float16" else one for one in made]
            edits.append(ComputeInFloat(tensor, _among_others(wide, tensor, graph) or ()))
    if edits:
        yield tuple(edits)


def _activations(setting: ProposalSetting) -> tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]:
    """What the tensors of the piece stand for, and may stand for: its end, what it reads, then those between.

    Which of the source's tensors those are isn't known for sure, nor whether an activation is in the range: any of
    the piece with as many elements.
    """
    region = setting.region
    graph, ours = region.target.graph, region.source.graph
    likely: dict[str, Sequence[str]] = {region.target.end: (region.source.end,)}
    for name in region.target.begins:
        if name in region.partners and name not in graph.inputs:
            likely.setdefault(name, (region.partners[name],))
    for one, two in setting.paired:
        if one.op == two.op and ours.tensors[one.outputs[0]].observable:
            likely.setdefault(two.outputs[0], (one.outputs[0],))
    possible: dict[str, Sequence[str]] = {}
    for name in (name for node in region.target.nodes for name in node.outputs):
        size = _size(graph.tensors[name])
        if graph.tensors[name].quantization is not None and size is not None:
            computed = (ours.tensors[item] for node in region.source.nodes for item in node.outputs)
            possible[name] = [item.name for item in computed if item.observable and _size(item) == size]
    return likely, possible


def _size(tensor: Tensor) -> int | None:
    return None if tensor.shape is None or not tensor.is_real else int(np.prod(tensor.shape, dtype=np.int64))


def _stored(name: str, setting: ProposalSetting) -> Tensor | None:
    """The integers that a tensor is, or that a node of the piece quantizes it to, or dequantizes it from."""
    graph, nodes = setting.region.target.graph, setting.region.target.nodes
    near = [name]
    for node in nodes:
        if node.op in QUANTIZING and name in (*node.inputs, *node.outputs):
            near += [*node.inputs, *node.outputs]
    return next((graph.tensors[item] for item in near if graph.tensors[item].quantization is not None), None)


def _requantized(setting: ProposalSetting) -> Iterator[tuple[Proposal, Array, Parameter]]:
    """Proposals, each with the right numbers and the parameter that it's for.

    A bias in steps of the weights' is wrong where their scales are: with them it's the source's, too.
    """
    for ours, theirs in setting.paired:
        if ours.op != theirs.op or len(theirs.nodes) > 1:
            continue
        node = setting.in_editor.of(theirs.nodes[0])
        for role, right in ours.parameters.items():
            given = theirs.parameters.get(role)
            edit = set_to(node, role, right.numpy())
            if node is None or edit is None or given is None or not given.bits or given.bits > _MOST_BITS:
                continue
            bias = wanted_parameter(ours, theirs, node, "bias") if "bias" in ours.parameters else None
            bias_too = None if bias is None else bias.values
            yield (Requantize(edit.node, role, edit.values, bias_too),), edit.values, given
    for edit, given in folded_parameters(setting):
        if given.bits and given.bits <= _MOST_BITS:
            yield (Requantize(edit.node, edit.role, edit.values),), edit.values, given


def _fits(values: Array, given: Parameter) -> bool:
    """Whether numbers take about as much room as scales allow; zero lies in the middle of signed types."""
    largest = float(np.abs(values).max(initial=0.0))
    span = float(values.max(initial=0.0) - values.min(initial=0.0))
    reach = max(given.scales, default=0.0) * 2 ** (given.bits or _MOST_BITS)
    needed = 2 * largest if given.dtype.startswith("int") else span
    return not largest or needed <= reach <= 2 * _COARSE * largest


def _suits(tensor: Tensor, graph: LayerGraph, low: float, high: float) -> bool:
    """Whether a tensor's scale is for such a range, wherever it's written."""
    quantization, stored = tensor.quantization, tensor.stored
    if quantization is None or stored is None:
        return True
    near = [graph.producers.get(tensor.name), *graph.consumers.get(tensor.name, ())]
    said = [node.parameters for node in near if node is not None and node.op in QUANTIZING]
    if any(not _says(parameters, quantization) for parameters in said):
        return False
    least, most = stored
    holds = least <= low + quantization.scale and high - quantization.scale <= most
    return holds and most - least <= _COARSE * (high - low)


def _says(parameters: Mapping[str, Parameter], quantization: Quantization) -> bool:
    given = {role: parameter.numpy().reshape(-1) for role, parameter in parameters.items()}
    zero = given.get("zero_point", np.zeros(1))
    return bool((given["scale"] == np.float32(quantization.scale)).all() and (zero == quantization.zero_point).all())


def _gains(values: Array, given: Parameter) -> bool:
    """Whether scales for the right numbers would bring them nearer than they are."""
    right, held = values.astype(np.float64).reshape(-1), given.numpy().astype(np.float64).reshape(-1)
    step = np.abs(right).max(initial=0.0) / (2 ** ((given.bits or _MOST_BITS) - 1) - 1)
    error = float(np.sqrt(np.mean((right - held) ** 2))) if right.size == held.size and right.size else np.inf
    return bool(error > _GAIN * step / _UNIFORM)


def _among_others(
    operations: Sequence[Operation], tensor: str, graph: LayerGraph, *, of_integers: bool = False
) -> tuple[Operation, ...] | None:
    """Operations for numbers of single precision, with what makes them of others in front, and others of the result.

    Args:
        operations: To be put among a target's.
        tensor: What they compute.
        graph: The target's.
        of_integers: Whether all integers that are read are quantized values, and none are indices.

    Returns:
        None where a tensor's integers have no one scale.
    """
    read = dict.fromkeys(item for operation in operations for item in operation.inputs if isinstance(item, str))
    front: list[Operation] = []
    places: dict[str, str | int] = {}
    for item in (graph.tensors[name] for name in read if name):
        if of_integers and not item.is_float and item.quantization is None:
            return None
        if (made := _exchanged(item, item.name, "DequantizeLinear", "float32")) is not None:
            places[item.name] = len(front)
            front.append(made)

    def shifted(item: str | int) -> str | int:
        return item + len(front) if isinstance(item, int) else places.get(item, item)

    found = [*front, *(replace(item, inputs=tuple(map(shifted, item.inputs))) for item in operations)]
    result = graph.tensors[tensor]
    if of_integers and not result.is_float and result.quantization is None:
        return None
    behind = _exchanged(result, len(found) - 1, "QuantizeLinear", "float16")
    return (*found, *(() if behind is None else (behind,)))


def _exchanged(tensor: Tensor, read: str | int, operator: str, to: str) -> Operation | None:
    """What stands between a tensor and numbers of single precision; None where it holds these."""
    if tensor.dtype == "float16":
        return Operation("Cast", (read,), {"to": to})
    return None if tensor.is_float or tensor.quantization is None else Operation(operator, (read,), {}, _grid(tensor))


def _grid(tensor: Tensor) -> dict[str, Array]:
    quantization = tensor.quantization
    if quantization is None:
        return {}
    scale, zero = np.array(quantization.scale, np.float32), np.array(quantization.zero_point, tensor.dtype)
    return {"scale": scale, "zero_point": zero}
