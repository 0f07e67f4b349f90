"""A node of an ONNX graph as the rule of its operator sees it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import onnx
import onnx_ir

from conrepair.formats.onnx.read.constants import OnnxConstants
from conrepair.formats.onnx.read.plain import dtype_name, ints, plain_value, stripped
from conrepair.formats.onnx.read.schema import formal_name, names_of_attributes, usual_attributes
from conrepair.ground.graph.channels import per_channel
from conrepair.ground.graph.layer_graph import Array, Attribute, Node, Parameter, Tensor
from conrepair.ground.graph.operators import OPERATORS
from conrepair.ground.onnx_graphs.computing import GRAPHS, read_from_outside
from conrepair.ground.onnx_graphs.infer_shapes import rank_of, static_shape

_COUNTED = {"axis", "axes"}


@dataclass(frozen=True)
class OnnxOrigin:
    """What a node of the graph was read from.

    Attributes:
        node: Of the network's source.
        inputs: Place among its inputs of each of the graph's node's; None for "" and for what's between parts.
        parameters: Place among them of each parameter that is one of them, by role.
        whole: Whether the graph's node is all of it, not one of several steps.
    """

    node: onnx_ir.Node
    inputs: tuple[int | None, ...]
    parameters: Mapping[str, int]
    whole: bool


class OnnxCall:
    """One node; its rule adds what it is in the vocabulary, or nothing where that has no word for it.

    Attributes:
        operator: ONNX's name.
        opset: Version of the node's domain.
        name: Unique in the graph.
        layer: What the file calls it.
        node: That's computed.
        written: What the file has, where that gives a map in place of the tensor; else the same.
        constants: Of the graph.
        nodes: What the rule added.
        hidden: Tensors between those nodes, which the file doesn't have.
    """

    def __init__(
        self,
        node: onnx_ir.Node,
        name: str,
        layer: str,
        opset: int,
        constants: OnnxConstants,
        attributes: Mapping[str, onnx_ir.Attr],
        written: onnx_ir.Node | None = None,
    ) -> None:
        self.written = written or node
        self.operator = self.written.op_type
        self.opset = opset
        self.name = name
        self.layer = layer
        self.nodes: list[Node] = []
        self.hidden: list[Tensor] = []
        self.node = node
        self.constants = constants
        self._given = attributes
        self._parameters: list[tuple[Parameter, int]] = []

    @property
    def native(self) -> str:
        """The operator with its domain, unless that's ONNX's own."""
        return f"{self.written.domain}.{self.operator}" if self.written.domain else self.operator

    # --- attributes -------------------------------------------------------------------------------------------

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as a plain value: the node's, the schema's default, or the one given here."""
        given = self._given.get(name)
        value = self._defaults.get(name, default) if given is None else given.value
        is_tensor = given is not None and given.type == onnx_ir.AttributeType.TENSOR
        return value if is_tensor or isinstance(value, onnx.TensorProto) else plain_value(value)

    def has_attribute(self, name: str) -> bool:
        """Whether the node itself has it."""
        return name in self._given

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        return dict(usual_attributes(self.written, self.opset))

    def plain_attributes(self) -> dict[str, Attribute]:
        """All attributes that are numbers, text, or tuples of those; of a tensor with one element, that."""
        found = {name: plain_value(value) for name, value in self._defaults.items()}
        for name, item in self._given.items():
            if item.type not in GRAPHS and (item.type != onnx_ir.AttributeType.TENSOR or item.as_tensor().size == 1):
                found[name] = plain_value(item.value)
        for name in _COUNTED & found.keys():
            found[name] = self._counted(found[name])
        return found

    def said(self, operator: str = "") -> dict[str, Attribute]:
        """The attributes that the vocabulary's operator, of this name by default, has too; flags as truth values."""
        usual = OPERATORS[operator or self.operator].attributes
        given = {name: value for name, value in self.plain_attributes().items() if name in usual}
        return {name: bool(value) if isinstance(usual[name], bool) else value for name, value in given.items()}

    def emit_alike(self) -> None:
        """Add a node for an operator that has the vocabulary's attributes, and its constants behind the data."""
        self.emit(self.varying(), self.said(), self.behind(self.operator))

    def _counted(self, value: Attribute) -> Attribute:
        """Axes, counted from the front."""
        if isinstance(value, int):
            return self.axis(value)
        return tuple(self.axis(int(axis)) for axis in value) if isinstance(value, tuple) else value

    def tensor_attributes(self) -> dict[str, Parameter]:
        """Attributes that hold several numbers, as parameters."""
        items = {name: item for name, item in self._given.items() if item.type == onnx_ir.AttributeType.TENSOR}
        tensors = {name: item.as_tensor() for name, item in items.items() if item.as_tensor().size != 1}
        return {
            name: Parameter(tensor.name or "", tuple(tensor.shape.numpy()), tensor.dtype.numpy().name, tensor.numpy)
            for name, tensor in tensors.items()
        }

    # --- inputs -----------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Number of inputs, those included that are left out between others."""
        return len(self.written.inputs)

    def value(self, index: int) -> onnx_ir.Value | None:
        """An input; None when it's left out."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def given(self, index: int) -> bool:
        """Whether an input is there."""
        return self.value(index) is not None

    def is_constant(self, index: int) -> bool:
        """Whether an input is there and depends on none of the network's."""
        value = self.value(index)
        return value is not None and value in self.constants

    def varies(self, index: int) -> bool:
        """Whether an input is there and depends on the network's."""
        return self.given(index) and not self.is_constant(index)

    def input(self, index: int) -> str:
        """The name of an input that varies; "" for others."""
        return str(self._value(index).name) if self.varies(index) else ""

    def numbers(self, index: int) -> Array | None:
        """An input's numbers, if it's constant or follows from the inputs' sizes."""
        value = self.value(index)
        if value is None or value in self.constants:
            return None if value is None else self.constants.array(value)
        return self.constants.sizes.get(str(value.name))

    def parameter(
        self, index: int, change: Callable[[Array], Array] | None = None, shape: Sequence[int] | None = None
    ) -> Parameter:
        """A constant input as a parameter; see `OnnxConstants.parameter`."""
        return self._noted(index, self.constants.parameter(self._value(index), change, shape))

    def _noted(self, index: int, parameter: Parameter) -> Parameter:
        self._parameters.append((parameter, index))
        return parameter

    def dequantized(
        self, index: int, scales: Sequence[int], zero: int | None = None, *, axis: int = 0, turned: bool = False
    ) -> Parameter | None:
        """A constant input of integers as the real numbers that they stand for.

        Args:
            index: Of the input.
            scales: Places of the scales, whose product is that of the numbers.
            zero: Place of the zero point.
            axis: Of the channels, where they have a scale each.
            turned: Whether the vocabulary has the matrix transposed.

        Returns:
            None where one of them isn't constant.
        """
        places = [place for place in (*scales, zero) if place is not None and self.given(place)]
        if not all(map(self.is_constant, [index, *places])):
            return None
        factors = [self._value(place) for place in scales]
        order = tuple(reversed(range(len(self.shape(index) or ())))) if turned else None
        return self.by_channel(index, factors, None if zero is None else self.value(zero), axis, order)

    def by_channel(
        self,
        index: int,
        factors: Sequence[onnx_ir.Value],
        zero: onnx_ir.Value | None,
        axis: int,
        order: tuple[int, ...] | None = None,
    ) -> Parameter:
        """A constant input of integers, by scales and a zero point from anywhere; see `OnnxConstants.dequantized`."""
        spread = partial(per_channel, axis=axis, rank=len(self.shape(index) or ()))
        return self._noted(index, self.constants.dequantized(self._value(index), factors, zero, spread, order))

    def dequantized_gates(self, index: int, scale: int, zero: int) -> Parameter | None:
        """A constant input of integers, [directions, in, gates], as the real numbers of the vocabulary's layout.

        Args:
            index: Of the input.
            scale: Place of the scale: one for each direction, or for each gate's row, too.
            zero: Place of the zero point.

        Returns:
            None where one of them isn't constant.
        """
        if not all(map(self.is_constant, (index, scale, zero))):
            return None
        value, factor, offset = (self._value(place) for place in (index, scale, zero))
        directions = self.constants.shape(value)[0]
        parameter = self.constants.dequantized(
            value, [factor], offset, lambda numbers: numbers.reshape(directions, 1, -1), (0, 2, 1)
        )
        return self._noted(index, parameter)

    def in_blocks(
        self,
        index: int,
        load: Callable[[], Array],
        shape: tuple[int, ...],
        bits: int,
        scales: Array,
        blocks: tuple[int, ...],
    ) -> Parameter:
        """A constant input of packed integers as the real numbers that they stand for.

        Args:
            index: Of the input.
            load: Reads the real numbers.
            shape: Theirs.
            bits: Of an integer.
            scales: Of each block.
            blocks: How many numbers of each axis a block has.
        """
        name, held = str(self._value(index).name), array("f", scales.astype(np.float32).tobytes())
        return self._noted(index, Parameter(name, shape, f"uint{bits}", load, bits, held, blocks=blocks))

    def parameters(self, roles: Mapping[int, str]) -> dict[str, Parameter]:
        """Those inputs as parameters that are constant, by the role that their position has."""
        return {role: self.parameter(index) for index, role in roles.items() if self.is_constant(index)}

    def behind(self, operator: str) -> dict[str, Parameter]:
        """The constants behind the first input, by the roles that an operator of the vocabulary has, in its order."""
        return self.parameters(dict(enumerate(OPERATORS[operator].parameters, 1)))

    def varying(self, indices: Sequence[int] | None = None) -> tuple[str, ...]:
        """The names of the inputs that vary, in order."""
        return tuple(filter(None, map(self.input, range(self.count) if indices is None else indices)))

    def formal(self, index: int) -> str:
        """What the operator's schema calls an input."""
        return formal_name(self.written, self.opset, index)

    def captured(self) -> tuple[str, ...]:
        """What graphs in the node's attributes read from outside, where that varies."""
        return tuple(str(value.name) for value in read_from_outside(self.node) if value not in self.constants)

    def _value(self, index: int) -> onnx_ir.Value:
        value = self.value(index)
        if value is None:
            raise ValueError(f"input {index} of {self.name} is left out")
        return value

    # --- shapes -----------------------------------------------------------------------------------------------

    def shape(self, index: int) -> tuple[int, ...] | None:
        """The shape of an input, if it's known."""
        value = self.value(index)
        if value is not None and value in self.constants:
            return self.constants.shape(value)
        return ints(static_shape(value))

    def sizes(self, index: int) -> list[int | None] | None:
        """The sizes of an input, None for those that aren't known; None when not even their number is."""
        value = self.value(index)
        if value is None or value.shape is None:
            return None if (shape := self.shape(index)) is None else list(shape)
        return [size if isinstance(size, int) else None for size in value.shape]

    def rank(self, index: int) -> int | None:
        """The number of an input's axes."""
        known = rank_of(self.value(index))
        shape = self.shape(index) if known is None else None
        return known if shape is None else len(shape)

    def axis(self, axis: int, index: int = 0) -> int:
        """An axis of an input, counted from the front where the rank is known."""
        rank = self.rank(index)
        return axis + rank if axis < 0 and rank is not None else axis

    def output_shape(self, index: int = 0) -> tuple[int, ...] | None:
        """The shape of an output, if it's known."""
        return ints(static_shape(self.node.outputs[index]))

    def dtype(self, index: int) -> onnx_ir.DataType | None:
        """The element type of an input."""
        value = self.value(index)
        return None if value is None else value.dtype

    # --- outputs ----------------------------------------------------------------------------------------------

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs, "" for those that are left out in front of others."""
        names = [value.name or "" for value in self.node.outputs]
        while names and not names[-1]:
            names.pop()
        return tuple(names)

    def is_read(self, index: int) -> bool:
        """Whether anybody wants an output."""
        if index >= len(self.node.outputs):
            return False
        value = self.node.outputs[index]
        return bool(value.name) and (bool(value.uses()) or value.is_graph_output())

    def output_dtype(self) -> str:
        """Numpy's name of the first output's type."""
        return dtype_name(self.node.outputs[0])

    # --- results ----------------------------------------------------------------------------------------------

    def emit(
        self,
        inputs: Sequence[str],
        attributes: Mapping[str, Attribute] | None = None,
        parameters: Mapping[str, Parameter] | None = None,
        outputs: Sequence[str] | None = None,
        written: Mapping[str, Attribute] | None = None,
        operator: str = "",
    ) -> None:
        """Add a node; attributes that aren't said have the vocabulary's defaults, and the operator is ONNX's own."""
        operator = operator or self.operator
        known = OPERATORS[operator].attributes if operator in OPERATORS else {}
        names = list(self.outputs if outputs is None else outputs)
        self.nodes.append(
            Node(
                name=f"{self.name}/{operator}" if self.nodes else self.name,
                layer=self.layer,
                op=operator,
                native=self.native,
                inputs=stripped(inputs),
                outputs=tuple(name or self.hide(f"output_{index}") for index, name in enumerate(names)),
                attributes={**known, **(attributes or {})},
                parameters=dict(parameters or {}),
                written=dict(written or {}),
            )
        )

    def hide(self, label: str, shape: Sequence[int] | None = None) -> str:
        """A tensor that the file doesn't have; its name."""
        name = f"{self.name}/{label}"
        self.hidden.append(Tensor(name, ints(shape), self.output_dtype(), observable=False))
        return name

    def emit_native(self) -> None:
        """Add the node as it is, under a name that the vocabulary doesn't have."""
        taken = self.operator in OPERATORS
        names, moved = [self.input(index) for index in range(self.count)], self._moved()
        roles = {index: name for index in range(self.count) if (name := self.formal(index)) not in moved}
        self.emit(
            [*names, *(name for name in self.captured() if name not in names)],
            {**self.plain_attributes(), **moved},
            {**self.tensor_attributes(), **self.parameters(roles)},
            operator=f"{self.written.domain or 'ai.onnx'}.{self.operator}" if taken else self.operator,
        )

    def _moved(self) -> dict[str, Attribute]:
        """Constant inputs that are attributes in another opset: a number, or a row of them."""
        names, found = names_of_attributes(self.written), dict[str, Attribute]()
        for index in filter(self.is_constant, range(self.count)):
            name, array = self.formal(index), self.numbers(index)
            if name in names and array is not None and array.ndim < 2:
                value = plain_value(array.tolist())
                found[name] = self._counted(value) if name in _COUNTED else value
        return found

    def add_own_attributes(self) -> None:
        """Let a node that's all of the file's have its attributes as the file calls them, too."""
        if len(self.nodes) == 1:
            [node] = self.nodes
            own = {**self.plain_attributes(), **self._moved()} if node.op in OPERATORS else node.attributes
            self.nodes = [replace(node, own=own)]

    def add_parameters(self, parameters: Mapping[str, Parameter]) -> None:
        """Give the last node more of them."""
        if parameters:
            self.nodes[-1] = replace(self.nodes[-1], parameters={**self.nodes[-1].parameters, **parameters})

    def origins(self) -> dict[str, OnnxOrigin]:
        """What each added node was read from, by its name."""
        return {node.name: self._origin(node) for node in self.nodes}

    def _origin(self, node: Node) -> OnnxOrigin:
        places = {
            role: index
            for role, parameter in node.parameters.items()
            for known, index in self._parameters
            if known is parameter
        }
        free = {index: self.input(index) for index in range(self.count) if self.varies(index)}
        inputs: list[int | None] = []
        for name in node.inputs:
            place = next((index for index, given in free.items() if given == name), None)
            free.pop(place if place is not None else -1, None)
            inputs.append(place)
        return OnnxOrigin(self.written, tuple(inputs), places, len(self.nodes) == 1)
