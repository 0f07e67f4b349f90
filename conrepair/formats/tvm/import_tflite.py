"""TFLite to Relax by TVM's own importer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from conrepair.formats.models.model import Model
from conrepair.formats.tvm.calls import ModelOperator
from conrepair.formats.tvm.imported import Imported, import_error
from conrepair.formats.tvm.naming import named
from conrepair.formats.tvm.options import TvmOptions
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.files.whole import copy_whole

_FILE = "imported.tflite"


def import_model(model: Model, batch: int, options: TvmOptions) -> Imported:
    """Import a file, in the shapes that it has.

    The importer takes sizes from every tensor of the file, so another batch than the file's would contradict them.

    Args:
        model: A TFLite model.
        batch: Not used.
        options: Not used.

    Raises:
        ConversionError: if the importer can't take it; names the operator.
        ModelLoadError: if the file can't be read.
    """
    import tflite
    from tvm.relax.frontend.tflite import from_tflite

    from conrepair.formats.tflite.load.framework import TfliteRunnable

    runnable = TfliteRunnable(model)
    content = tflite.Model.GetRootAsModel(Path(model.path).read_bytes(), 0)
    made: dict[str, Any] = {}
    try:
        module = from_tflite(content, op_converter=_operator_converter(made))
    # The importer raises AssertionError, KeyError, TVM's own and more.
    except Exception as error:
        raise import_error("TFLite", model.path, error) from error
    graph = content.Subgraphs(0)
    inputs = _in_order(graph, graph.InputsAsNumpy(), runnable.tensor_names, runnable.inputs)
    outputs = _in_order(graph, graph.OutputsAsNumpy(), runnable.tensor_names, runnable.outputs)
    module, names = named(module, _computed(graph, made))
    operators = tuple(_operators(content, inputs))

    def save(folder: Path) -> str:
        copy_whole(Path(model.path), folder / _FILE)
        return _FILE

    return Imported(module, "relax.frontend.tflite", inputs, outputs, names, operators, save)


def _computed(graph: Any, made: dict[str, Any]) -> dict[str, Any]:
    """What was made of the tensors that operators compute."""
    from tvm.relax.frontend.tflite.tflite_frontend import get_tensor_name

    indices = [index for place in range(graph.OperatorsLength()) for index in graph.Operators(place).OutputsAsNumpy()]
    named_so = {graph.Tensors(int(index)).Name().decode(): get_tensor_name(graph, int(index)) for index in indices}
    return {name: made[key] for name, key in named_so.items() if key in made}


def _operators(content: Any, inputs: Sequence[TensorSpec]) -> Iterator[ModelOperator]:
    import tflite

    kinds = {number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}
    graph = content.Subgraphs(0)
    given = dict(zip(map(int, graph.InputsAsNumpy()), (spec.name for spec in inputs), strict=True))

    def tensors(indices: Any) -> tuple[str, ...]:
        places = [int(index) for index in indices if index >= 0]
        return tuple(given.get(place, graph.Tensors(place).Name().decode()) for place in places)

    for place in range(graph.OperatorsLength()):
        operator = graph.Operators(place)
        code = content.OperatorCodes(operator.OpcodeIndex())
        kind = kinds.get(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()), "CUSTOM")
        reads, writes = tensors(operator.InputsAsNumpy()), tensors(operator.OutputsAsNumpy())
        yield ModelOperator(writes[0] if writes else f"{kind} {place}", kind, reads, writes)


def _in_order(
    graph: Any, indices: Any, names: dict[str, str], specs: tuple[TensorSpec, ...]
) -> tuple[TensorSpec, ...]:
    """The specs in the order of the graph, with the shapes of its tensors."""
    known = {spec.name: spec for spec in specs}
    tensors = [graph.Tensors(int(index)) for index in indices]
    return tuple(
        replace(known[names[tensor.Name().decode()]], shape=tuple(map(int, tensor.ShapeAsNumpy())))
        for tensor in tensors
    )


def _operator_converter(tensors: dict[str, Any]) -> Any:
    """TVM's converter of operators, with a Reshape that takes a computed shape from its result.

    TensorFlow's converter writes a Flatten of an open batch as Shape, StridedSlice, Pack and Reshape, and the
    importer stops at a Reshape whose shape isn't constant. For the batch that the file's tensors have, the
    result's own shape says it. Where an operand must be constant and isn't, that's said.

    Args:
        tensors: Receives the expression of each tensor.
    """
    import tvm.error
    from tvm import relax
    from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter

    class Converter(OperatorConverter):
        def convert_op_to_relax(self) -> None:
            super().convert_op_to_relax()
            tensors.update(self.exp_tab.exprs)  # the last subgraph that ends is the model itself

        def get_tensor_value(self, tensor_wrapper: Any, is_sparse: bool = False) -> Any:
            if not tensor_wrapper.buffer.DataLength() and tensor_wrapper.tensor.ShapeLength():
                name = tensor_wrapper.tensor.Name().decode(errors="replace")
                where = (
                    "stored behind the flatbuffer, where the importer doesn't look"
                    if tensor_wrapper.buffer.Offset() > 1
                    else "computed while the model runs, and the importer takes constant ones alone"
                )
                raise tvm.error.OpNotImplemented(f"its operand {name} is {where}")
            return super().get_tensor_value(tensor_wrapper, is_sparse)

        def convert_reshape(self, op: Any) -> Any:
            data, *shape = self.get_input_tensors(op)
            if not (shape and self.has_expr(shape[0].tensor_idx)) or data.qnn_params:
                return super().convert_reshape(op)
            sizes = [int(size) for size in self.get_output_tensors(op)[0].tensor.ShapeAsNumpy()]
            return relax.op.reshape(self.get_expr(data.tensor_idx), sizes)

    return Converter
