"""Walk an ONNX graph and write the Keras model."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import keras
import numpy as np
import onnx_ir

from conrepair.formats.onnx.passes.fold_constants import RANDOM
from conrepair.ground.onnx_graphs.computing import GRAPHS
from conrepair.ground.runtime.errors import ConversionError
from conrepair_onnx_keras.importer.constants import evaluate
from conrepair_onnx_keras.importer.node import ImportedNode, rules
from conrepair_onnx_keras.importer.prepare import prepare
from conrepair_onnx_keras.importer.shapes import evaluate_sizes
from conrepair_onnx_keras.importer.values import (
    DTYPES,
    Array,
    ImportedTensor,
    Size,
    Value,
    channels_last,
    inverse,
    is_symbolic,
    symbol,
)
from conrepair_onnx_keras.importer.workspace import Workspace

_DOMAINS = {"", "ai.onnx"}


def import_model(
    model: onnx_ir.Model,
    *,
    sizes: Mapping[str, Sequence[Size]] | None = None,
    channels_last_inputs: bool = False,
    channels_last_outputs: bool = False,
) -> keras.Model:
    """Import an ONNX model.

    Args:
        model: The model; it may be changed.
        sizes: Shapes by input name, to fix sizes that the model leaves open.
        channels_last_inputs: Whether inputs of three axes or more are given as [N, spatial..., C].
        channels_last_outputs: Whether outputs of three axes or more are returned so.

    Returns:
        A functional Keras model whose inputs and outputs have the names and order of the ONNX model's.

    Raises:
        ConversionError: naming operator, attributes and node where it can't.
    """
    walk = _Walk(prepare(model, rules(), sizes or {}))
    return walk.model(channels_last_inputs=channels_last_inputs, channels_last_outputs=channels_last_outputs)


class _Walk:
    def __init__(self, model: onnx_ir.Model) -> None:
        self._graph = model.graph
        self._imports = model.opset_imports
        self._values: dict[onnx_ir.Value, Value] = {}
        self._workspace = Workspace(self._subgraph)

    def model(self, *, channels_last_inputs: bool, channels_last_outputs: bool) -> keras.Model:
        inputs = [
            self._input(value, channels_last_inputs)
            for value in self._graph.inputs
            if value.name not in self._graph.initializers
        ]
        # Nodes without a name are called like their outputs: those names are taken before.
        names = [self._workspace.unique(str(value.name)) for value in self._graph.outputs]
        self._run(self._graph)
        outputs = [
            self._output(value, name, channels_last_outputs)
            for value, name in zip(self._graph.outputs, names, strict=True)
        ]
        return keras.Model(inputs, outputs, name=self._workspace.unique(self._graph.name or "model"))

    def _input(self, value: onnx_ir.Value, last: bool) -> Any:
        if value.shape is None or value.dtype is None:
            raise ConversionError(f"the model doesn't say the shape of its input {value.name}. Declare it (--input).")
        if (dtype := value.dtype.numpy().name) not in DTYPES:
            raise ConversionError(f"input {value.name} is of type {dtype}, in which Keras doesn't compute.")
        shape = tuple(
            size if isinstance(size, int) else symbol(size.value or f"{value.name}.{axis}")
            for axis, size in enumerate(value.shape)
        )
        order = channels_last(len(shape)) if last and len(shape) > 2 else tuple(range(len(shape)))
        stored = tuple(shape[axis] if isinstance(shape[axis], int) else None for axis in inverse(order))
        tensor = keras.Input(batch_shape=stored, dtype=dtype, name=self._workspace.unique(str(value.name)))
        self._values[value] = ImportedTensor(tensor, order, shape)
        self._workspace.remember(self._values[value])  # type: ignore[arg-type]
        return tensor

    def _output(self, value: onnx_ir.Value, name: str, last: bool) -> Any:
        result = self._values[value]
        if isinstance(result, tuple):
            raise ConversionError(f"output {value.name} is a sequence; a Keras model returns single tensors.")
        result = self._workspace.computed(result, None if value.dtype is None else value.dtype.numpy().name)
        order = channels_last(result.rank) if last and result.rank > 2 else None
        dtype = result.dtype if "float" in result.dtype else None
        return keras.layers.Identity(name=name, dtype=dtype)(self._workspace.stored(result, order))

    def _run(self, graph: onnx_ir.Graph) -> None:
        for initializer in graph.initializers.values():
            if initializer.const_value is None:
                raise ConversionError(f"initializer {initializer.name} has no data.")
            self._values.setdefault(initializer, initializer.const_value.numpy())
        for node in graph:
            results = self._node(node)
            for value, result in zip(node.outputs, results, strict=False):
                if result is not None:
                    self._values[value] = result

    def _subgraph(self, graph: onnx_ir.Graph, inputs: Sequence[Value | None]) -> list[Value]:
        """Import a subgraph's nodes with the given inputs; outer values are seen by identity."""
        for value, given in zip(graph.inputs, inputs, strict=True):
            if given is not None:
                self._values[value] = given
        for initializer in graph.initializers.values():
            self._values.pop(initializer, None)
        self._run(graph)
        return [self._values[value] for value in graph.outputs]

    def _node(self, ir: onnx_ir.Node) -> list[Value | None]:
        inputs = [None if value is None else self._values[value] for value in ir.inputs]
        domain = "" if ir.domain in _DOMAINS else ir.domain
        node = ImportedNode(ir, self._imports.get(ir.domain, self._imports.get(domain, 1)), inputs, self._workspace)
        constant = all(value is None or isinstance(value, np.ndarray) for value in inputs)
        symbolic = any(is_symbolic(value) for value in inputs)
        if constant and not symbolic and _computable(ir):
            return list(_evaluated(node))
        try:
            if constant and symbolic and (sizes := evaluate_sizes(node)) is not None:
                return list(sizes)
            rule = rules().get((domain, ir.op_type))
            if rule is None:
                node.refuse(f"there is no rule for it{_suggestion(ir.op_type)}")
            result = rule.function(node)
            node.refuse_unread(rule.ignores)
        except ConversionError:
            raise
        # Keras, numpy and sympy raise errors of any type for what they can't do.
        except Exception as error:
            reason = (str(error).strip().splitlines() or [""])[0][:300]
            raise node.refusal(f"{type(error).__name__}: {reason}") from error
        results = result if isinstance(result, list) else [result]
        return [self._value(node, item, index) for index, item in enumerate(results)]

    def _value(self, node: ImportedNode, result: Any, index: int) -> Value | None:
        if result is None or isinstance(result, np.ndarray):
            return result
        if isinstance(result, tuple):  # a sequence of values, which only rules for sequences look into
            return cast(Value, result)
        value = result if isinstance(result, ImportedTensor) else self._workspace.wrap(node, result, index=index)
        if not isinstance(value, ImportedTensor):
            return value
        declared = node.ir.outputs[index].dtype if index < len(node.ir.outputs) else None
        if declared is None or value.dtype == (wanted := declared.numpy().name):
            return value
        if declared.itemsize > onnx_ir.DataType.from_numpy(np.dtype(value.dtype)).itemsize:
            node.refuse(f"Keras computes it in {value.dtype} instead of {wanted}")
        return dataclasses.replace(value, stored=keras.ops.cast(value.stored, wanted))


def _computable(node: onnx_ir.Node) -> bool:
    """Whether a node of known inputs is a matter of computing: no subgraphs, no dice, no sequences."""
    subgraphs = any(attribute.type in GRAPHS for attribute in node.attributes.values())
    own = node.domain == "conrepair"  # joined by `prepare`
    return not subgraphs and not own and node.op_type not in RANDOM and "Sequence" not in node.op_type


def _evaluated(node: ImportedNode) -> Iterable[Array]:
    if node.operator == "Constant" and "value" in node.ir.attributes:
        return [node.attribute("value")]
    try:
        return evaluate(node.ir, [None if value is None else np.asarray(value) for value in node.inputs], node.opset)
    except RuntimeError as error:
        raise node.refusal(f"its inputs are constant, but it can't be computed ({error})") from error


def _suggestion(operator: str) -> str:
    close = difflib.get_close_matches(operator, [name for domain, name in rules() if not domain], n=1, cutoff=0.8)
    return f" (there is one for {close[0]})" if close else ""
