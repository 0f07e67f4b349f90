"""Where the numbers are stored that a program only puts in another order before it uses them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import torch

from conrepair.editors.torch_graph import Holder, constants_of, state_of
from conrepair.graph.layer_graph import Array
from conrepair.networks.torch_constants import TorchConstants

__all__ = ["as_stored", "stored_places"]


def stored_places(
    program: torch.export.ExportedProgram, holder: torch.fx.Node, reader: torch.fx.Node
) -> tuple[str, Array] | None:
    """Where each number of a computed constant comes from.

    Args:
        program: Holds the state.
        holder: What computes the constant.
        reader: Reads it.

    Returns:
        The name in the state, and the places there, flat, in the constant's shape; None where numbers aren't only
        moved, or somebody else reads any of the same tensor.
    """
    constants, names = constants_of(program), state_of(program)
    origins = [node for node in constants.origins(holder) if node.name in names]
    if len(origins) != 1 or _readers(origins[0], constants) != {reader}:
        return None
    key = names[origins[0].name]
    tensor = program.state_dict[key]
    order = torch.arange(math.prod(tensor.shape), dtype=torch.float64).reshape(tensor.shape)
    try:
        found = _with_state(constants, origins[0].name, order).value(holder)
    except RuntimeError:  # an operator that minds the type: it computes, and doesn't move
        return None
    whole = _moved(found, order.numel())
    if whole is None:
        return None
    same = torch.equal(tensor.detach().reshape(-1)[torch.from_numpy(whole)], constants.value(holder))
    return (key, whole) if same else None


def as_stored(holder: Holder, array: Array) -> list[torch.Tensor] | None:
    """A parameter's numbers as the nodes hold them.

    Args:
        holder: The nodes.
        array: In the vocabulary's convention.

    Returns:
        For each node; None where the numbers are another shape's, or aren't the nodes' own in another order.
    """
    shapes = [node.meta["val"].shape for node in holder.nodes]
    counts = [math.prod(shape) for shape in shapes]
    order = torch.arange(sum(counts), dtype=torch.float64)
    given = [piece.reshape(shape) for piece, shape in zip(order.split(counts), shapes, strict=True)]
    places = _moved(holder.transform(*given) if holder.transform else given[0], sum(counts))
    if places is None or places.size != sum(counts) or places.shape != array.shape:
        return None
    numbers = torch.empty(sum(counts), dtype=torch.from_numpy(np.asarray(array)).dtype)
    numbers[torch.from_numpy(places)] = torch.from_numpy(np.asarray(array, order="C"))
    return [piece.reshape(shape) for piece, shape in zip(numbers.split(counts), shapes, strict=True)]


def _moved(found: torch.Tensor, count: int) -> Array | None:
    """Where numbers come from, of so many that were counted; None where they were computed with or repeated."""
    places = found.numpy()
    whole: Array = places.astype(np.int64)
    moved = np.array_equal(whole, places) and np.unique(whole).size == whole.size and whole.max(initial=-1) < count
    return whole if moved else None


def _readers(state: torch.fx.Node, constants: TorchConstants) -> set[torch.fx.Node]:
    """What isn't constant, and reads something that's made from a state."""
    found, seen, ahead = set(), {state}, [state]
    while ahead:
        for user in ahead.pop().users:
            if user in constants.dependent or user.op == "output":
                found.add(user)
            elif user not in seen:
                seen.add(user)
                ahead.append(user)
    return found


def _with_state(constants: TorchConstants, name: str, tensor: torch.Tensor) -> TorchConstants:
    program = constants.program
    return TorchConstants(dataclasses.replace(program, states={**program.states, name: tensor}))
