"""Write a recipe into a model: operators in front of its input make what it's fed what it wants to be fed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.localization.recipes.search import changes_in_words
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.bench import Bench
from conrepair.diagnosis.repairs.edits import FileEdit, Graft
from conrepair.diagnosis.repairs.patch import Patch
from conrepair.diagnosis.repairs.preparation import prepared_wrongly
from conrepair.formats.editing.operation import NotEditableError, Operation
from conrepair.formats.models.model import Model
from conrepair.ground.data.binding import image_layout
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node
from conrepair.ground.graph.operators import ELEMENTWISE_BINARY
from conrepair.ground.runtime.files.whole import explain_write_error


@dataclass(frozen=True)
class BatchPlace:
    """Where a tensor has the batch.

    Attributes:
        axis: That it's in.
        lead: What is in front of it in the same axis, where others were put together with it.
    """

    axis: int
    lead: int = 1


def batch_places(graph: LayerGraph) -> Mapping[str, BatchPlace]:
    """Follow the batch from the inputs, where it's the first axis, through a network.

    Args:
        graph: Opened with a batch.

    Returns:
        By tensor; tensors in which the batch isn't found have none.
    """
    sizes = [shape[0] for name in graph.inputs if (shape := graph.tensors[name].shape)]
    batch = sizes[0] if sizes else 1
    found = dict.fromkeys((name for name in graph.inputs if graph.tensors[name].shape), BatchPlace(0))
    for node in graph.nodes:
        read = next((name for name in node.inputs if name in found), None)
        if read is None:
            continue
        for name in node.outputs:
            place = _behind(node, found[read], graph.tensors[read].shape, graph.tensors[name].shape)
            shape = graph.tensors[name].shape
            if place is None or shape is None or not 0 <= place.axis < len(shape):
                continue
            if shape[place.axis] % (place.lead * batch) == 0:
                found[name] = place
    return found


def place_in_shape(place: BatchPlace, before: tuple[int, ...], after: tuple[int, ...]) -> BatchPlace | None:
    """Where the batch comes to lie when a tensor is seen in another shape.

    Args:
        place: Where it's before.
        before: The tensor's shape.
        after: Its new one.

    Returns:
        None where it's torn apart.
    """
    # As many numbers as come in front of it before must come in front of it afterwards.
    front, whole = math.prod(before[: place.axis]) * place.lead, 1
    for axis, size in enumerate(after):
        if whole <= front < whole * size:
            return BatchPlace(axis, front // whole) if front % whole == 0 else None
        whole *= size
    return None


def _behind(
    node: Node, place: BatchPlace, before: tuple[int, ...] | None, after: tuple[int, ...] | None
) -> BatchPlace | None:
    """Where the batch is in what a node gives."""
    if before is None or after is None:
        return None
    axis = place.axis
    perm, axes = node.attributes.get("perm"), node.attributes.get("axes")
    if node.op == "Transpose" and isinstance(perm, tuple):
        return replace(place, axis=[int(item) for item in perm].index(axis))
    if node.op == "Reshape":
        return place_in_shape(place, before, after)
    gone: list[int] = []
    if node.op.startswith("Reduce") and len(after) < len(before) and isinstance(axes, tuple):
        gone = [int(item) for item in axes]
    elif node.op == "Gather" and "table" not in node.parameters and len(after) < len(before):
        gone = [node.integer("axis", 0)]
    if axis in gone:
        return None
    # What is broadcast with a tensor of more axes gets them in front.
    more = len(after) - len(before) if node.op in {*ELEMENTWISE_BINARY, "MatMul"} else 0
    return replace(place, axis=axis - sum(item < axis for item in gone) + max(more, 0))


_COLOURS = {"rgb", "bgr"}
_CHANNELS = 3


@dataclass(frozen=True)
class _Baked:
    """A model that prepares its photos itself.

    Attributes:
        patch: With the operators in front.
        model: Written, and judged.
        found: What localization says of it, fed as the target came.
    """

    patch: Patch
    model: Model
    found: Found


def bake(
    bench: Bench, fed: FedModel, wanted: Recipe, edits: tuple[FileEdit, ...], found: Found, folder: Path, stem: str
) -> _Baked:
    """Put what a recipe does otherwise into a model's file; the bench feeds it as it came from then on.

    Args:
        bench: Judges; feeds the target by the recipe that's wanted.
        fed: The target as it came, with the recipe that users have.
        wanted: The recipe that is right.
        edits: Of the target's file, which are made too.
        found: What localization says of the target with these edits, fed by the recipe that is right.
        folder: Receives the model.
        stem: Its name without the suffix.

    Raises:
        NotEditableError: if no operators in front of the input do what the recipe does, or the format has none, or
            the model isn't as good with them. The bench feeds it as before then.
    """
    spec = next((item for item in fed.inputs if image_layout(item) is not None), None)
    if fed.recipe is None or len(fed.inputs) != 1 or spec is None:
        raise NotEditableError("the model has more than one input, and which of them takes photos isn't known")
    if not spec.is_float:
        raise NotEditableError(f"the input {spec.name} takes {spec.dtype}, the type of photos before the recipe")
    layout = fed.recipe.layout or image_layout(spec)
    tensor = bench.editor.graph.inputs[0]
    operations = recipe_operations(fed.recipe, wanted, tensor, channels_first=layout == "NCHW")
    patch = Patch((Graft(tensor, operations), *edits))
    before = bench.target
    bench.feed(fed)
    try:
        model = patch.apply(fed.model, folder, stem)
        again = bench.localize(model)
    # Whatever an editor or a framework says about it, the recipe can't be inside.
    except Exception as error:
        bench.feed(before)
        if explain_write_error(error, folder) is not None:
            raise
        raise NotEditableError(f"with the recipe inside, the model doesn't run: {error}") from error
    if prepared_wrongly(again) or len(again.result.faults) > len(found.result.faults):
        bench.feed(before)
        raise NotEditableError(f"with the recipe inside, {again.result.reason}")
    return _Baked(patch, model, again)


def recipe_operations(fed: Recipe, wanted: Recipe, tensor: str, *, channels_first: bool) -> tuple[Operation, ...]:
    """Operators that make of pixels, as one recipe prepares them, what another one would.

    Args:
        fed: The recipe that pixels come by.
        wanted: The other one.
        tensor: The input that has them.
        channels_first: Whether the channels are its second axis; else they're the last.

    Raises:
        NotEditableError: if the recipes differ in how photos are cut and scaled, in the order of axes, or in whether
            there are colours.
    """
    if fed.spatial != wanted.spatial:
        words = "; ".join(changes_in_words(fed, wanted))
        raise NotEditableError(f"photos must be cropped or resized in another way, which no model can do: {words}")
    if wanted.layout not in {None, fed.layout} and fed.layout is not None:
        raise NotEditableError(f"the input's axes are {fed.layout}, not {wanted.layout}, which is part of its shape")
    turned = fed.channels != wanted.channels
    if turned and not {fed.channels, wanted.channels} <= _COLOURS:
        raise NotEditableError(f"{wanted.channels} can't be made of {fed.channels}")
    found: list[Operation] = []

    def add(operator: str, attributes: dict[str, int], role: str, numbers: Array) -> None:
        found.append(Operation(operator, (len(found) - 1 if found else tensor,), attributes, {role: numbers}))

    if turned:
        add("Gather", {"axis": 1 if channels_first else 3}, "indices", np.array([2, 1, 0], np.int64))
    factor, offset = _affine(fed, wanted, turned=turned)
    if np.any(factor != 1):
        add("Mul", {}, "operand", _shaped(factor, channels_first=channels_first))
    if np.any(offset != 0):
        add("Add", {}, "operand", _shaped(offset, channels_first=channels_first))
    if not found:
        raise NotEditableError("both recipes do the same")
    return tuple(found)


def _affine(fed: Recipe, wanted: Recipe, *, turned: bool) -> tuple[Array, Array]:
    """Factor and offset of each channel, in the order of the recipe that's wanted."""
    order = slice(None, None, -1) if turned else slice(None)
    count = max(_CHANNELS if fed.channels in _COLOURS else 1, len(fed.mean), len(fed.std))
    mean, std = (np.broadcast_to(np.array(item, np.float64), count)[order] for item in (fed.mean, fed.std))
    right_mean, right_std = (np.broadcast_to(np.array(item, np.float64), count) for item in (wanted.mean, wanted.std))
    factor = fed.divisor * std / (wanted.divisor * right_std)
    offset = (fed.divisor * mean / wanted.divisor - right_mean) / right_std
    return factor.astype(np.float32), offset.astype(np.float32)


def _shaped(numbers: Array, *, channels_first: bool) -> Array:
    if np.all(numbers == numbers[0]):
        return np.asarray(numbers[0]).reshape(())
    return numbers.reshape((-1, 1, 1)) if channels_first else numbers
