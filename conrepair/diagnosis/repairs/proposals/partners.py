"""What stands for the source's tensors in the target, and what reads the target's."""

from __future__ import annotations

from conrepair.diagnosis.localization.align.layout import Layout, layouts
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.diagnosis.repairs.proposals.proposal import ProposalSetting
from conrepair.diagnosis.repairs.transplant import KnownTensor, perm_of
from conrepair.ground.graph.layer_graph import LayerGraph

_EIGHT_BITS = ("int8", "uint8")


def known_tensors(setting: ProposalSetting) -> dict[str, KnownTensor]:
    """The target's tensors, by the source's that they stand for: the cuts, then what steps of the reading give."""
    region, in_editor = setting.region, setting.in_editor
    found: dict[str, KnownTensor] = {}
    for target, source in region.partners.items():
        if in_editor.tensor(target) is not None:
            found[source] = KnownTensor(target, region.layouts[target])
    for ours, theirs in setting.paired:
        if not ours.outputs or not theirs.outputs:
            continue
        tensor = theirs.outputs[0]
        if ours.outputs[0] not in found and in_editor.tensor(tensor) is not None:
            shape = region.target.graph.tensors[tensor].shape
            layout = layout_of(ours.outputs[0], setting, shape)
            if layout is not None:
                found[ours.outputs[0]] = KnownTensor(tensor, layout)
    return found


def layout_of(tensor: str, setting: ProposalSetting, shape: tuple[int, ...] | None = None) -> Layout | None:
    """How a tensor of the source would lie in the target, as others hereabouts do.

    Args:
        tensor: The source's.
        setting: The piece.
        shape: It has in the target, if that's known.

    Returns:
        The likeliest layout; None where the shape isn't one of the tensor's.
    """
    region = setting.region
    if tensor == region.source.end:
        return region.layout
    source = region.source.graph.tensors[tensor].shape
    if source is None:
        return None
    near = [region.layout, *(region.layouts[name] for name in region.target.begins if name in region.layouts)]
    perms = [perm for layout in near if (perm := perm_of(layout)) is not None and len(perm) == len(source)]
    if perms:
        target = tuple(source[axis] for axis in perms[0])
        if shape in {None, target}:
            return Layout(source, source, perms[0], target)
    if shape is None or shape == source:
        return Layout(source, source, tuple(range(len(source))), source)
    return next(iter(layouts(source, shape)), None)


def possible_readers(tensor: str, setting: ProposalSetting) -> list[tuple[str, ...]]:
    """Who could read another tensor in place of one.

    Args:
        tensor: The target's.
        setting: The piece.

    Returns:
        Names of nodes, () for all that read it. Of a tensor in front of the piece: first those in the piece, then
        all, as another piece may lack the same; nobody where the piece doesn't read it.
    """
    region = setting.region
    if tensor == region.target.end or any(tensor in node.outputs for node in region.target.nodes):
        return [()]
    graph = region.target.graph
    names = {node.name for node in region.target.nodes}
    reading = graph.consumers.get(tensor, ())
    within = [node for node in reading if node.name in names]
    if len(within) == len(reading) and tensor not in graph.outputs:
        return [()] if within else []
    places = [setting.in_editor.of(node) for node in within]
    inside = tuple(dict.fromkeys(place.name for place in places if place is not None))
    return [inside, ()] if inside else []


def is_quantized(step: Step, graph: LayerGraph) -> bool:
    """Whether a step computes with integers that stand for real numbers, or has weights of them."""
    read = (name for node in step.nodes for name in (*node.inputs, *node.outputs))
    tensors = [graph.tensors[name] for name in (*step.inputs, *step.outputs, *read) if name in graph.tensors]
    numbers = [parameter for node in step.nodes for parameter in node.parameters.values()]
    # ONNX says of dynamically quantized tensors only that they're of eight bits.
    eight = any(tensor.quantization or tensor.dtype in _EIGHT_BITS for tensor in tensors)
    return eight or any(item.bits or item.dtype in _EIGHT_BITS for item in numbers)
