"""TFLite: the flatbuffer's tensors, options and operators."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from conrepair.formats.editing.editor import Editor
from conrepair.formats.editing.grid import symmetric_scales
from conrepair.formats.editing.lowering_windows import GLOBAL_POOLS, POOLS
from conrepair.formats.editing.operation import Operation, unfused
from conrepair.formats.models.model import Model
from conrepair.formats.tflite.edit.file import EditedTfliteFile
from conrepair.formats.tflite.edit.graft import (
    TfliteWriter,
    drop_unread,
    new_options,
    options_for,
    place_operators,
    set_options,
)
from conrepair.formats.tflite.edit.grids import BIASES, rescale_bias, set_constant_grid, set_range
from conrepair.formats.tflite.load.framework import TfliteRunnable
from conrepair.formats.tflite.read.linear import GATES
from conrepair.formats.tflite.read.network import open_network
from conrepair.formats.tflite.read.operators import BOUNDS, FUSED, RECURRENT
from conrepair.formats.tflite.read.subgraphs import InnerConstant, inner_constants
from conrepair.ground.graph.attributes import as_real
from conrepair.ground.graph.layer_graph import Array, Attribute, Node
from conrepair.ground.graph.slices import HALF_STEP
from conrepair.ground.runtime.files.whole import sha256_of

_NO_ACTIVATION = schema.ActivationFunctionType.NONE
_SYMMETRIC = {"weight", "W", "R"}  # parameters whose zero kernels want to be stored as 0
_TURNED = {"transpose_a": ("left", "adjX"), "transpose_b": ("weight", "adjY")}  # of a product: operand, option
_WHOLE = 2**31 - 1  # the end of an axis, however long it is
_LINEAR = "/unfused"  # how names of tensors in front of fused activations end
_SAME_OPTIONS = {*POOLS, *GLOBAL_POOLS}


@dataclass(frozen=True)
class _Place:
    """Where numbers of a parameter stand.

    Attributes:
        file: The graph that has them: the main one, or a subgraph.
        operator: Which reads them there.
        position: Among its inputs.
        native: Other numbers for it, as the file lays them out.
        symmetric: Whether the operator's kernel wants zero stored as 0.
    """

    file: EditedTfliteFile
    operator: Any
    position: int
    native: Array
    symmetric: bool


class TfliteEditor(Editor):
    """Changes of the main graph; layers are called by the tensors that they compute."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        TfliteRunnable(model)  # says what is wrong with the file, if anything
        self._file = EditedTfliteFile(Path(model.path))
        network = open_network(model, None)
        ends, names = (self._file.graph.inputs, self._file.graph.outputs), self._file.names
        inputs, outputs = (tuple(names[index] for index in end) for end in ends)
        self.graph = replace(network.graph, inputs=inputs, outputs=outputs)
        self._operators = {name: self._file.operators[place] for name, place in network.operators.items()}
        self._fused = {node.name for node in self.graph.nodes if self._is_fused(node)}
        self._parts = Counter(id(item) for name, item in self._operators.items() if name not in self._fused)
        self._positions: dict[tuple[str, str], int] = {}  # of parameters among operators' inputs
        self._instead: dict[str, int] = {}  # what stands for tensors by now

    def _is_fused(self, node: Node) -> bool:
        """Whether it's the activation that an operator has as its option."""
        if node.name == node.layer or node.outputs[0] != node.layer or node.native in RECURRENT:
            return False
        return getattr(self._operators[node.name].builtinOptions, "fusedActivationFunction", 0) in FUSED

    def _operator(self, node: Node) -> Any:
        """The operator of the file that a node is, or is a part of."""
        if node.name not in self._operators:
            self.refuse(f"{node.name} depends on no input")
        return self._operators[node.name]

    def _whole(self, node: Node) -> Any:
        """The operator that a node is, but for its activation."""
        operator = self._operator(node)
        if self._parts[id(operator)] > 1:
            self.refuse(f"{node.name} is computed by one {node.native} together with others")
        return operator

    def _set_parameter(self, node: Node, role: str, array: Array) -> None:
        """Change a constant; a quantized one keeps its scales where the numbers fit into them."""
        for place in self._stored_at(node, role, array):
            index = self._constant_at(place)
            if place.file.is_quantized(index) and place.symmetric:
                self._widen(place, index)
            place.file.set_constant(index, place.file.stored(index, place.native))

    def _give_bias(self, node: Node, array: Array) -> None:
        """One more input, of a layer that computes with real numbers."""
        operator = self._operator(node)
        places = BIASES.get(self._file.kind(operator))
        if places is None or self._file.dtype(operator.inputs[places[0]]) != "float32":
            self._refuse_bias(node)
        inputs = [*operator.inputs, -1][: places[-1] + 1]
        inputs[places[-1]] = self._file.add_constant(array.astype(np.float32), f"{node.layer}/bias")
        operator.inputs = inputs

    def requantize(self, node: Node, role: str, array: Array) -> None:
        """New scales for a constant; kernels want a weight's zero to be stored as 0. Gates that are right stay."""
        if role in {"bias", "B"}:
            self.refuse(f"{node.parameters[role].name} can't have scales of its own")
        parts = self._stored_at(node, role, array)
        for place in parts:
            if len(parts) == 1 or not self._holds(place.operator.inputs[place.position], place.native):
                index = self._constant_at(place)
                set_constant_grid(place.file, place.operator, index, place.native, symmetric=place.symmetric)

    def _stored_at(self, node: Node, role: str, array: Array) -> list[_Place]:
        """Where a parameter's numbers are among operators' inputs, and these as the file lays them out."""
        operator = self._operator(node)
        inner = inner_constants(self._file.model, operator).get(role)
        if inner is not None:
            return [self._inside(node, role, inner, array)]
        positions = GATES[role] if node.op == "LSTM" else [self._position(node, role)]
        parts = list(zip(positions, self.stored(node, role, array), strict=True))
        for position, native in parts:
            index = self._file.constant_behind(operator.inputs[position])
            if index is None or native.shape != self._file.shape(index):
                self.refuse(f"{node.parameters[role].name} can't be of shape {native.shape}")
        return [_Place(self._file, operator, position, native, role in _SYMMETRIC) for position, native in parts]

    def _inside(self, node: Node, role: str, inner: InnerConstant, array: Array) -> _Place:
        """The same of a constant in a subgraph, which all that reads it there has in common."""
        name, file = node.parameters[role].name, self._file.inside(inner.subgraph)
        if array.shape != file.shape(inner.tensor):
            self.refuse(f"{name} can't be of shape {array.shape}")
        if self._file.callers(inner.subgraph) > 1:
            self.refuse(f"{name} is in a subgraph that several operators call")
        position = [*inner.reader.inputs].index(inner.tensor)
        return _Place(file, inner.reader, position, np.asarray(array, order="C"), symmetric=True)

    def _holds(self, index: int, real: Array) -> bool:
        """Whether a constant has these numbers, as nearly as its one scale stores any."""
        held, scales = self._file.real(index), self._file.scales(index)
        if held is None or scales is None or len(scales) > 1:
            return False
        return bool(np.abs(held - real).max(initial=0.0) <= HALF_STEP * float(scales[0]))

    def set_range(self, tensor: str, low: float, high: float) -> None:
        """The tensor's quantization, and that of all that must share it."""
        index = self._index(tensor)
        if not self._file.is_quantized(index):
            index = self._quantized_as(index)
        set_range(self._file, index, low, high)

    def _quantized_as(self, index: int) -> int:
        """The tensor that real numbers are dequantized from, or quantized to."""
        producer = self._file.producer(index)
        if producer is not None and self._file.kind(producer) == "DEQUANTIZE":
            return int(producer.inputs[0])
        readers = [item for item in self._file.readers(index) if self._file.kind(item) == "QUANTIZE"]
        if not readers:
            self.refuse(f"{self._file.names[index]} isn't quantized")
        return int(readers[0].outputs[0])

    def set_attributes(self, node: Node, changes: Mapping[str, Attribute]) -> None:
        """Change options, or the constants that hold them."""
        operator = self._operator(node)
        if changes.keys() <= {"min", "max"} and node.op in {"Clip", "Relu"}:
            self._set_bounds(node, operator, changes)
            changes = {}
        for name, value in changes.items():
            self._set_attribute(node, operator, name, value)

    def set_operator(self, node: Node, operator: str, attributes: Mapping[str, Attribute]) -> None:
        """Another operator; what can't be fused follows the layer."""
        if node.name in self._fused:
            self._activate(node, operator, attributes)
        else:
            target = self._whole(node)
            if self._file.is_quantized(target.outputs[0]) and operator in {"Sigmoid", "Tanh", "Softmax"}:
                self.refuse(f"{operator} has a quantization of its own")
            kind, options = options_for(operator, attributes)
            if operator not in _SAME_OPTIONS:
                fused_before = getattr(target.builtinOptions, "fusedActivationFunction", _NO_ACTIVATION)
                if hasattr(options, "fusedActivationFunction"):
                    options.fusedActivationFunction = fused_before
                elif fused_before != _NO_ACTIVATION:
                    self.refuse(f"{kind} has no fused activation")
                set_options(target, options)
            self._file.set_kind(target, kind)

    def remove(self, node: Node, index: int = 0) -> None:
        """A fused activation is unset; other operators go, and their readers take the input."""
        if node.name in self._fused:
            self._operators[node.name].builtinOptions.fusedActivationFunction = _NO_ACTIVATION
            return
        operator = self._whole(node)
        if node.outputs[0] != node.layer:
            self.refuse(f"{node.name} has a fused activation")
        source, result = self._read(operator)[index], operator.outputs[0]
        self._redirect(self._file.readers(result), {result: source})
        if result in self._file.graph.outputs:
            if source in self._file.graph.inputs:
                self.refuse("nothing would be left between input and output")
            self._file.replace_output(result, source)
        self._file.operators.remove(operator)
        self._instead[node.outputs[0]] = source

    def _activate(self, node: Node, operator: str, attributes: Mapping[str, Attribute]) -> None:
        """Another activation in the place of a fused one, behind the layer where none is fused so."""
        options = self._operators[node.name].builtinOptions
        wanted = {name: value for name, value in attributes.items() if value is not None}
        codes = [code for code, (op, values) in FUSED.items() if op == operator and values == wanted]
        options.fusedActivationFunction = codes[0] if codes else _NO_ACTIVATION
        if not codes:
            self.graft(node.layer, (Operation(operator, (node.layer,), wanted),), "replaced")

    def _read(self, operator: Any) -> list[int]:
        """What an operator reads by now that isn't constant."""
        return [index for index in operator.inputs if index >= 0 and self._file.constant(index) is None]

    def graft(self, tensor: str, operations: Sequence[Operation], label: str, readers: Sequence[Node] = ()) -> None:
        """New operators behind the tensor's own; in front of a fused activation, that becomes one of them."""
        inside = None if readers else unfused(self.graph, _LINEAR, tensor, operations)
        if inside is not None and inside[0].name in self._fused:
            activation, tensor, operations = inside
            self._operators[activation.name].builtinOptions.fusedActivationFunction = _NO_ACTIVATION
        source = self._index(tensor)
        targets = [self._operator(item) for item in readers] or self._file.readers(source)
        writer = TfliteWriter(self._file, f"{self._file.names[source]}/{label}")
        result = writer.compute(operations, self._index)
        self._redirect(targets, {source: result})
        place_operators(self._file, writer.operators, source)
        if not readers:
            self._instead[tensor] = result
            if source in self._file.graph.outputs:
                self._file.replace_output(source, result)
        drop_unread(self._file, source)

    def _index(self, tensor: str) -> int:
        """The tensor that stands for one by now."""
        if tensor in self._instead:
            return self._instead[tensor]
        if tensor not in self.graph.tensors or tensor not in self._file.names:
            self.refuse(f"the file has no tensor {tensor}")
        return self._file.names.index(tensor)

    def exchange_reads(self, one: str, two: str, readers: Sequence[Node]) -> None:
        """Operators stay where they are, unless one would read what comes later."""
        first, second = self._index(one), self._index(two)
        self._redirect([self._operator(reader) for reader in readers], {first: second, second: first})
        place_operators(self._file, (), first)

    def add_output(self, tensor: str, operations: Sequence[Operation] = (), place: int | None = None) -> None:
        """In the graph, and in its signatures."""
        writer = TfliteWriter(self._file, tensor)
        index = writer.compute(operations, self._index) if operations else self._index(tensor)
        self._file.operators += writer.operators
        outputs = self._file.graph.outputs
        outputs.insert(len(outputs) if place is None else place, index)
        self._file.add_signature_output(tensor, index)

    def drop_output(self, place: int) -> None:
        """In the graph, and in its signatures."""
        outputs = self._file.graph.outputs
        dropped = outputs.pop(self._output_now(place))
        self._left_out.add(place)
        self._file.drop_signature_output(dropped)
        if dropped not in outputs:
            drop_unread(self._file, dropped)

    def exchange_outputs(self, one: int, two: int) -> None:
        """In the graph, and in its signature."""
        self.move_outputs(one, two)
        first, second = (self._file.graph.outputs[self._output_now(place)] for place in (one, two))
        exchanged = {first: second, second: first}
        for entry in self._file.signature_outputs():
            entry.tensorIndex = exchanged.get(entry.tensorIndex, entry.tensorIndex)

    def move_outputs(self, one: int, two: int) -> None:
        """In the graph; a signature finds them by their tensors."""
        outputs = self._file.graph.outputs
        first, second = self._output_now(one), self._output_now(two)
        outputs[first], outputs[second] = outputs[second], outputs[first]

    def exchange_inputs(self, one: int, two: int) -> None:
        """Exchange the readers of two tensors."""
        first, second = self._file.graph.inputs[one], self._file.graph.inputs[two]
        readers = [*self._file.readers(first), *self._file.readers(second)]
        self._redirect(readers, {first: second, second: first})

    def _set_shape(self, node: Node, shape: tuple[int, ...]) -> None:
        """A constant in the place of what says the shape; the batch is what is left."""
        if node.native == "RESHAPE":
            operator = self._operators[node.name]
            said = operator.inputs[1] if len(operator.inputs) > 1 else -1
            table = np.array([-1, *shape[1:]] if shape[:1] == (1,) else shape, np.int32)
            operator.inputs = [operator.inputs[0], self._file.add_constant(table, f"{node.name}/shape")]
            if operator.builtinOptions is not None:
                operator.builtinOptions.newShape = table
            if said >= 0:
                drop_unread(self._file, said)

    def _declare_inputs(self, shapes: Mapping[str, Sequence[int | None]]) -> None:
        """Sizes of tensors behind the inputs are what the interpreter makes of them."""
        for name, shape in shapes.items():
            self._file.set_shape(self._file.names.index(name), shape)

    def save(self, folder: Path, stem: str) -> Model:
        """A .tflite file."""
        path = folder / f"{stem}.tflite"
        self._file.save(path)
        return Model("tflite", str(path), sha256_of(path), inputs=self._model.inputs)

    def _position(self, node: Node, role: str) -> int:
        """Where an operator reads a parameter."""
        if (node.name, role) not in self._positions:
            behind = map(self._file.constant_behind, self._operator(node).inputs)
            names = [None if index is None else self._file.names[index] for index in behind]
            if node.parameters[role].name not in names:
                self.refuse(f"{node.name}: {role} is computed")
            self._positions[node.name, role] = names.index(node.parameters[role].name)
        return self._positions[node.name, role]

    def _constant_at(self, place: _Place) -> int:
        """The constant there, of which only its operator is changed; in a subgraph, all that reads it."""
        if place.file is self._file:
            return self._own(place.operator, place.position)
        return int(place.operator.inputs[place.position])

    def _own(self, operator: Any, position: int) -> int:
        """The constant behind an input, made the operator's own if others read it."""
        direct = operator.inputs[position]
        index = self._file.constant_behind(direct)
        if index is None:
            self.refuse(f"{self._file.names[direct]} isn't constant")
        readers = self._file.readers(index) + (self._file.readers(direct) if direct != index else [])
        uses = sum([*item.inputs].count(place) for item in readers for place in {index, direct})
        if uses <= (1 if direct == index else 2):
            return index
        name = f"{self._file.names[index]}/{self._file.names[operator.outputs[0]]}"
        if direct == index:
            own = self._file.copy_tensor(index, name)
        else:
            stored = self._file.real(index)
            if stored is None:
                self.refuse(f"{self._file.names[index]} isn't real")
            own = self._file.add_constant(stored, name)
        operator.inputs[position] = own
        return own

    def _widen(self, place: _Place, index: int) -> None:
        """New scales for channels that don't fit any more."""
        file, real = place.file, place.native
        scales, tensor = file.scales(index), file.tensors[index]
        if scales is None or np.any(tensor.quantization.zeroPoint):
            return
        axis = tensor.quantization.quantizedDimension if len(scales) > 1 else None
        needed = symmetric_scales(real, axis, int(np.iinfo(file.dtype(index)).max), scales)
        wider = np.maximum(scales, needed)
        if not np.array_equal(wider, scales):
            tensor.quantization.scale = wider
            rescale_bias(file, place.operator)

    def _set_attribute(self, node: Node, operator: Any, name: str, value: Attribute) -> None:
        options = operator.builtinOptions
        if name == "alpha" and node.native == "LEAKY_RELU":
            options.alpha = as_real(value)
        elif name == "approximate" and node.native == "GELU":
            options.approximate = value == "tanh"
        elif name == "dilations" and isinstance(value, tuple):
            options.dilationHFactor, options.dilationWFactor = (int(step) for step in value)
        elif name == "coordinate_transformation_mode":
            options.alignCorners, options.halfPixelCenters = value == "align_corners", value == "half_pixel"
        elif name == "mode" and node.native == "MIRROR_PAD" and value == "constant":
            self._file.set_kind(operator, "PAD")
            set_options(operator, new_options("PAD"))
        elif name == "mode" and node.native == "MIRROR_PAD" and value in {"reflect", "symmetric"}:
            modes = schema.MirrorPadMode
            options.mode = modes.SYMMETRIC if value == "symmetric" else modes.REFLECT
        elif name in {"perm", "pads"} and node.op in {"Transpose", "Pad"} and isinstance(value, tuple):
            self._set_table(operator, name, value)
        elif name == "pads" and node.op == "ConvTranspose" and isinstance(value, tuple):
            self._set_crop(node, operator, tuple(int(count) for count in value))
        elif name in _TURNED and node.native == "BATCH_MATMUL" and _TURNED[name][0] not in node.parameters:
            setattr(options, _TURNED[name][1], bool(value))
        else:
            self.refuse(f"{node.native} has no {name} of {value}")

    def _set_crop(self, node: Node, operator: Any, pads: tuple[int, ...]) -> None:
        """Pads of a transposed convolution are what's cut off its result: TFLite's own are those of its size."""
        half = len(pads) // 2
        if operator.builtinOptions.padding != schema.Padding.VALID or min(pads) < 0:
            self.refuse(f"{node.native} has no pads of {pads} in place of those that its declared size says")
        ends = tuple(-count if count else _WHOLE for count in pads[half:])
        cut = {"axes": tuple(range(1, 1 + half)), "starts": pads[:half], "ends": ends, "steps": (1,) * half}
        self.graft(node.outputs[0], (Operation("Slice", node.outputs, cut),), "cropped")

    def _set_table(self, operator: Any, name: str, value: tuple[Any, ...]) -> None:
        index = operator.inputs[1]
        before = self._file.constant(index)
        if before is None:
            self.refuse(f"{self._file.names[index]} isn't constant")
        table = np.array(value).reshape((2, -1)).T if name == "pads" else np.array(value)
        self._file.set_constant(self._own(operator, 1), table.astype(before.dtype))

    def _set_bounds(self, node: Node, operator: Any, changes: Mapping[str, Attribute]) -> None:
        """TFLite knows few bounds; others follow the layer."""
        before = node.attributes if node.op == "Clip" else {"min": 0.0}
        bounds = {name: value for name, value in {**before, **changes}.items() if _ends(value)}
        if node.name in self._fused:
            self._activate(node, *(("Relu", {}) if bounds == {"min": 0.0} else ("Clip", bounds)))
            return
        known = {**BOUNDS, "RELU": {"min": 0.0}}
        kinds = [kind for kind, values in known.items() if values == bounds]
        if kinds:
            self._file.set_kind(operator, kinds[0])
        else:
            self.graft(node.outputs[0], (Operation("Clip", node.inputs, bounds),), "bounded")

    def _redirect(self, operators: Sequence[Any], instead: Mapping[int, int]) -> None:
        """Let operators read other tensors in place of some."""
        for operator in {id(item): item for item in operators}.values():
            operator.inputs = [instead.get(index, index) for index in operator.inputs]


def _ends(bound: Attribute) -> bool:
    return isinstance(bound, int | float) and math.isfinite(bound)


EDITOR = TfliteEditor
