"""A target that takes any number of samples by its inputs, and one number by shapes that are written into it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conrepair.diagnosis.localization.numbers import judging
from conrepair.diagnosis.localization.result import LayerRow, Localization, LocatedFault
from conrepair.diagnosis.localization.run.fed_model import FedModel, concrete
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import NotEditableError
from conrepair.formats.editing.resizing import new_shapes
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.networks.network import Network, open_network
from conrepair.formats.onnx.read.plain import batch_numbers, written_shapes
from conrepair.ground.data.feeds import OPEN_BATCHES, first_batch, open_feeds
from conrepair.ground.data.sample_axes import OutputAxes, with_batch
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, Node
from conrepair.ground.metrics.tensors import compare_tensors
from conrepair.ground.runtime.errors import ConrepairError, InferenceError, ModelLoadError
from conrepair.verdicts.evaluate.verdict import Verdict


@dataclass(frozen=True)
class BakedShape:
    """A shape with a number in the batch's place.

    Attributes:
        node: That gives it, by its name in the graph.
        layer: What the file calls that.
        operator: In the file.
        said: What stands there.
        wanted: The shape that would follow the input.
    """

    node: str
    layer: str
    operator: str
    said: tuple[int, ...]
    wanted: tuple[int, ...]

    def __str__(self) -> str:
        """For a person."""
        words = f"`{self.layer}` ({self.operator}) has the fixed shape {list(self.said)}"
        return f"{words}: {list(self.wanted)} would take any batch size"


@dataclass(frozen=True)
class BakedBatch:
    """What holds a network to one number of samples.

    Attributes:
        number: Of them.
        shapes: Where it stands.
        inputs: Of the network, with that number.
    """

    number: int
    shapes: tuple[BakedShape, ...]
    inputs: tuple[TensorSpec, ...]

    def __str__(self) -> str:
        """For a person."""
        return f"the converted model runs with a batch of {self.number} only: {'; '.join(map(str, self.shapes))}"


def baked_batch(model: Model, inputs: Sequence[TensorSpec], axes: Mapping[str, int]) -> BakedBatch | None:
    """Find shapes in an ONNX file that hold a number where the batch belongs, though its inputs leave that open.

    A number that stands there is taken for the batch, and the network opened with it; what its reshapes and
    expansions would have to give for another batch says which of their numbers don't follow.

    Args:
        model: Of any format; None is found in others.
        inputs: The model's, with numbers for all sizes but the batch, for which any stands.
        axes: Of the samples in each input; none where these don't share the batch.
    """
    if model.framework != "onnx" or not axes:
        return None
    said = written_shapes(model.path)
    for number in batch_numbers(said, axes.values()):
        sized = with_batch(inputs, axes, number)
        try:
            network = open_network(model, sized)
        except ConrepairError:  # it doesn't fit as the batch
            continue
        found = tuple(_baked(network, said, axes, number))
        if found:
            return BakedBatch(number, found, sized)
    return None


def opened_batch(source: FedModel, target: FedModel, folder: Path, stem: str) -> tuple[BakedBatch, FedModel] | None:
    """What holds a target to one number of samples, and the target without it, where runs of both show that it does.

    Both give the same for that number, and for another the one that came fails, or gives other answers; the source
    takes any.

    Args:
        source: The model that is right.
        target: With what it's fed.
        folder: Receives a copy whose shapes follow the batch.
        stem: Of its name.

    Returns:
        None where nothing holds it, or where a copy can't be made.
    """
    if target.build is not None or target.fixed_batch is not None or target.model.framework != "onnx":
        return None
    reader = open_feeds(target.data, target.inputs, target.recipe)
    baked = baked_batch(target.model, concrete(target, 1), reader.axes)
    if baked is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    try:
        model = with_open_batch(target.model, baked, folder, stem)
        came, copy = (framework(side.framework).load(side) for side in (target.model, model))
        differs = []
        for size in (baked.number, *(size for size in OPEN_BATCHES if size != baked.number)):
            feeds = first_batch(reader, size)
            right = copy.run(feeds)
            try:
                given = came.run(feeds)
            except InferenceError:
                differs.append(True)
            else:
                differs.append(any(_differ(array, given[name]) for name, array in right.items()))
    except (NotEditableError, InferenceError, ModelLoadError):
        return None
    holds = any(differs[1:]) and not differs[0] and _takes_any(source)
    return (baked, dataclasses.replace(target, model=model)) if holds else None


def _takes_any(source: FedModel) -> bool:
    """Whether a source answers its first sample alike, alone and beside others."""
    reader = open_feeds(source.data, source.inputs, source.recipe)
    runnable, fixed = framework(source.model.framework).load(source.model), source.fixed_batch
    if not reader.axes or fixed is not None:
        return fixed is not None  # what it would do with others isn't known
    axes = OutputAxes(source.inputs, runnable.outputs, reader.axes)
    first: dict[str, Array] = {}
    for size in OPEN_BATCHES:
        try:
            outputs = runnable.run(first_batch(reader, size))
        except InferenceError:
            return False
        rows = {name: axes.in_front(name, array, size)[:1] for name, array in outputs.items()}
        first = first or rows
        if any(_differ(array, rows[name]) for name, array in first.items()):
            return False
    return True


def _differ(one: Array, two: Array) -> bool:
    if one.shape != two.shape:
        return True
    return one.dtype.kind == "f" and compare_tensors(one, two, rtol=0, atol=0).relative_l2 > judging.SAME_ANSWERS


def with_open_batch(model: Model, baked: BakedBatch, folder: Path, stem: str) -> Model:
    """A copy whose shapes follow the batch.

    Args:
        model: The target.
        baked: Of it.
        folder: Receives the copy.
        stem: Of its name.

    Raises:
        NotEditableError: if one can't be written.
    """
    editor = open_editor(dataclasses.replace(model, inputs=baked.inputs))
    nodes = {node.name: node for node in editor.graph.nodes}
    for shape in baked.shapes:
        if shape.node not in nodes:
            raise NotEditableError(f"`{shape.layer}` isn't found in the file.")
        editor.set_attributes(nodes[shape.node], {"shape": shape.wanted})
    return dataclasses.replace(editor.save(folder, stem), inputs=model.inputs)


def with_baked(found: Localization, baked: BakedBatch) -> Localization:
    """What was found of such a copy, as what's found of the target itself.

    Args:
        found: Of the copy.
        baked: Of the target.
    """
    partners = {row.target_layer: row for row in found.layers}
    faults = tuple(_fault(shape, partners.get(shape.layer)) for shape in baked.shapes)
    return dataclasses.replace(found, verdict=Verdict.FAULTY, reason=str(baked), faults=(*faults, *found.faults))


def _fault(shape: BakedShape, row: LayerRow | None) -> LocatedFault:
    source = ("", (shape.layer,)) if row is None else (row.source_tensor, (row.source_layer,))
    target = shape.node if row is None else row.target_tensor
    return LocatedFault.of_error(Kind.STRUCTURE, source, (target, (shape.layer,)), (str(shape),))


def _baked(
    network: Network, said: Mapping[str, tuple[int, ...]], axes: Mapping[str, int], number: int
) -> Iterator[BakedShape]:
    graph = network.graph
    others: dict[str, tuple[int, ...]] = {}
    for name, axis in axes.items():
        sizes = graph.tensors[network.input_names[name]].shape or ()
        others[network.input_names[name]] = (*sizes[:axis], number + 1, *sizes[axis + 1 :])
    wanted = new_shapes(graph, others)
    for node in graph.nodes:
        if node.name not in wanted:  # a reshape or an expansion, which has its first input
            continue
        shape, stored = graph.tensors[node.outputs[0]].shape, said.get(node.outputs[0])
        before = graph.tensors[node.inputs[0]].shape
        if shape is None or before is None or stored is None or len(stored) != len(shape):
            continue
        moving = [place for place, (old, new) in enumerate(zip(shape, wanted[node.name], strict=True)) if old != new]
        following = _following(node, stored, shape, before, moving)
        if following is not None and any(stored[place] > 0 for place in moving):
            yield BakedShape(node.name, node.layer, node.native, stored, following)


def _following(
    node: Node, stored: tuple[int, ...], shape: tuple[int, ...], before: tuple[int, ...], moving: Sequence[int]
) -> tuple[int, ...] | None:
    """The shape with what follows the input in the places that change; None where no shape says that."""
    if node.native == "Expand":
        behind = len(shape) - len(before)
        broadcast = all(place >= behind and before[place - behind] == shape[place] for place in moving)
        return tuple(1 if place in moving else size for place, size in enumerate(stored)) if broadcast else None
    aligned = all(place < len(before) and before[: place + 1] == shape[: place + 1] for place in moving)
    if aligned:  # 0 is the input's own size there
        return tuple(0 if place in moving else size for place, size in enumerate(stored))
    one = len(moving) == 1 and all(size != -1 for place, size in enumerate(stored) if place not in moving)
    return tuple(-1 if place in moving else size for place, size in enumerate(stored)) if one else None
