"""What an editor of a model file offers, whichever format it has."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from conrepair.formats.editing.operation import NotEditableError, Operation
from conrepair.formats.editing.resizing import new_shapes
from conrepair.formats.models.model import Model
from conrepair.formats.networks.stored import StoredParameter
from conrepair.ground.graph.layer_graph import Array, Attribute, LayerGraph, Node

__all__ = ["Editor", "NotEditableError"]


class Editor(abc.ABC):
    """A model in memory, open to changes; the file that it was read from stays as it is.

    Nodes and tensors are named as in `graph`, which says what the file held when it was opened.

    Attributes:
        graph: The network's layers.
    """

    graph: LayerGraph

    def __init__(self, model: Model) -> None:
        self._model = model
        self._left_out: set[int] = set()  # places of outputs, as the file came

    def again(self) -> Editor:
        """Another editor of the same model as it came; this one must not have changed anything."""
        return type(self)(self._model)

    def names(self, node: Node) -> frozenset[str]:
        """What the file calls a node's layer."""
        return frozenset({node.layer})

    def tensor_names(self, tensor: str) -> frozenset[str]:
        """What the file calls the layer that a tensor comes from; the tensor itself for an input."""
        producer = self.graph.producers.get(tensor)
        return frozenset({tensor}) if producer is None else self.names(producer)

    def set_parameter(self, node: Node, role: str, array: Array) -> None:
        """Give one node other numbers; whoever shares the old ones keeps them.

        Args:
            node: Of the graph.
            role: Of its parameters; a bias that its layer leaves out, too, where the format has a place for it.
            array: In the convention of `conrepair.ground.graph.operators`, of the old shape.

        Raises:
            NotEditableError: if the format can't.
        """
        if role == "bias" and role not in node.parameters:
            self._give_bias(node, array)
        else:
            self._set_parameter(node, role, array)

    @abc.abstractmethod
    def _set_parameter(self, node: Node, role: str, array: Array) -> None:
        """Give one node other numbers in place of those that it has."""

    def _give_bias(self, node: Node, array: Array) -> None:
        """Give a layer a bias, one number for each channel, where it has none."""
        self._refuse_bias(node)

    def _refuse_bias(self, node: Node) -> NoReturn:
        self.refuse(f"{node.name} ({node.native}) has no place for a bias")

    def requantize(self, node: Node, role: str, array: Array) -> None:
        """Give one node other numbers in place of quantized ones, with the scales that these take.

        Args:
            node: Of the graph.
            role: Of its parameters.
            array: In the convention of `conrepair.ground.graph.operators`, of the old shape.

        Raises:
            NotEditableError: if the format can't, or the parameter isn't quantized.
        """
        self.refuse(f"{node.name}: {role} isn't quantized")

    def set_range(self, tensor: str, low: float, high: float) -> None:
        """Quantize an activation for another range; what only moves its values goes along.

        Args:
            tensor: Quantized, or what's quantized next, or dequantized from such a one.
            low: Smallest number that it must hold.
            high: Largest.

        Raises:
            NotEditableError: if the format can't, or no constant says the tensor's scale.
        """
        self.refuse(f"{tensor} isn't quantized")

    def set_attributes(self, node: Node, changes: Mapping[str, Attribute]) -> None:
        """Change attributes, in the convention of `conrepair.ground.graph.operators`.

        Raises:
            NotEditableError: if the format can't.
        """
        self.refuse(f"{node.name}: {', '.join(changes)}")

    def set_operator(self, node: Node, operator: str, attributes: Mapping[str, Attribute]) -> None:
        """Make a node another operator of the same operands.

        Raises:
            NotEditableError: if the format can't.
        """
        self.refuse(f"{node.name} as {operator}")

    def remove(self, node: Node, index: int = 0) -> None:
        """Take a node out: who read it reads one of its inputs instead.

        Raises:
            NotEditableError: if the format can't.
        """
        self.refuse(f"{node.name} can't be removed")

    def graft(self, tensor: str, operations: Sequence[Operation], label: str, readers: Sequence[Node] = ()) -> None:
        """Let all that read a tensor, or some of them, read what a few operators compute from others.

        What nothing reads any more is taken out. Operators may read the tensor itself, which then stays. A tensor
        is what the rest of the model reads under its name by now, after earlier changes.

        Args:
            tensor: An input of the graph, or a node's result; an output of the graph too.
            operations: The operators; the last one's result is read.
            label: Part of the new names.
            readers: The only nodes that shall read it; all, if there are none, and then an output of the graph too.

        Raises:
            NotEditableError: if the format has no words for an operator, or what is read would be computed from
                its own readers.
        """
        self.refuse(f"nothing can be put in the place of {tensor}")

    def swap_inputs(self, node: Node, one: int, two: int) -> None:
        """Exchange two inputs of a node.

        Raises:
            NotEditableError: if the format can't.
        """
        self.exchange_reads(node.inputs[one], node.inputs[two], [node])

    def exchange_reads(self, one: str, two: str, readers: Sequence[Node]) -> None:
        """Let nodes that read one of two tensors read the other; who else reads them is left.

        Args:
            one: A tensor, as of `graft`.
            two: The other one.
            readers: Nodes that read either, or both.

        Raises:
            NotEditableError: if the format can't, or one of them would be computed from its own result.
        """
        self.refuse(f"who reads {one} and {two} can't read the other one")

    def add_output(self, tensor: str, operations: Sequence[Operation] = (), place: int | None = None) -> None:
        """Let the graph give one more of its tensors.

        Args:
            tensor: A tensor of the graph, or the new one's name.
            operations: What computes a new one.
            place: Among the outputs of formats that have them in a list; the last by default.

        Raises:
            NotEditableError: if the format can't.
        """
        self.refuse(f"{tensor} can't become an output")

    def _output_now(self, place: int) -> int:
        """Where an output is by now, of those that weren't left out."""
        if place in self._left_out:
            self.refuse(f"output {place} was left out")
        return place - sum(item < place for item in self._left_out)

    def drop_output(self, place: int) -> None:
        """Let the graph give one of its outputs no more, and take out what only that needed.

        Args:
            place: Position in the file as it came; others are left.

        Raises:
            NotEditableError: if the format can't.
        """
        self.refuse(f"output {place} can't be left out")

    def exchange_outputs(self, one: int, two: int) -> None:
        """Exchange two outputs of the graph, by position in the file as it came; their names stay where they are.

        Raises:
            NotEditableError: if the format can't.
        """
        self.refuse("outputs can't be exchanged")

    def move_outputs(self, one: int, two: int) -> None:
        """Give two outputs of the graph, by position in the file as it came, in each other's place, names and all.

        Raises:
            NotEditableError: if the format can't.
        """
        self.refuse("the order of outputs is that of the code, or a matter of names")

    def exchange_inputs(self, one: int, two: int) -> None:
        """Let who reads one input of the graph read the other.

        Raises:
            NotEditableError: if the format can't.
        """
        self.refuse("inputs can't be exchanged")

    def set_input_shapes(self, shapes: Sequence[Sequence[int | None]]) -> None:
        """Declare other sizes for the graph's inputs, and what the graph says of shapes behind them.

        Nothing else may be changed in the same editor.

        Args:
            shapes: Of each input, in order; None for a size that stays as it is.

        Raises:
            NotEditableError: if the format can't.
        """
        wanted: dict[str, tuple[int, ...]] = {}
        for name, shape in zip(self.graph.inputs, shapes, strict=True):
            held = self.graph.tensors[name].shape
            if held is None or len(held) != len(shape):
                self.refuse(f"{name} has {held} for its shape, which can't become one of {len(shape)} axes")
            wanted[name] = tuple(size if new is None else new for size, new in zip(held, shape, strict=True))
        nodes = {node.name: node for node in self.graph.nodes}
        for node, shape in new_shapes(self.graph, wanted).items():
            self._set_shape(nodes[node], shape)
        self._declare_inputs(dict(zip(self.graph.inputs, shapes, strict=True)))

    def _set_shape(self, node: Node, shape: tuple[int, ...]) -> None:
        """Let a reshape, or an expansion, give another shape; one that follows what it reads stays as it is."""
        self.refuse(f"{node.name} gives a shape of its own")

    def _declare_inputs(self, shapes: Mapping[str, Sequence[int | None]]) -> None:
        """Write other sizes of inputs; None for one that stays as it is."""
        self.refuse("sizes of inputs can't be changed")

    @abc.abstractmethod
    def save(self, folder: Path, stem: str) -> Model:
        """Write the model.

        Args:
            folder: Receives the file.
            stem: Its name, without the suffix.

        Returns:
            The written model, with what is needed to load it.
        """

    def save_changes(self, folder: Path, stem: str) -> Model:
        """Write a model that is looked at and thrown away: formats that can leave out what wasn't changed do.

        Args:
            folder: As for `save`.
            stem: As for `save`.
        """
        return self.save(folder, stem)

    def stored(self, node: Node, role: str, array: Array) -> list[Array]:
        """The arrays that a file has for a parameter, with other numbers.

        Args:
            node: Whose parameter it is.
            role: Of the parameter.
            array: In the vocabulary's convention.

        Raises:
            NotEditableError: if it's computed, or of another shape.
        """
        parameter = node.parameters.get(role)
        if not isinstance(parameter, StoredParameter):
            self.refuse(f"{node.name} has no {role} that its file stores")
        try:
            return parameter.as_stored(array)
        except ValueError as error:
            self.refuse(f"{node.name}: {role} is {error}")

    @staticmethod
    def refuse(reason: str) -> NoReturn:
        """Refuse a change that the format can't express."""
        raise NotEditableError(reason)
