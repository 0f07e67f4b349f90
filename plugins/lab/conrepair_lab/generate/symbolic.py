"""Sizes that a model leaves open: which of its inputs' may change, and what changes with them."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.settings.ports import NotAllowedError, Operand, Support
from conrepair_lab.generate.settings.reading import Reading
from conrepair_lab.generate.settings.tensors import TensorType
from conrepair_lab.generate.specifications.specification import spoken

Open = Mapping[str, tuple[str | int | None, ...]]
"""By input or output, a name for each size that's open, a number for one that isn't; None for open without a name."""


def open_sizes(
    draft: Draft, inputs: tuple[str, ...], support: Support, random: Random, *, batch: bool
) -> Open | None:
    """Find sizes that a network's inputs may have otherwise.

    Args:
        draft: The network.
        inputs: Names of its inputs.
        support: Element types of the runtime.
        random: Which size is tried comes from here.
        batch: Try the first axis of all inputs that agree on it; any axis of one input otherwise.

    Returns:
        Sizes of inputs and outputs; None if the operators need the sizes that there are.
    """
    places = [(name, axis) for name in inputs for axis in range(draft.tensors[name].type.rank)]
    places = [place for place in places if draft.tensors[place[0]].type.shape[place[1]]]
    if batch:
        places = [place for place in places if place[1] == 0]
    if not places:
        return None
    name, axis = random.choice(places)
    size = draft.tensors[name].type.shape[axis]
    together = [(other, place) for other, place in places if draft.tensors[other].type.shape[place] == size]
    for group in ([(name, axis)], together) if not batch else (together, [(name, axis)]):
        found = _with(draft, group, size, support, "batch" if batch else "size")
        if found is not None:
            return found
    return None


def retyped(draft: Draft, sources: Mapping[str, TensorType], support: Support) -> dict[str, TensorType]:
    """The types of all tensors if some sources had others.

    Raises:
        NotAllowedError: if an operator forbids it.
    """
    types = {name: sources.get(name, tensor.type) for name, tensor in draft.tensors.items()}
    values = {name: tensor.array for name, tensor in draft.tensors.items()}
    for node in draft.nodes:
        if node.piece is not None:
            if tuple(types[name] for name in node.inputs) != node.piece.inputs:
                raise NotAllowedError(f"{node.op} was seen with other types")
            continue
        given = [Operand(types[name], name=name, array=values[name]) if name else None for name in node.inputs]
        results = [bool(name) for name in node.outputs]
        said = node.attributes
        setting = spoken(Reading(node.op, draft.opset, Random(0), support, given=given, said=said, results=results))
        values.update({node.outputs[place]: array for place, array in setting.told.items()})
        types.update({name: made for name, made in zip(node.outputs, setting.outputs, strict=True) if name and made})
    return types


def _with(draft: Draft, group: list[tuple[str, int]], size: int, support: Support, name: str) -> Open | None:
    tried = (size + 1, 2 * size + 3, max(1, size // 2))
    try:
        others = [retyped(draft, _resized(draft, group, other), support) for other in tried]
    except NotAllowedError:
        return None
    sources = {source for source, _ in group}
    shown = (*sources, *draft.outputs())
    if any(types[name].rank != draft.tensors[name].type.rank for types in others for name in shown):
        return None
    return {
        tensor: tuple(
            own if {own} == set(sizes) else name if (own, *sizes) == (size, *tried) else None
            for own, *sizes in zip(
                draft.tensors[tensor].type.shape, *(types[tensor].shape for types in others), strict=True
            )
        )
        for tensor in shown
    }


def _resized(draft: Draft, group: list[tuple[str, int]], size: int) -> dict[str, TensorType]:
    found: dict[str, TensorType] = {}
    for name, axis in group:
        dtype, shape = found.get(name, draft.tensors[name].type)
        found[name] = TensorType(dtype, (*shape[:axis], size, *shape[axis + 1 :]))
    return found
