"""Rules by which operators are imported, and a node as its rule sees it: attributes, inputs, ways to write layers."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import keras
import numpy as np
import onnx
import onnx_ir
from keras import ops

from conrepair.ground.onnx_graphs.defaults import operator_called, schema_of
from conrepair.ground.runtime.errors import ConversionError
from conrepair_onnx_keras.importer.values import Array, ImportedTensor, Size, Value, channels_last, is_symbolic, known

if TYPE_CHECKING:
    from conrepair_onnx_keras.importer.workspace import Workspace


Function: TypeAlias = "Callable[[ImportedNode], Any]"


@dataclass(frozen=True)
class ImportRule:
    """How one operator is imported.

    Attributes:
        operator: ONNX's name.
        domain: Of the operator; "" is ONNX's own.
        family: File that holds the rule.
        function: Gets the node; returns its output, or a list of its outputs.
        constant: Names of inputs that must be known when the model is imported.
        ignores: Attributes that don't change the answer; any other that the rule doesn't look at must be at its
            default, so that what a newer opset adds isn't passed over.
        refuses: What the rule doesn't do, for the documentation.
    """

    operator: str
    domain: str
    family: str
    function: Function
    constant: Sequence[str] = ()
    ignores: Sequence[str] = ()
    refuses: str = ""


_RULES: dict[tuple[str, str], ImportRule] = {}


def operator(
    *names: str, domain: str = "", constant: Sequence[str] = (), ignores: Sequence[str] = (), refuses: str = ""
) -> Callable[[Function], Function]:
    """Register a function as the rule of operators, of that which it's called like if none is named.

    See `ImportRule`.
    """

    def register(function: Function) -> Function:
        family = function.__module__.rpartition(".")[2]
        for name in names or [operator_called(function.__name__)]:
            _RULES[domain, name] = ImportRule(name, domain, family, function, constant, ignores, refuses)
        return function

    return register


@cache
def rules() -> dict[tuple[str, str], ImportRule]:
    """All rules by domain and operator."""
    package = importlib.import_module("conrepair_onnx_keras.importer.operators")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return _RULES


class ImportedNode:
    """One node, with its inputs imported.

    Attributes:
        operator: ONNX's name.
        name: Of the node; of its first output when it has none.
        opset: Version of the operator set that the model imports.
        inputs: Values; None where an optional input is left out.
        outputs: Number of outputs, trailing ones that nobody uses left out.
    """

    def __init__(self, node: onnx_ir.Node, opset: int, inputs: Sequence[Value | None], workspace: Workspace) -> None:
        self.operator = node.op_type
        self.name = node.name or node.outputs[0].name or node.op_type
        self.opset = opset
        self.inputs = list(inputs)
        named = [(index, value) for index, value in enumerate(node.outputs) if value.name]
        used = [index for index, value in named if value.uses() or value.is_graph_output()]
        self.outputs = max(used, default=0) + 1
        self.ir = node
        self._read: set[str] = set()
        self._workspace = workspace

    # --- attributes and inputs ----------------------------------------------------------------------------

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as a plain Python value (int, float, str, list, or numpy array for a tensor)."""
        self._read.add(name)
        attribute = self.ir.attributes.get(name)
        if attribute is None:
            return default
        value = attribute.value
        if attribute.type == onnx_ir.AttributeType.TENSOR:
            return value.numpy()
        return list(value) if isinstance(value, tuple | list) else value

    def refuse_unread(self, ignored: Sequence[str]) -> None:
        """Refuse when an attribute that the rule didn't look at isn't at its default.

        Args:
            ignored: Attributes that don't change the answer.
        """
        schema = schema_of(self.ir, self.opset)
        for name, attribute in self.ir.attributes.items():
            if name in self._read or name in ignored:
                continue
            known = None if schema is None else schema.attributes.get(name)
            default = None if known is None else known.default_value
            given = onnx.helper.get_attribute_value(onnx_ir.to_proto(attribute))
            if given != (onnx.helper.get_attribute_value(default) if default is not None and default.type else None):
                self.refuse(f"attribute {name} isn't supported")

    def has(self, index: int) -> bool:
        """Whether the input is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def value(self, index: int) -> Value:
        """An input; refuses when it is missing."""
        if not self.has(index):
            self.refuse(f"input {self.input_name(index)} is missing")
        value = self.inputs[index]
        assert value is not None  # noqa: S101 - has() said so
        return value

    def is_constant(self, index: int) -> bool:
        """Whether the input is given and known now."""
        return self.has(index) and isinstance(self.inputs[index], np.ndarray) and not is_symbolic(self.inputs[index])

    def constant(self, index: int, default: Any = None) -> Any:
        """An input that must be known now, as an array; `default` when it is left out."""
        if not self.has(index):
            return default
        value = self.inputs[index]
        if isinstance(value, ImportedTensor) or is_symbolic(value):
            self.refuse(f"input {self.input_name(index)} must be constant")
        return value

    def constant_or_attribute(self, name: str, index: int, default: Any = None) -> Any:
        """What newer opsets give as an input and older ones as an attribute, as Python values."""
        if name in self.ir.attributes:
            return self.attribute(name)
        value = self.constant(index)
        return default if value is None else value.tolist()

    def sizes(self, index: int) -> list[Size]:
        """An input that is a list of sizes, each a number or an expression."""
        value = self.value(index)
        if isinstance(value, ImportedTensor):
            self.refuse(f"input {self.input_name(index)} must be constant, or follow from shapes")
        return [int(size) if is_symbolic(value) and known(size) else size for size in value.reshape(-1).tolist()]

    def input_name(self, index: int) -> str:
        """What the operator's schema calls an input."""
        schema = schema_of(self.ir, self.opset)
        names = [] if schema is None else [item.name for item in schema.inputs]
        return names[min(index, len(names) - 1)] if names else str(index)

    def shape(self, index: int) -> tuple[Size, ...]:
        """Shape of an input, in ONNX's order."""
        value = self.value(index)
        return value.shape

    def rank(self, index: int) -> int:
        """Number of axes of an input."""
        return len(self.shape(index))

    def dtype(self, index: int) -> str:
        """Element type of an input."""
        value = self.value(index)
        return "int64" if is_symbolic(value) else str(value.dtype)

    def axis(self, default: int, rank: int | None = None) -> int:
        """The attribute that names an axis of the first input, counted from the front."""
        rank = self.rank(0) if rank is None else rank
        axis = int(self.attribute("axis", default))
        return axis + rank if axis < 0 else axis

    def known_shape(self, index: int, axes: Sequence[int] | None = None) -> tuple[int, ...]:
        """Sizes of an input along some axes (default: all); refuses when one isn't a number."""
        shape = self.shape(index)
        chosen = [shape[axis] for axis in (range(len(shape)) if axes is None else axes)]
        if not all(map(known, chosen)):
            sizes = ", ".join(map(str, shape))
            self.refuse(f"the sizes of input {self.input_name(index)} [{sizes}] must be known; fix them with --input")
        return tuple(map(int, chosen))

    # --- Keras tensors ------------------------------------------------------------------------------------

    def tensor(self, index: int, order: Sequence[int] | None = None) -> Any:
        """An input as a Keras tensor stored in the given order (default: ONNX's own).

        Constants come as arrays, transposed alike: `keras.ops` takes both.
        """
        return self.stored(self.value(index), order)

    def computed(self, value: Value) -> ImportedTensor:
        """A value as a tensor of the model, even if it's constant, for layers: they take no arrays."""
        return self._workspace.computed(value)

    def stored(self, value: Value, order: Sequence[int] | None = None) -> Any:
        """Any value as `tensor` gives inputs."""
        return self._workspace.stored(value, order)

    def channels_last(self, index: int) -> Any:
        """An input [N, C, spatial...] as a Keras tensor [N, spatial..., C]."""
        return self.stored(self.computed(self.value(index)), channels_last(self.rank(index)))

    def from_channels_last(self, stored: Any, shape: Sequence[Size] | None = None) -> Value:
        """A Keras tensor [N, spatial..., C] as the output [N, C, spatial...]."""
        return self.output(stored, channels_last(len(stored.shape)), shape)

    def output(self, stored: Any, order: Sequence[int] | None = None, shape: Sequence[Size] | None = None) -> Value:
        """Wrap a Keras tensor as a value.

        Args:
            stored: The Keras tensor.
            order: In which ONNX's axes lie in it; default: as they are.
            shape: Sizes in ONNX's order, where the rule knows them better than Keras.
        """
        return self._workspace.wrap(self, stored, order, shape)

    def ones(self, sizes: Sequence[Size], dtype: str) -> Any:
        """Ones of a shape in which some sizes are only known by name."""
        return self._workspace.ones(sizes, dtype)

    def new_size(self, axis: int) -> Size:
        """A size that only a run knows, along an axis of the output."""
        return self._workspace.new_size(f"{self.name}.{axis}")

    def subgraph(self, name: str, inputs: Sequence[Value | None]) -> list[Value]:
        """The outputs of the subgraph that an attribute holds, written out for the given inputs."""
        self._read.add(name)
        return self._workspace.run(self.ir.attributes[name].as_graph(), inputs)

    def layer(self, kind: type[Any], *tensors: Any, weights: Sequence[Array] = (), **arguments: Any) -> Any:
        """Apply a new Keras layer, named after the node.

        Args:
            kind: Its class.
            tensors: What it is called on.
            weights: In the layer's order; they replace the initial ones.
            arguments: Of the class.

        Returns:
            What the call returned.
        """
        layer = kind(name=self._workspace.unique_operation(self.name), dtype=self._policy(tensors), **arguments)
        result = layer(*tensors)
        if weights:
            layer.set_weights([np.asarray(weight) for weight in weights])
        return result

    @staticmethod
    def _policy(tensors: Sequence[Any]) -> str:
        """The dtype that a layer computes in: its input's."""
        dtype = keras.backend.standardize_dtype(keras.tree.flatten(tensors)[0].dtype)
        return dtype if "float" in dtype else "float32"

    def refuse(self, reason: str) -> NoReturn:
        """Refuse the operator.

        Raises:
            ConversionError: see `refusal`.
        """
        raise self.refusal(reason)

    def refusal(self, reason: str) -> ConversionError:
        """The error of a node that can't be imported, with the operator, its attributes and the node's name."""
        attributes = ", ".join(f"{name}={_short(item)}" for name, item in self.ir.attributes.items())
        return ConversionError(
            f"{self.operator}({attributes}) of node '{self.name}' can't be imported: {reason}. Rewrite that part of "
            "the original model, or choose another route (`via`)."
        )

    # --- element by element -------------------------------------------------------------------------------

    def elementwise(self, function: Callable[..., Any], indices: Sequence[int] | None = None) -> Value:
        """Apply a function of broadcast tensors, in whatever order they lie.

        Args:
            function: Of one Keras tensor (or array) for each input.
            indices: Inputs that take part; default: all.
        """
        values = [self.value(index) for index in (range(len(self.inputs)) if indices is None else indices)]
        rank = max(len(value.shape) for value in values)
        order = next(
            (
                v.order
                for v in values
                if isinstance(v, ImportedTensor) and v.rank == rank and v.order != tuple(range(rank))
            ),
            tuple(range(rank)),
        )
        arranged = [self._workspace.broadcastable(value, order) for value in values]
        shape = broadcast_shape([value.shape for value in values], self.new_size)
        if rank or not any(getattr(item, "shape", ()) for item in arranged):
            return self.output(function(*arranged), order, shape)
        # Of arrays without axes Keras's files lose the type, so `broadcastable` has given one to some.
        return self.output(ops.reshape(function(*(ops.reshape(item, (1,)) for item in arranged)), ()))


def broadcast_shape(shapes: Sequence[Sequence[Size]], new_size: Callable[[int], Size]) -> tuple[Size, ...]:
    """What shapes broadcast to; along axes where either of two open sizes may be 1, a new size."""
    rank = max(map(len, shapes))
    result = []
    for axis, sizes in enumerate(zip(*((*[1] * (rank - len(shape)), *shape) for shape in shapes), strict=True)):
        longer = list(dict.fromkeys(size for size in sizes if size != 1))
        number = next((size for size in longer if known(size)), None)
        one = longer[0] if longer else 1
        result.append(number if number is not None else one if len(longer) < 2 else new_size(axis))
    return tuple(result)


def _short(attribute: Any) -> str:
    if attribute.type == onnx_ir.AttributeType.GRAPH:
        return "a graph"
    text = " ".join(str(attribute.value).split())
    return text if len(text) < 60 else f"{text[:57]}..."
